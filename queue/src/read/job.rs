//! One job with all that hangs on it.

use chrono::{DateTime, Utc};
use contract::Micros;
use serde::Serialize;
use serde_json::Value;

use super::jobs::JobRow;
use crate::Queue;
use crate::data::{Asked, JobData};
use crate::error::StoreError;
use crate::ids::{DeliveryId, EventId, JobId, LogId, OutputId, ReservationId, WorkerName};
use crate::money::Spend;
use crate::reason::Reason;
use crate::state::{OutputKind, OutputStatus};
use crate::work::{GateRow, LogSource, Proposal};

/// One job with all that hangs on it, but for its log.
#[derive(Debug, Clone, Serialize)]
pub struct JobDetail {
    /// As in the list.
    pub row: JobRow,
    /// What it carries.
    pub data: JobData,
    /// Why it ended or waits, in words.
    pub detail: String,
    /// The agent's last message or proposal as the job wrote it. Somebody else's text.
    pub reply: Option<String>,
    /// Who asked it to stop.
    pub stop_by: Option<String>,
    /// Its gates in the newest attempt, in order.
    pub gates: Vec<GateRow>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptRow>,
    /// What is asked, in the order of arrival.
    pub asked: Vec<AskedRow>,
    /// Proposals that were kept, of all attempts.
    pub proposals: Vec<Proposal>,
    /// What goes or went to the forge.
    pub outputs: Vec<OutputRow>,
    /// What was spent, unsettled requests in full.
    pub spend: Spend,
    /// The lines `tools_excluded` of its log, in order (start and end).
    pub tools_excluded: Vec<Value>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptRow {
    /// Which.
    pub attempt: i32,
    /// On which worker.
    pub worker: WorkerName,
    /// The container's id.
    pub container: Option<String>,
    /// The id of the image that it was made from.
    pub image: Option<String>,
    /// When it was claimed.
    pub claimed_at: DateTime<Utc>,
    /// When the container was started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub ended_at: Option<DateTime<Utc>>,
    /// The container's exit code.
    pub exit_code: Option<i32>,
    /// Whether it used up an attempt.
    pub counted: bool,
    /// Whether a model request was forwarded.
    pub spent: bool,
    /// How it ended, when it ended without the job.
    pub reason: Option<Reason>,
}

/// One event that the job answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskedRow {
    /// The event, while it is kept.
    pub event: Option<EventId>,
    /// Its delivery.
    pub delivery: Option<DeliveryId>,
    /// As it was confirmed.
    pub asked: Asked,
}

/// Something that goes or went to a forge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputRow {
    /// Its number.
    pub id: OutputId,
    /// What.
    pub kind: OutputKind,
    /// Where it stands.
    pub status: OutputStatus,
    /// The text, rebuilt.
    pub body: String,
    /// How often it was tried.
    pub tries: i32,
    /// Why it waits or failed.
    pub reason: Option<Reason>,
    /// More about that.
    pub detail: String,
    /// Its page on the forge.
    pub url: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was posted.
    pub posted_at: Option<DateTime<Utc>>,
}

/// One model request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRequestRow {
    /// Its number.
    pub id: ReservationId,
    /// In which attempt.
    pub attempt: i32,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// When it was reserved.
    pub at: DateTime<Utc>,
    /// What counts against caps: the worst case until it is settled.
    pub tokens: i64,
    /// What counts in money.
    pub cost: Micros,
    /// The provider's answer; `None` while unsettled.
    pub status: Option<String>,
}

/// One line of a job's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogRow {
    /// Grows within the job: `after`, and `Last-Event-ID`.
    pub id: LogId,
    /// In which attempt.
    pub attempt: i32,
    /// Who says it.
    pub source: LogSource,
    /// The source's number.
    pub seq: i64,
    /// One word: the event.
    pub kind: String,
    /// The event with its fields. Of the runner: said from inside the box.
    pub data: Value,
    /// When it was written down.
    pub at: DateTime<Utc>,
}

impl Queue {
    /// One job with all that hangs on it.
    pub async fn job(&self, job: JobId) -> Result<Option<JobDetail>, StoreError> {
        let _ = job;
        todo!()
    }

    /// Lines of a job's log after that one, in the order of writing. The end of the log is reached when fewer than `limit` come and the job is
    /// finished.
    pub async fn job_log(&self, job: JobId, after: LogId, limit: i64) -> Result<Vec<LogRow>, StoreError> {
        let _ = (job, after, limit);
        todo!()
    }

    /// The model requests of a job, oldest first.
    pub async fn model_requests(&self, job: JobId) -> Result<Vec<ModelRequestRow>, StoreError> {
        let _ = job;
        todo!()
    }

    /// Whether the job is finished: then its log gets no more lines. `None` when there is no such job.
    pub async fn is_finished(&self, job: JobId) -> Result<Option<bool>, StoreError> {
        let _ = job;
        todo!()
    }
}
