//! How a running job leaves its worker: finished, back in the queue, or held.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, Transaction};

use crate::Queue;
use crate::claim::Claim;
use crate::error::StoreError;
use crate::ids::{Attempt, JobId};
use crate::lease::{MAX_ATTEMPTS, end_attempt, free_lane};
use crate::notify::Channel;
use crate::outbox::{NewOutput, insert_output};
use crate::reason::Reason;
use crate::state::{JobStatus, Outcome};
use crate::values::{clean, without_nul};

/// The end of a job.
#[derive(Debug, Clone)]
pub struct Finish {
    /// How.
    pub outcome: Outcome,
    /// Why, in one word.
    pub reason: Reason,
    /// More about it, for a person; no payload text, no secrets.
    pub detail: String,
    /// The container's exit code, when there was one.
    pub exit_code: Option<i32>,
    /// Turns of the agent, as the runner counted them.
    pub turns: Option<i32>,
    /// The agent's answer: bounded, as the job wrote it, before it is rebuilt.
    pub reply: Option<String>,
    /// What goes to the forge, made in the same transaction: the answer or the refusal.
    pub outputs: Vec<NewOutput>,
}

/// What became of a job that went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WentBack {
    /// It waits again.
    Queued,
    /// Its attempts are used up, or it may have spent: the caller finishes it as failed (it still has it).
    MayNot {
        /// A model request of this attempt was forwarded.
        spent: bool,
        /// Attempts that counted, this one included.
        attempts_used: i32,
    },
}

