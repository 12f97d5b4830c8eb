//! The outbox: what goes to a forge, once.
//!
//! A POST is not idempotent. So the intent with an unguessable marker is committed, then posted, then recorded. [`Output::tries`] above
//! 1 means that an earlier try may have reached the forge: whoever posts searches for the marker (and our account) first. Outputs depend on no
//! slot and no job's lease: a poster has one for a lease by PostgreSQL's clock.
//!
//! Once is a constraint: one answer per job and ordinal, one refusal and one status comment per job, one reaction per event.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Queue;
use crate::claim::Claim;
use crate::data::Repository;
use crate::error::StoreError;
use crate::ids::{EventId, JobId, OutputId, WorkerName};
use crate::notify::Channel;
use crate::reason::Reason;
use crate::state::{JobStatus, Outcome, OutputKind};
use crate::values::{clean, seconds, without_nul};

/// Something to be posted.
#[derive(Debug, Clone)]
pub struct NewOutput {
    /// What.
    pub kind: OutputKind,
    /// The forge's configured name.
    pub forge: String,
    /// Where.
    pub repository: Repository,
    /// Number of the issue or pull request. `None` only for reactions on what has no subject.
    pub subject: Option<i64>,
    /// The comment that a reaction goes to. `None`: the subject itself.
    pub comment: Option<i64>,
    /// The reaction's word, or the text as it will be posted but for the marker: rebuilt already.
    pub body: String,
    /// Which of several answers of one job: 0 for the first. Always 0 for other kinds.
    pub ordinal: i16,
    /// The marker. `None`: PostgreSQL makes one up (`gen_random_uuid`).
    pub marker: Option<Uuid>,
}

/// Something to be posted that a worker has for the time of a lease.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its number.
    pub id: OutputId,
    /// The proof that later writes need.
    pub lease: i64,
    /// What.
    pub kind: OutputKind,
    /// The marker, committed before anything was posted.
    pub marker: Uuid,
    /// The forge's configured name.
    pub forge: String,
    /// Where.
    pub repository: Repository,
    /// Number of the issue or pull request.
    pub subject: Option<i64>,
    /// The comment that a reaction goes to.
    pub comment: Option<i64>,
    /// The text.
    pub body: String,
    /// Which edition of the text: a status comment is edited.
    pub revision: i32,
    /// What the forge called it, when it was posted before: edit that.
    pub remote_id: Option<i64>,
    /// The job that it belongs to.
    pub job: Option<JobId>,
    /// The event that it belongs to.
    pub event: Option<EventId>,
    /// How often it was taken, this time included. Above 1: an earlier try may have arrived.
    pub tries: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// How long ago that is, by PostgreSQL's clock.
    pub age: Duration,
}

/// A post of ours, as the forge names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnPost {
    /// The forge's configured name.
    pub forge: String,
    /// The forge's number of the comment.
    pub remote_id: i64,
}

