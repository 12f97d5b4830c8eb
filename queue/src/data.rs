//! What a job carries from its decision on: frozen when it was confirmed, and read by every later step.
//!
//! Kept as JSON. `version` is raised when a field is added; a worker claims no job whose version is above [`JobData::VERSION`],
//! and unknown fields are refused, so that an old worker never drops a restriction that it does not know.

use chrono::{DateTime, Utc};
use contract::Micros;
use serde::{Deserialize, Serialize};
use triggers::{RunKind, Target, Trigger};

/// A job's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobData {
    /// Which fields may be in here.
    pub version: u32,
    /// The trigger as it was when the job was made. Gate 1 narrows the present one by it.
    pub trigger: Trigger,
    /// The forge's configured name.
    pub forge: String,
    /// What kind of forge that is.
    pub kind: RunKind,
    /// Where.
    pub repository: Repository,
    /// Under which issue or pull request. `None` for a run that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The default branch, where it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// The job image by name: the trigger's, else the deployment's.
    pub image: String,
    /// The limits that were in force: the trigger's, narrowed by the deployment's.
    pub limits: Limits,
}

impl JobData {
    /// The version that this program writes, and the highest that it reads.
    pub const VERSION: u32 = 1;
}

/// A repository of a forge. The number is what counts; names move.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// The forge's number.
    pub id: i64,
    /// Its owner when it was confirmed.
    pub owner: String,
    /// Its name when it was confirmed.
    pub name: String,
}

impl Repository {
    /// `owner/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Which of the two.
    pub kind: Target,
    /// Its number in the repository.
    pub number: i64,
    /// Its title when it was confirmed. Somebody else's text.
    pub title: String,
    /// Its own first text when it was confirmed, bounded by who confirmed it. Somebody else's text.
    #[serde(default)]
    pub text: String,
    /// A pull request's confirmed head commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether the head lives in another repository than the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head_is_fork: bool,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Somebody on a forge. The number is what counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// The forge's number.
    pub id: i64,
    /// The name when it was confirmed.
    pub login: String,
}

/// One request that the job answers, as it was confirmed. A job has one per event that joined it, in the order of arrival; a run
/// that a person asked for at the panel has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The comment's number on the forge; the reaction and the link hang on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<i64>,
    /// Who asked, and may ask.
    pub actor: Actor,
    /// By which rule the actor may ask, in words (for the run's page).
    pub allowed_by: String,
    /// The confirmed text. Somebody else's.
    pub text: String,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When the forge says that it was written.
    pub at: DateTime<Utc>,
}

/// What a run may use. A `None` is no limit of that sort.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Turns of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tokens, as the provider bills them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Micros>,
    /// Whole run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}
