//! `pi-dispatch config`: what is in force and where each value came from, secrets masked.

use serde::Serialize;

use super::Origin;

/// One value in force.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Dotted place.
    pub place: String,
    /// The value as text; for a secret the place where it is.
    pub value: String,
    /// Where it came from, in words.
    pub from: String,
}

impl Shown {
    pub(super) fn new(place: &str, value: String, origin: &Origin) -> Self {
        let from = match origin {
            Origin::File { line } => format!("line {line}"),
            Origin::Variable(name) => format!("variable {name}"),
            Origin::Default => "default".to_owned(),
        };
        Self {
            place: place.to_owned(),
            value,
            from,
        }
    }
}
