//! The one HTTP client of this crate.
use url::Url;

use crate::{ApiSettings, SetupError};

#[derive(Debug, Clone)]
pub(crate) struct Http {
    pub(crate) base: Url,
}

impl Http {
    pub(crate) fn new(_settings: ApiSettings) -> Result<Self, SetupError> {
        todo!()
    }
}
