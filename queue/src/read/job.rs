//! One job with all that hangs on it.

use chrono::{DateTime, Utc};
use contract::Micros;
use serde::Serialize;
use serde_json::Value;

use super::jobs::JobRow;
use crate::Queue;
use crate::data::{Asked, JobData};
use crate::error::StoreError;
use crate::ids::{DeliveryId, EventId, JobId, LogId, OutputId, ProposalId, ReservationId, WorkerName};
use crate::money::Spend;
use crate::reason::Reason;
use crate::state::{GateVerdict, OutputKind, OutputStatus};
use crate::values::{Money, read_json};
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
        let Some(row) = self.job_rows(&[job.0]).await?.pop() else {
            return Ok(None);
        };
        let more = sqlx::query!(
            "SELECT data, detail, reply, stop_by, attempt FROM jobs WHERE id = $1",
            job.0
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(more) = more else {
            return Ok(None);
        };
        let gates = sqlx::query_as!(
            GateRow,
            r#"
            SELECT number, name, verdict AS "verdict: GateVerdict", reason AS "reason: Reason", detail, micros
            FROM gates WHERE job_id = $1 AND attempt = $2 ORDER BY number
            "#,
            job.0,
            more.attempt,
        )
        .fetch_all(&self.pool)
        .await?;
        let attempts = sqlx::query_as!(
            AttemptRow,
            r#"
            SELECT attempt, worker AS "worker: WorkerName", container, image, claimed_at, started_at, ended_at, exit_code, counted,
                spent OR EXISTS (SELECT FROM model_requests m WHERE m.job_id = a.job_id AND m.attempt = a.attempt) AS "spent!",
                reason AS "reason: Reason"
            FROM attempts a WHERE job_id = $1 ORDER BY attempt
            "#,
            job.0,
        )
        .fetch_all(&self.pool)
        .await?;
        let asked = sqlx::query!(
            r#"
            SELECT event_id AS "event: EventId", delivery_id AS "delivery: DeliveryId", asked AS "asked!"
            FROM job_events WHERE job_id = $1 AND asked IS NOT NULL ORDER BY id
            "#,
            job.0,
        )
        .fetch_all(&self.pool)
        .await?
        .into_iter()
        .map(|row| {
            let asked = read_json(|| format!("job {job}"), row.asked)?;
            Ok(AskedRow {
                event: Some(row.event),
                delivery: Some(row.delivery),
                asked,
            })
        })
        .collect::<Result<_, StoreError>>()?;
        let proposals = sqlx::query_as!(
            Proposal,
            r#"SELECT id AS "id: ProposalId", tool, arguments FROM proposals WHERE job_id = $1 ORDER BY id"#,
            job.0,
        )
        .fetch_all(&self.pool)
        .await?;
        let outputs = sqlx::query_as!(
            OutputRow,
            r#"
            SELECT id AS "id: OutputId", kind AS "kind: OutputKind", state AS "status: OutputStatus", body, tries,
                reason AS "reason: Reason", detail, url, created_at, posted_at
            FROM outputs WHERE job_id = $1 ORDER BY id
            "#,
            job.0,
        )
        .fetch_all(&self.pool)
        .await?;
        let tools_excluded = sqlx::query_scalar!(
            "SELECT data FROM job_log WHERE job_id = $1 AND kind = 'tools_excluded' ORDER BY id LIMIT 20",
            job.0,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(Some(JobDetail {
            row,
            data: read_json(|| format!("job {job}"), more.data)?,
            detail: more.detail,
            reply: more.reply,
            stop_by: more.stop_by,
            gates,
            attempts,
            asked,
            proposals,
            outputs,
            spend: self.spend_of(job, None).await?,
            tools_excluded,
        }))
    }

    /// Lines of a job's log after that one, in the order of writing. The end of the log is reached when fewer than `limit` come and the job
    /// was finished before you asked.
    pub async fn job_log(&self, job: JobId, after: LogId, limit: i64) -> Result<Vec<LogRow>, StoreError> {
        let rows = sqlx::query_as!(
            LogRow,
            r#"
            SELECT id AS "id: LogId", attempt, source AS "source: LogSource", seq, kind, data, at
            FROM job_log WHERE job_id = $1 AND id > $2 ORDER BY id LIMIT $3
            "#,
            job.0,
            after.0,
            limit.clamp(1, super::LOG_PAGE_MAX),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// The model requests of a job, oldest first; at most 1,000.
    pub async fn model_requests(&self, job: JobId) -> Result<Vec<ModelRequestRow>, StoreError> {
        let rows = sqlx::query_as!(
            ModelRequestRow,
            r#"
            SELECT id AS "id: ReservationId", attempt, provider, model, at, COALESCE(tokens, worst_tokens) AS "tokens!",
                COALESCE(cost, worst_cost) AS "cost!: Money", status
            FROM model_requests WHERE job_id = $1 ORDER BY id LIMIT 1000
            "#,
            job.0,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Whether the job is finished: then its log gets no more lines. `None` when there is no such job.
    pub async fn is_finished(&self, job: JobId) -> Result<Option<bool>, StoreError> {
        let finished = sqlx::query_scalar!(
            r#"SELECT state = 'finished' AS "finished!" FROM jobs WHERE id = $1"#,
            job.0
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(finished)
    }
}
