//! What went wrong between us and a forge.

use std::time::Duration;

/// One variant per reaction. Messages hold neither the answer's text nor a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 404, 410: what was asked for is not there, or our account may not know of it.
    #[error("the forge has no such thing, or our account may not see it (404)")]
    NotFound,
    /// 403: the token lacks a scope, or the account a permission. An operator may mend it.
    #[error("the forge does not let our account do that (403)")]
    Forbidden,
    /// 401: the token is wrong, expired or revoked.
    #[error("the forge does not accept our token (401)")]
    Unauthorized,
    /// A redirect: the repository has another name now. Ask for it by its id.
    #[error("the forge points elsewhere: the repository was renamed or moved ({0})")]
    Moved(u16),
    /// 423: the repository is archived, or the conversation locked.
    #[error("the repository is archived (423)")]
    Archived,
    /// Another 4xx: what we sent cannot be taken, now or later.
    #[error("the forge refused what we sent ({0})")]
    Invalid(u16),
    /// 429: too many requests.
    #[error("the forge asks us to slow down (429)")]
    Busy {
        /// How long it wants to be left alone, when it says so.
        retry_after: Option<Duration>,
    },
    /// 5xx, no connection, or no answer in time. Whether something was done is not known.
    #[error("the forge could not be asked: {what}")]
    Unavailable {
        /// What was seen, e.g. `502`, `no connection`, `no answer within 30 s`.
        what: String,
        /// How long it wants to be left alone, when it says so.
        retry_after: Option<Duration>,
    },
    /// 2xx, but not an answer that we can read: too large, not JSON, or not of the shape. Often a proxy's page.
    #[error("the forge's answer could not be read: {0}")]
    Garbled(&'static str),
    /// A name that no forge gives, e.g. `..`: nothing was sent.
    #[error("that is no name of a repository, account or branch")]
    BadName,
}

impl ApiError {
    /// Whether asking again is of no use. Faults of our own set-up (401, 403) are not final: an operator mends them.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::NotFound | Self::Archived | Self::Invalid(_) | Self::BadName => true,
            Self::Forbidden
            | Self::Unauthorized
            | Self::Moved(_)
            | Self::Busy { .. }
            | Self::Unavailable { .. }
            | Self::Garbled(_) => false,
        }
    }

    /// How long the forge wants to be left alone, when it says so; at most an hour.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after } | Self::Unavailable { retry_after, .. } => *retry_after,
            Self::NotFound
            | Self::Forbidden
            | Self::Unauthorized
            | Self::Moved(_)
            | Self::Archived
            | Self::Invalid(_)
            | Self::Garbled(_)
            | Self::BadName => None,
        }
    }

    /// The kebab word for rows and logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::Moved(_) => "moved",
            Self::Archived => "archived",
            Self::Invalid(_) => "invalid",
            Self::Busy { .. } => "busy",
            Self::Unavailable { .. } => "unavailable",
            Self::Garbled(_) => "garbled",
            Self::BadName => "bad-name",
        }
    }
}
