//! The list of jobs.

use chrono::{DateTime, Utc};
use contract::Micros;
use serde::Serialize;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{JobId, TriggerId};
use crate::state::{JobState, JobStatus, Outcome};

/// Which jobs. Everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// In that state.
    pub status: Option<JobStatus>,
    /// With that outcome.
    pub outcome: Option<Outcome>,
    /// Of that trigger.
    pub trigger: Option<TriggerId>,
    /// On that forge.
    pub forge: Option<String>,
    /// In that repository, `owner/name` as it is called now, any case.
    pub repository: Option<String>,
    /// Older than that one: the last row of the page before.
    pub before: Option<JobId>,
    /// Rows of a page; at most [`super::PAGE_MAX`].
    pub limit: i64,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRow {
    /// Its number.
    pub job: JobId,
    /// Where it stands.
    #[serde(flatten)]
    pub state: JobState,
    /// Its trigger.
    pub trigger: TriggerId,
    /// The trigger's flow.
    pub flow: String,
    /// On which forge.
    pub forge: String,
    /// `owner/name`.
    pub repository: String,
    /// Number of the issue or pull request.
    pub subject: Option<i64>,
    /// Its title. Somebody else's text.
    pub title: Option<String>,
    /// Who asked first.
    pub actor: Option<String>,
    /// Claims so far.
    pub attempt: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When its container was first started.
    pub started_at: Option<DateTime<Utc>>,
    /// Turns of the agent.
    pub turns: Option<i32>,
    /// What it cost so far, unsettled requests in full.
    pub cost: Micros,
    /// Tokens so far, likewise.
    pub tokens: i64,
    /// Whether somebody asked it to stop.
    pub stop_requested: bool,
}

impl Queue {
    /// A page of jobs, newest first.
    pub async fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobRow>, StoreError> {
        let _ = filter;
        todo!()
    }
}