impl Queue {
    /// Ends the job. What it has spent is counted from the rows of its model requests. Notifies about jobs and outputs.
    ///
    /// The caller has seen the container gone: the next job of the lane may start at once.
    pub async fn finish(&self, claim: &Claim, finish: &Finish) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let lane = sqlx::query_scalar!(
            r#"
            UPDATE jobs
            SET state = 'finished', worker = NULL, outcome = $4, reason = $5, detail = $6, finished_at = now(),
                turns = COALESCE($7, turns), reply = COALESCE($8, reply), attempts_used = attempts_used + 1
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3
            RETURNING lane_id
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            finish.outcome.word(),
            finish.reason.word(),
            clean(&finish.detail),
            finish.turns,
            finish.reply.as_deref().map(without_nul),
        )
        .fetch_optional(&mut *transaction)
        .await?
        .ok_or_else(|| claim.lost())?;
        free_lane(&mut transaction, lane, claim.job, 0, Duration::ZERO).await?;
        end_attempt(
            &mut transaction,
            claim.job,
            claim.attempt,
            true,
            Some(finish.reason.word()),
        )
        .await?;
        container_is_gone(&mut transaction, claim.job, claim.attempt, finish.exit_code).await?;
        for output in &finish.outputs {
            insert_output(&mut transaction, Some(claim.job), None, output).await?;
        }
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        if !finish.outputs.is_empty() {
            self.notifier.say(Channel::Outputs);
        }
        Ok(())
    }

    /// Back to the queue after an infrastructure failure: uses up an attempt, and only while nothing was spent.
    pub async fn back_to_queue(
        &self,
        claim: &Claim,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<WentBack, StoreError> {
        let attempts_used = claim.attempts_used + 1;
        let mut transaction = self.pool.begin().await?;
        claim.lock(&mut transaction).await?;
        let spent = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM model_requests WHERE job_id = $1 AND attempt = $2) AS "spent!""#,
            claim.job.0,
            claim.attempt.0,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if spent || attempts_used >= MAX_ATTEMPTS {
            transaction.rollback().await?;
            return Ok(WentBack::MayNot { spent, attempts_used });
        }
        self.send_back(transaction, claim, reason, detail, delay, true).await?;
        Ok(WentBack::Queued)
    }

    /// Back to the queue without using up an attempt: the worker stops cleanly, the deployment is paused, the image is elsewhere.
    /// Only for jobs without a container; [`StoreError::WrongState`] when one was made.
    pub async fn hand_back(
        &self,
        claim: &Claim,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        claim.lock(&mut transaction).await?;
        no_container(&mut transaction, claim).await?;
        self.send_back(transaction, claim, reason, detail, delay, false).await
    }

    async fn send_back(
        &self,
        mut transaction: Transaction<'_, Postgres>,
        claim: &Claim,
        reason: Reason,
        detail: &str,
        delay: Duration,
        counts: bool,
    ) -> Result<(), StoreError> {
        let lane = sqlx::query_scalar!(
            r#"
            UPDATE jobs
            SET state = 'queued', worker = NULL, reason = $4, detail = $5, not_before = now() + make_interval(secs => $6),
                attempts_used = attempts_used + $7
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3
            RETURNING lane_id
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            reason.word(),
            clean(detail),
            delay.as_secs_f64(),
            i32::from(counts),
        )
        .fetch_optional(&mut *transaction)
        .await?
        .ok_or_else(|| claim.lost())?;
        free_lane(&mut transaction, lane, claim.job, 1, Duration::ZERO).await?;
        end_attempt(&mut transaction, claim.job, claim.attempt, counts, Some(reason.word())).await?;
        container_is_gone(&mut transaction, claim.job, claim.attempt, None).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        Ok(())
    }

    /// Holds a running job that has no container; a person or `until` lets it go on.
    pub async fn hold(&self, claim: &Claim, reason: Reason, until: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        claim.lock(&mut transaction).await?;
        no_container(&mut transaction, claim).await?;
        let lane = sqlx::query_scalar!(
            r#"
            UPDATE jobs SET state = 'held', worker = NULL, reason = $4, detail = '', hold_until = $5
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3
            RETURNING lane_id
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            reason.word(),
            until,
        )
        .fetch_optional(&mut *transaction)
        .await?
        .ok_or_else(|| claim.lost())?;
        free_lane(&mut transaction, lane, claim.job, 0, Duration::ZERO).await?;
        end_attempt(&mut transaction, claim.job, claim.attempt, false, Some(reason.word())).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Puts held jobs whose time has come back into the queue.
    pub async fn release_due(&self) -> Result<Vec<JobId>, StoreError> {
        let due = sqlx::query_scalar!(
            r#"SELECT id AS "job: JobId" FROM jobs WHERE state = 'held' AND hold_until <= now() ORDER BY id LIMIT 1000"#,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut released = Vec::new();
        for job in due {
            if self.release_if(job, true).await? {
                released.push(job);
            }
        }
        Ok(released)
    }

    /// Lets a held job go on at a person's word. Audited.
    pub async fn release(&self, job: JobId, who: &str) -> Result<bool, StoreError> {
        let released = self.release_if(job, false).await?;
        if released {
            self.audit(who, "release", &format!("job {job}"), &serde_json::json!({}))
                .await?;
        }
        Ok(released)
    }

    async fn release_if(&self, job: JobId, only_due: bool) -> Result<bool, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let Some(lane) = lock_lane_of(&mut transaction, job).await? else {
            return Ok(false);
        };
        let written = sqlx::query!(
            r#"
            UPDATE jobs SET state = 'queued', reason = NULL, detail = '', hold_until = NULL, not_before = now()
            WHERE id = $1 AND state = 'held' AND (NOT $2 OR hold_until <= now())
            "#,
            job.0,
            only_due,
        )
        .execute(&mut *transaction)
        .await?;
        if written.rows_affected() == 0 {
            // At once: a claim passes by a lane that is locked.
            transaction.rollback().await?;
            return Ok(false);
        }
        sqlx::query!("UPDATE lanes SET queued = queued + 1 WHERE id = $1", lane)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        Ok(true)
    }

    /// Ends jobs that were queued for longer than `age`, as `expired`. Those that waited for a pause included.
    pub async fn expire(&self, age: Duration) -> Result<Vec<JobId>, StoreError> {
        let old = sqlx::query_scalar!(
            r#"
            SELECT id AS "job: JobId" FROM jobs
            WHERE state = 'queued' AND created_at < now() - make_interval(secs => $1) ORDER BY id LIMIT 1000
            "#,
            age.as_secs_f64(),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut expired = Vec::new();
        for job in old {
            let mut transaction = self.pool.begin().await?;
            if end_waiting(
                &mut transaction,
                job,
                false,
                Outcome::Expired,
                Reason::QueuedTooLong,
                "",
            )
            .await?
            {
                transaction.commit().await?;
                expired.push(job);
            } else {
                transaction.rollback().await?;
            }
        }
        Ok(expired)
    }
}

/// Locks the lane of a job before the job itself, as the claim does: two that come from different sides never wait for each other.
pub(crate) async fn lock_lane_of(connection: &mut PgConnection, job: JobId) -> Result<Option<i64>, StoreError> {
    let lane = sqlx::query_scalar!(
        "SELECT k.id FROM lanes k WHERE k.id = (SELECT lane_id FROM jobs WHERE id = $1) FOR NO KEY UPDATE",
        job.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(lane)
}

/// Ends a job that nobody runs. `false` when somebody does, or it is over.
pub(crate) async fn end_waiting(
    connection: &mut PgConnection,
    job: JobId,
    held_too: bool,
    outcome: Outcome,
    reason: Reason,
    detail: &str,
) -> Result<bool, StoreError> {
    let Some(lane) = lock_lane_of(connection, job).await? else {
        return Ok(false);
    };
    // The state before is what the lane's count depends on; it can not change under the lane's lock. A running job's row is not waited for:
    // who has it may be waiting for the lane.
    let Some(before) = sqlx::query_scalar!(
        "SELECT state FROM jobs WHERE id = $1 AND state IN ('queued', 'held') FOR NO KEY UPDATE",
        job.0
    )
    .fetch_optional(&mut *connection)
    .await?
    else {
        return Ok(false);
    };
    let queued = before == JobStatus::Queued.word();
    let held = held_too && before == JobStatus::Held.word();
    if !(queued || held) {
        return Ok(false);
    }
    sqlx::query!(
        r#"
        UPDATE jobs
        SET state = 'finished', outcome = $2, reason = $3, detail = $4, finished_at = now(), hold_until = NULL
        WHERE id = $1
        "#,
        job.0,
        outcome.word(),
        reason.word(),
        clean(detail),
    )
    .execute(&mut *connection)
    .await?;
    if queued {
        sqlx::query!("UPDATE lanes SET queued = queued - 1 WHERE id = $1", lane)
            .execute(&mut *connection)
            .await?;
    }
    Ok(true)
}

async fn no_container(connection: &mut PgConnection, claim: &Claim) -> Result<(), StoreError> {
    let made = sqlx::query_scalar!(
        r#"SELECT container IS NOT NULL AS "made!" FROM attempts WHERE job_id = $1 AND attempt = $2"#,
        claim.job.0,
        claim.attempt.0,
    )
    .fetch_one(connection)
    .await?;
    if made {
        return Err(StoreError::WrongState {
            what: "job",
            id: claim.job.0,
            state: "running in a container".to_owned(),
        });
    }
    Ok(())
}

/// Records that the container of an attempt, if one was made, is gone.
pub(crate) async fn container_is_gone(
    connection: &mut PgConnection,
    job: JobId,
    attempt: Attempt,
    exit_code: Option<i32>,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"
        UPDATE attempts SET gone_at = COALESCE(gone_at, now()), exit_code = COALESCE($3, exit_code)
        WHERE job_id = $1 AND attempt = $2 AND container IS NOT NULL
        "#,
        job.0,
        attempt.0,
        exit_code,
    )
    .execute(connection)
    .await?;
    Ok(())
}
