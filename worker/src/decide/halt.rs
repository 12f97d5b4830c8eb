//! What stops the way from an event to a job: a "no", or a question that found no answer yet.
//!
//! Neither is an error. A no is final and stands in the decision's row; an unanswered question delays the delivery.
//! Details are our own words, names and numbers; never a text of the delivery.

use std::time::Duration;

use forges::ApiError;
use queue::{Reason, StoreError};

use crate::texts;

/// Why an event goes no further, for now or for good.
#[derive(Debug)]
pub(super) enum Halt {
    /// It makes no job.
    No {
        /// The word.
        reason: Reason,
        /// What else a person wants to know; may be empty.
        detail: String,
    },
    /// The forge could not say. It is asked again.
    Later(Later),
    /// PostgreSQL could not say. Nothing is written about it; the delivery's lease brings it back.
    Store(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A question that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Later {
    /// The word.
    pub(super) reason: Reason,
    /// What was asked, and what came instead of an answer.
    pub(super) detail: String,
    /// The forge wants to be left alone for that long.
    pub(super) at_least: Option<Duration>,
}

/// What was asked for, or what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Repository,
    Comment,
    Subject,
    Author,
    Text,
    Edit,
    Permission,
    Account,
}

pub(super) fn no(reason: Reason, detail: impl Into<String>) -> Halt {
    Halt::No {
        reason,
        detail: detail.into(),
    }
}

pub(super) fn later(reason: Reason, detail: impl Into<String>) -> Halt {
    Halt::Later(Later {
        reason,
        detail: detail.into(),
        at_least: None,
    })
}

/// The forge has it otherwise than the delivery.
pub(super) fn differs(part: Part) -> Halt {
    no(Reason::NotConfirmed, texts::differs(part.word()))
}

/// What a failed lookup means. Only "there is no such thing" is an answer; everything else is asked again, a refusal
/// of our own token included: an operator can mend that within a day.
pub(super) fn unanswered(part: Part, error: &ApiError) -> Halt {
    let reason = match error {
        ApiError::NotFound if part == Part::Repository => return no(Reason::RepositoryGone, ""),
        ApiError::NotFound => return no(Reason::ObjectGone, texts::gone(part.word())),
        ApiError::BadName => return no(Reason::NotConfirmed, texts::differs(part.word())),
        ApiError::Unauthorized => Reason::ForgeTokenRefused,
        ApiError::Forbidden => Reason::ForgeTokenTooWeak,
        ApiError::Moved(_)
        | ApiError::Archived
        | ApiError::Invalid(_)
        | ApiError::Busy { .. }
        | ApiError::Unavailable { .. }
        | ApiError::Garbled(_) => Reason::ForgeUnavailable,
    };
    let detail = texts::asked_in_vain(part.word(), &error.to_string());
    Halt::Later(Later {
        reason,
        detail,
        at_least: error.retry_after(),
    })
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Repository => "the repository",
            Self::Comment => "the comment",
            Self::Subject => "the issue or pull request",
            Self::Author => "who wrote it",
            Self::Text => "the text",
            Self::Edit => "the edit",
            Self::Permission => "what the actor may do",
            Self::Account => "our own account",
        }
    }
}
