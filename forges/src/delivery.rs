//! A delivery at the edge: its proof, what is kept of it, and why one is turned away.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};

/// Longest header value that is kept, in bytes. Longer ones are dropped: no forge sends such.
const HEADER_MAX: usize = 255;

/// Why a delivery is turned away. Every variant is the sender's doing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Form encoding, or no content type: 415.
    #[error("the content type must be application/json: set it in the settings of the webhook")]
    NotJson,
    /// No signature header, or an empty one, as a hook without a secret sends it: 401.
    #[error(
        "the delivery is not signed (header `{0}` is missing or empty): set a secret in the settings of the webhook"
    )]
    Unsigned(&'static str),
    /// Signed, but not with a secret of this hook: 401.
    #[error("the signature does not match any configured secret of this hook")]
    BadSignature,
    /// A header that the forge always sends is missing or unusable: 400.
    #[error("header `{0}` is missing or unusable")]
    BadHeader(&'static str),
}

/// A delivery whose proof held. Only [`crate::verify`] makes one, so whoever has one may store it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verified<'b> {
    /// The forge's id of this delivery. A redelivery by hand has a new one.
    pub delivery_id: String,
    /// The event header, e.g. `issue_comment`.
    pub event: String,
    /// The finer event header, e.g. `pull_request_comment`; equals `event` when the forge sent none.
    pub event_type: String,
    /// The headers that are kept.
    pub headers: KeptHeaders,
    /// The body as it may be stored: byte for byte what came, except that the value of a `secret` field is blanked.
    pub body: Cow<'b, [u8]>,
}

/// The headers of a delivery that are kept: an allowlist per forge, lower-case names.
///
/// Never among them: `Authorization`, cookies, signatures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptHeaders(BTreeMap<String, String>);

impl KeptHeaders {
    /// Takes the named headers. Values that are no visible ASCII or longer than 255 bytes are left out.
    pub(crate) fn take(headers: &HeaderMap, allowed: &[&'static str]) -> Self {
        let kept = allowed.iter().filter_map(|name| {
            let value = headers.get(*name)?.to_str().ok()?.trim();
            (!value.is_empty() && value.len() <= HEADER_MAX).then(|| ((*name).to_owned(), value.to_owned()))
        });
        Self(kept.collect())
    }

    /// A header by its lower-case name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for KeptHeaders {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(headers: I) -> Self {
        Self(
            headers
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
        )
    }
}

/// Checks that a delivery says it is JSON: the edge asks this before it reads the body.
///
/// With form encoding the signature covers the JSON inside `payload=`, not the body, so we could not check it.
///
/// # Errors
/// [`DeliveryError::NotJson`].
pub fn content_type(headers: &HeaderMap) -> Result<(), DeliveryError> {
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or_default().trim());
    match media_type {
        Some(word) if word.eq_ignore_ascii_case("application/json") => Ok(()),
        _ => Err(DeliveryError::NotJson),
    }
}
