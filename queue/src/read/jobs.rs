//! The list of jobs.

use chrono::{DateTime, Utc};
use contract::Micros;
use serde::Serialize;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, TriggerId, WorkerName};
use crate::reason::Reason;
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
        let ids = self.job_page(filter).await?;
        self.job_rows(&ids).await
    }

    /// The numbers of a page. One statement per leading filter, each with its index: a plan that serves every filter would serve none.
    async fn job_page(&self, filter: &JobFilter) -> Result<Vec<i64>, StoreError> {
        let before = filter.before.map_or(i64::MAX, |job| job.0);
        let limit = super::page(filter.limit);
        let state = filter.status.map(JobStatus::word);
        let outcome = filter.outcome.map(Outcome::word);
        let trigger = filter.trigger.as_ref().map(TriggerId::as_str);
        let forge = filter.forge.as_deref();

        let repositories = match &filter.repository {
            Some(name) => Some(
                sqlx::query_scalar!(
                    r#"SELECT id FROM repositories WHERE lower(owner || '/' || name) = lower($1) AND ($2::text IS NULL OR forge = $2)"#,
                    name,
                    forge,
                )
                .fetch_all(&self.pool)
                .await?,
            ),
            None => None,
        };
        let ids = if let Some(repositories) = repositories {
            sqlx::query_scalar!(
                r#"
                SELECT j.id FROM unnest($1::bigint[]) AS one (repository), LATERAL (
                    SELECT id FROM jobs
                    WHERE repository_id = one.repository AND id < $2
                        AND ($4::text IS NULL OR state = $4) AND ($5::text IS NULL OR outcome = $5)
                        AND ($6::text IS NULL OR trigger_id = $6)
                    ORDER BY id DESC LIMIT $3
                ) j
                ORDER BY j.id DESC LIMIT $3
                "#,
                &repositories,
                before,
                limit,
                state,
                outcome,
                trigger,
            )
            .fetch_all(&self.pool)
            .await?
        } else if let Some(trigger) = trigger {
            sqlx::query_scalar!(
                r#"
                SELECT id FROM jobs
                WHERE trigger_id = $1 AND id < $2 AND ($4::text IS NULL OR state = $4) AND ($5::text IS NULL OR outcome = $5)
                    AND ($6::text IS NULL OR forge = $6)
                ORDER BY id DESC LIMIT $3
                "#,
                trigger,
                before,
                limit,
                state,
                outcome,
                forge,
            )
            .fetch_all(&self.pool)
            .await?
        } else if let Some(outcome) = outcome {
            sqlx::query_scalar!(
                r#"
                SELECT id FROM jobs
                WHERE state = 'finished' AND outcome = $1 AND id < $2 AND ($4::text IS NULL OR forge = $4)
                    AND ($5::text IS NULL OR state = $5)
                ORDER BY id DESC LIMIT $3
                "#,
                outcome,
                before,
                limit,
                forge,
                state,
            )
            .fetch_all(&self.pool)
            .await?
        } else if let Some(state) = filter.status.filter(|status| *status != JobStatus::Finished) {
            sqlx::query_scalar!(
                r#"
                SELECT id FROM jobs
                WHERE state <> 'finished' AND state = $1 AND id < $2 AND ($4::text IS NULL OR forge = $4)
                ORDER BY id DESC LIMIT $3
                "#,
                state.word(),
                before,
                limit,
                forge,
            )
            .fetch_all(&self.pool)
            .await?
        } else {
            sqlx::query_scalar!(
                r#"
                SELECT id FROM jobs
                WHERE id < $1 AND ($3::text IS NULL OR state = $3) AND ($4::text IS NULL OR forge = $4)
                ORDER BY id DESC LIMIT $2
                "#,
                before,
                limit,
                state,
                forge,
            )
            .fetch_all(&self.pool)
            .await?
        };
        Ok(ids)
    }

    /// What a list shows of these jobs, newest first.
    pub(crate) async fn job_rows(&self, ids: &[i64]) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query!(
            r#"
            SELECT j.id AS "job: JobId", j.state AS "state: JobStatus", j.not_before, j.hold_until, j.worker AS "worker: WorkerName",
                j.attempt AS "attempt: Attempt", j.reason AS "reason: Reason", j.outcome AS "outcome: Outcome", j.finished_at,
                j.trigger_id AS "trigger: TriggerId", j.flow, j.forge, r.owner || '/' || r.name AS "repository!", j.subject,
                j.title, j.actor, j.created_at, j.started_at, j.turns, j.stop_at IS NOT NULL AS "stop_requested!",
                COALESCE(spent.tokens, 0)::bigint AS "tokens!", COALESCE(spent.cost, 0)::bigint AS "cost!"
            FROM jobs j
            JOIN repositories r ON r.id = j.repository_id
            LEFT JOIN LATERAL (
                SELECT sum(s.tokens) AS tokens, sum(s.cost) AS cost FROM run_spend s WHERE s.job_id = j.id
            ) spent ON true
            WHERE j.id = ANY ($1)
            ORDER BY j.id DESC
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|row| {
                // the CHECK of the table promises each of these
                let broken = |what: &str| StoreError::Unreadable {
                    what: format!("job {}", row.job),
                    error: format!("no {what}"),
                };
                let state = match row.state {
                    JobStatus::Queued => JobState::Queued {
                        not_before: row.not_before,
                        waits_for: row.reason,
                    },
                    JobStatus::Held => JobState::Held {
                        reason: row.reason.ok_or_else(|| broken("reason"))?,
                        until: row.hold_until,
                    },
                    JobStatus::Running => JobState::Running {
                        worker: row.worker.clone().ok_or_else(|| broken("worker"))?,
                        attempt: row.attempt,
                    },
                    JobStatus::Finished => JobState::Finished {
                        at: row.finished_at.ok_or_else(|| broken("end"))?,
                        outcome: row.outcome.ok_or_else(|| broken("outcome"))?,
                        reason: row.reason.ok_or_else(|| broken("reason"))?,
                    },
                };
                Ok(JobRow {
                    job: row.job,
                    state,
                    trigger: row.trigger,
                    flow: row.flow,
                    forge: row.forge,
                    repository: row.repository,
                    subject: row.subject,
                    title: row.title,
                    actor: row.actor,
                    attempt: row.attempt.0,
                    created_at: row.created_at,
                    started_at: row.started_at,
                    turns: row.turns,
                    cost: Micros(row.cost),
                    tokens: row.tokens,
                    stop_requested: row.stop_requested,
                })
            })
            .collect()
    }
}