/// Inserts an output, or finds the one that is there: the uniqueness is the table's.
pub(crate) async fn insert_output(
    connection: &mut PgConnection,
    job: Option<JobId>,
    event: Option<EventId>,
    new: &NewOutput,
) -> Result<OutputId, StoreError> {
    let made = sqlx::query_scalar!(
        r#"
        INSERT INTO outputs (kind, marker, job_id, event_id, ordinal, forge, remote_id, owner, name, subject, comment, body)
        VALUES ($1, COALESCE($2, gen_random_uuid()), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT DO NOTHING
        RETURNING id AS "id: OutputId"
        "#,
        new.kind.word(),
        new.marker,
        job.map(|job| job.0),
        event.map(|event| event.0),
        new.ordinal,
        new.forge,
        new.repository.id,
        new.repository.owner,
        new.repository.name,
        new.subject,
        new.comment,
        without_nul(&new.body),
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(id) = made {
        return Ok(id);
    }
    let there = sqlx::query_scalar!(
        r#"
        SELECT id AS "id!: OutputId" FROM outputs WHERE $1 = 'reaction' AND kind = 'reaction' AND event_id = $3
        UNION ALL
        SELECT id FROM outputs WHERE $1 <> 'reaction' AND kind <> 'reaction' AND job_id = $2 AND kind = $1 AND ordinal = $4
        "#,
        new.kind.word(),
        job.map(|job| job.0),
        event.map(|event| event.0),
        new.ordinal,
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(there)
}

/// A job that is over and whose end nobody has said yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// Which.
    pub job: JobId,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// There is no answer; otherwise only its status comment still says that it runs.
    pub answer: bool,
}

impl Queue {
    /// Makes an output of a running job (fenced). A second one of the same kind and ordinal is not made; returns the one that is there.
    pub async fn put_output(&self, claim: &Claim, new: &NewOutput) -> Result<OutputId, StoreError> {
        let mut transaction = self.pool.begin().await?;
        claim.hold_fast(&mut transaction).await?;
        let id = insert_output(&mut transaction, Some(claim.job), None, new).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Outputs);
        Ok(id)
    }

    /// Makes the output of a job that is over (rescued, expired, cancelled). Once by the same constraint.
    pub async fn put_output_of_finished(&self, job: JobId, new: &NewOutput) -> Result<OutputId, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let state = sqlx::query_scalar!("SELECT state FROM jobs WHERE id = $1 FOR KEY SHARE", job.0)
            .fetch_optional(&mut *transaction)
            .await?
            .ok_or_else(|| StoreError::NotFound {
                what: "job",
                id: job.to_string(),
            })?;
        if state != JobStatus::Finished.word() {
            return Err(StoreError::WrongState {
                what: "job",
                id: job.0,
                state,
            });
        }
        let id = insert_output(&mut transaction, Some(job), None, new).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Outputs);
        Ok(id)
    }

    /// Jobs that ended within `age` and whose end was not said on the forge, though it should have been: whoever ended them died before.
    /// Jobs that say nothing by their trigger's mode are among them; who reads their data knows.
    pub async fn unanswered(&self, age: Duration) -> Result<Vec<Unanswered>, StoreError> {
        let rows = sqlx::query_as!(
            Unanswered,
            r#"
            SELECT x.job AS "job!: JobId", x.outcome AS "outcome!: Outcome", x.reason AS "reason!: Reason", x.answer AS "answer!"
            FROM (
                SELECT j.id AS job, j.outcome, j.reason, true AS answer, j.finished_at FROM jobs j
                WHERE j.state = 'finished' AND j.outcome IN ('failed', 'expired') AND j.subject IS NOT NULL
                    AND j.finished_at > now() - make_interval(secs => $1)
                    -- A count, since an EXISTS may become a look at the whole table.
                    AND (SELECT count(*) FROM outputs o WHERE o.job_id = j.id AND o.kind IN ('comment', 'refusal')) = 0
                UNION ALL
                SELECT j.id, j.outcome, j.reason, false, j.finished_at FROM outputs o JOIN jobs j ON j.id = o.job_id
                WHERE o.kind = 'status' AND o.revision = 1 AND j.state = 'finished'
                    AND j.finished_at > now() - make_interval(secs => $1)
            ) x
            ORDER BY x.finished_at, x.job LIMIT 1000
            "#,
            age.as_secs_f64(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Makes the status comment of the job or gives it a new text, to be edited in place. Not fenced: also the end of a lost worker's
    /// job finishes it.
    pub async fn put_status(&self, job: JobId, new: &NewOutput) -> Result<OutputId, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let there = sqlx::query_scalar!(
            r#"
            UPDATE outputs
            SET body = $2, revision = revision + 1, not_before = now(),
                state = CASE WHEN state = 'posted' THEN 'pending' ELSE state END
            WHERE job_id = $1 AND kind = 'status' AND body <> $2
            RETURNING id AS "id: OutputId"
            "#,
            job.0,
            without_nul(&new.body),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let id = match there {
            Some(id) => id,
            None => insert_output(&mut transaction, Some(job), None, new).await?,
        };
        transaction.commit().await?;
        self.notifier.say(Channel::Outputs);
        Ok(id)
    }

    /// The oldest output that is due, for `lease`. `None` when there is nothing to post now.
    pub async fn take_output(&self, worker: &WorkerName, lease: Duration) -> Result<Option<Output>, StoreError> {
        let row = sqlx::query!(
            r#"
            WITH due AS (
                SELECT id FROM outputs
                WHERE state = 'pending' AND not_before <= now() AND (lease_until IS NULL OR lease_until < now())
                ORDER BY not_before, id
                LIMIT 1
                FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE outputs o
            SET worker = $1, lease_until = now() + make_interval(secs => $2), lease_no = lease_no + 1, tries = tries + 1
            FROM due
            WHERE o.id = due.id
            RETURNING o.id AS "id: OutputId", o.lease_no, o.kind AS "kind: OutputKind", o.marker, o.forge, o.remote_id, o.owner, o.name,
                o.subject, o.comment, o.body, o.revision, o.posted_id, o.job_id AS "job: JobId", o.event_id AS "event: EventId",
                o.tries, o.created_at, extract(epoch FROM now() - o.created_at)::float8 AS "age!"
            "#,
            worker.as_str(),
            lease.as_secs_f64(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| Output {
            id: row.id,
            lease: row.lease_no,
            kind: row.kind,
            marker: row.marker,
            forge: row.forge,
            repository: Repository {
                id: row.remote_id,
                owner: row.owner,
                name: row.name,
            },
            subject: row.subject,
            comment: row.comment,
            body: row.body,
            revision: row.revision,
            remote_id: row.posted_id,
            job: row.job,
            event: row.event,
            tries: row.tries,
            created_at: row.created_at,
            age: seconds(row.age),
        }))
    }

    /// The forge has it. It is recorded as our own post, before anything else. Whose text changed meanwhile is due again.
    pub async fn output_posted(
        &self,
        output: &Output,
        remote_id: Option<i64>,
        url: Option<&str>,
    ) -> Result<(), StoreError> {
        if let (Some(remote_id), true) = (remote_id, output.kind != OutputKind::Reaction) {
            // Kept even when the lease is gone: it is ours, whoever says so.
            sqlx::query!(
                "INSERT INTO own_posts (forge, remote_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                output.forge,
                remote_id,
            )
            .execute(&self.pool)
            .await?;
        }
        let written = sqlx::query!(
            r#"
            UPDATE outputs
            SET state = CASE WHEN revision = $3 THEN 'posted' ELSE 'pending' END,
                posted_at = now(), posted_id = COALESCE($4, posted_id), url = COALESCE($5, url),
                tries = 0, reason = NULL, detail = '', worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state = 'pending'
            "#,
            output.id.0,
            output.lease,
            output.revision,
            remote_id,
            url,
        )
        .execute(&self.pool)
        .await?;
        output.still_ours(written.rows_affected())
    }

    /// Not now.
    pub async fn delay_output(
        &self,
        output: &Output,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            UPDATE outputs
            SET reason = $3, detail = $4, not_before = now() + make_interval(secs => $5), worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state = 'pending'
            "#,
            output.id.0,
            output.lease,
            reason.word(),
            clean(detail),
            delay.as_secs_f64(),
        )
        .execute(&self.pool)
        .await?;
        output.still_ours(written.rows_affected())
    }

    /// Not at all.
    pub async fn fail_output(&self, output: &Output, reason: Reason, detail: &str) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            UPDATE outputs
            SET state = 'failed', reason = $3, detail = $4, worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state = 'pending'
            "#,
            output.id.0,
            output.lease,
            reason.word(),
            clean(detail),
        )
        .execute(&self.pool)
        .await?;
        output.still_ours(written.rows_affected())
    }

    /// Whether we wrote that comment. Kept for ever.
    pub async fn is_own_post(&self, forge: &str, remote_id: i64) -> Result<bool, StoreError> {
        let own = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM own_posts WHERE forge = $1 AND remote_id = $2) AS "own!""#,
            forge,
            remote_id,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(own)
    }
}

impl Output {
    /// An UPDATE that carries the lease number either hit the row or somebody else has it.
    fn still_ours(&self, written: u64) -> Result<(), StoreError> {
        if written == 1 {
            Ok(())
        } else {
            Err(StoreError::TakenOver {
                what: "output",
                id: self.id.0,
            })
        }
    }
}
