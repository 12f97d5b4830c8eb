//! What happened on a forge, in our own words.
//!
//! Everything in an [`Event`] is the sender's word until it was read back from the forge (DESIGN section 5.4).
//! Ids are the forge's own numbers; times are UTC. All of it is kept as JSON beside the decision.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::texts;

/// What a delivery turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Something happened that triggers may fire on.
    Events(Vec<Event>),
    /// Somebody pressed "test delivery": it arrived, and starts nothing.
    Test,
    /// Nothing that this version fires on, and why.
    Ignored(IgnoredReason),
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Says what happened, whatever delivery it came in. Unique per forge.
    pub key: EventKey,
    /// The kind, with what only that kind has.
    pub kind: EventKind,
    /// Where.
    pub repo: RepoRef,
    /// The issue or pull request that it is about.
    pub subject: SubjectRef,
    /// Who did it: the sender of the delivery.
    pub actor: Actor,
    /// Who wrote the object. For an edit always the actor: another's edit is ignored.
    pub author: Actor,
    /// The text as it is after what happened.
    pub text: String,
    /// The page of the object, as the sender says. To be shown, never to be called.
    pub url: String,
    /// When the object was made.
    pub object_created_at: DateTime<Utc>,
    /// When the object was last changed.
    pub object_updated_at: DateTime<Utc>,
}

impl Event {
    /// When it happened: the object's creation, or for an edit its last change.
    #[must_use]
    pub fn happened_at(&self) -> DateTime<Utc> {
        match &self.kind {
            EventKind::Comment {
                action: CommentAction::Created,
                ..
            } => self.object_created_at,
            EventKind::Comment {
                action: CommentAction::Edited { .. },
                ..
            } => self.object_updated_at,
        }
    }

    /// The text before an edit; `None` for a new object.
    #[must_use]
    pub fn previous_text(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Comment {
                action: CommentAction::Created,
                ..
            } => None,
            EventKind::Comment {
                action: CommentAction::Edited { previous },
                ..
            } => Some(previous),
        }
    }
}

/// The identity of something that happened, e.g. `comment/1381` or `comment/1381/edit/<sha256 of the text>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(pub String);

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of thing happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum EventKind {
    /// A comment on an issue or pull request.
    Comment {
        /// The forge's id of the comment.
        id: i64,
        /// New or edited.
        action: CommentAction,
    },
}

/// What happened to a comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum CommentAction {
    /// It was written.
    Created,
    /// Its author changed its text.
    Edited {
        /// The text before.
        previous: String,
    },
}

/// A repository: its id, which stays, and its name, which may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RepoRef {
    /// The forge's id.
    pub id: i64,
    /// The user or organisation.
    pub owner: String,
    /// The name under the owner.
    pub name: String,
}

impl RepoRef {
    /// `owner/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

/// Issue or pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// An issue.
    Issue,
    /// A pull request.
    PullRequest,
}

impl SubjectKind {
    /// The word of the trigger language: `issue`, `pull_request`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::PullRequest => "pull_request",
        }
    }
}

/// The issue or pull request that something is about. Both share one row of numbers per repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectRef {
    /// Issue or pull request.
    pub kind: SubjectKind,
    /// Its number in the repository.
    pub number: i64,
    /// Its title: a stranger's text.
    pub title: String,
}

/// An account: its id, which stays, and its name, which may change hands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    /// The forge's id.
    pub id: i64,
    /// The login name.
    pub login: String,
}

/// Why a delivery starts nothing. A kebab word ([`word`](Self::word)) and a sentence ([`sentence`](Self::sentence)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoredReason {
    /// A comment was deleted.
    CommentDeleted,
    /// A comment was edited by somebody who did not write it.
    EditByOther,
    /// A comment was edited without a change of its text, or the delivery does not say what the text was.
    EditWithoutChange,
    /// Labels of an issue or pull request changed.
    Label,
    /// An issue was opened, edited, assigned, closed …
    Issue,
    /// A pull request was opened, updated, assigned, merged …
    PullRequest,
    /// A review, or line comments.
    Review,
    /// Commits or tags were pushed.
    Push,
    /// A branch or tag was made or deleted.
    Branch,
    /// A release.
    Release,
    /// A page of the wiki.
    Wiki,
    /// A fork.
    Fork,
    /// The repository itself was made, deleted, renamed, or handed on.
    Repository,
    /// A package, a workflow, a commit status: nothing that a trigger can name.
    Other,
    /// An event word that we do not know.
    UnknownEvent,
    /// An action word that we do not know.
    UnknownAction,
    /// Signed, but not JSON of the shape that the event has.
    Malformed,
}

impl IgnoredReason {
    /// All reasons, in the order of `docs/reasons.md`.
    pub const ALL: [Self; 17] = [
        Self::CommentDeleted,
        Self::EditByOther,
        Self::EditWithoutChange,
        Self::Label,
        Self::Issue,
        Self::PullRequest,
        Self::Review,
        Self::Push,
        Self::Branch,
        Self::Release,
        Self::Wiki,
        Self::Fork,
        Self::Repository,
        Self::Other,
        Self::UnknownEvent,
        Self::UnknownAction,
        Self::Malformed,
    ];

    /// The word in rows, logs and pages.
    #[must_use]
    pub fn word(self) -> &'static str {
        texts::ignored(self).0
    }

    /// One sentence for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        texts::ignored(self).1
    }
}

impl fmt::Display for IgnoredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
