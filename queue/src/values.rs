//! Small conversions between what PostgreSQL holds and what callers have.

use std::time::Duration;

use contract::Micros;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StoreError;

/// The longest `detail` that a row keeps, in characters.
const DETAIL_MAX: usize = 2_000;

/// Text for a `text` column: without NUL, which PostgreSQL refuses there, and bounded.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|&c| c != '\0').take(DETAIL_MAX).collect()
}

/// Text for a `text` column that is long by nature: without NUL only. Its bound is the caller's.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// A span that PostgreSQL computed. Negative ones (a clock that was set back) are none at all.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// What a row's JSON means here.
pub(crate) fn read_json<T: DeserializeOwned>(what: impl FnOnce() -> String, json: Value) -> Result<T, StoreError> {
    serde_json::from_value(json).map_err(|error| StoreError::Unreadable {
        what: what(),
        error: error.to_string(),
    })
}

/// JSON for a row. The types of this crate have text keys only, so this does not fail for them.
pub(crate) fn to_json<T: serde::Serialize>(what: &str, value: &T) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::Unreadable {
        what: what.to_owned(),
        error: error.to_string(),
    })
}

/// Micro-dollars as PostgreSQL holds them; turns into [`Micros`] by itself in `query_as!`.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct Money(pub(crate) i64);

impl From<Money> for Micros {
    fn from(money: Money) -> Self {
        Self(money.0)
    }
}
