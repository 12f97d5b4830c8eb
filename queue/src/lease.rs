//! Leases: how a worker keeps a job, and how it loses it.
//!
//! No wall clock decides about a lease. The holder raises a counter; who wants to rescue the job reads the counters
//! ([`Queue::leases`]), waits a whole lease by its own monotonic clock, and [`Queue::rescue`] acts only if the counter still stands there.
//! A worker that starts again takes its own running jobs over with a new lease number ([`Queue::adopt`]).

use std::time::Duration;

use serde::Serialize;
use sqlx::PgConnection;

use crate::Queue;
use crate::claim::{Claim, Taken, asked_of};
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, LeaseNo, RepositoryKey, WorkerName};
use crate::notify::Channel;
use crate::reason::Reason;

/// How long a job stays with a worker that says nothing.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often a holder says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the lane of a rescued job stays closed while its container was not seen gone: a runner whose gateway is gone ends itself
/// after two minutes.
pub const CONTAINER_GRACE: Duration = Duration::from_secs(180);
/// How many attempts an infrastructure failure may use up, as long as nothing was spent.
pub const MAX_ATTEMPTS: i32 = 3;

/// A running job's lease as it stands. Equal in all fields later on means: its holder said nothing in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct LeaseRow {
    /// The job.
    pub job: JobId,
    /// Its attempt.
    pub attempt: Attempt,
    /// Its lease number.
    pub lease: LeaseNo,
    /// The holder's counter.
    pub beat: i64,
}

/// What became of a job whose worker said nothing for a whole lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescued {
    /// Nothing was spent: it waits again.
    BackInQueue,
    /// It may have spent, or its attempts are used up: it is over, with `worker-lost` or `attempts-used-up`.
    Failed,
    /// Somebody lives after all, or somebody was quicker.
    NotNeeded,
}

/// A job that a starting worker finds as its own.
#[derive(Debug, Clone)]
pub struct Adoptable {
    /// The job.
    pub job: JobId,
    /// The attempt that runs.
    pub attempt: Attempt,
    /// The container, once it was made.
    pub container: Option<String>,
    /// Whether the container was started.
    pub started: bool,
}

impl Queue {
    /// Says that the holder lives. Returns the jobs that are lost: kill their containers.
    pub async fn heartbeat(&self, claims: &[&Claim]) -> Result<Vec<JobId>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let alive = sqlx::query_scalar!(
            r#"
            UPDATE jobs j SET beat = j.beat + 1
            FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS mine (job, attempt, lease)
            WHERE j.id = mine.job AND j.state = 'running' AND j.attempt = mine.attempt AND j.lease_no = mine.lease
            RETURNING j.id AS "job: JobId"
            "#,
            &claims.iter().map(|claim| claim.job.0).collect::<Vec<_>>(),
            &claims.iter().map(|claim| claim.attempt.0).collect::<Vec<_>>(),
            &claims.iter().map(|claim| claim.lease.0).collect::<Vec<_>>(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(claims
            .iter()
            .map(|claim| claim.job)
            .filter(|job| !alive.contains(job))
            .collect())
    }

    /// All running jobs' leases, for whoever watches over them.
    pub async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        let rows = sqlx::query_as!(
            LeaseRow,
            r#"
            SELECT id AS "job: JobId", attempt AS "attempt: Attempt", lease_no AS "lease: LeaseNo", beat
            FROM jobs WHERE state = 'running' ORDER BY id
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Takes a job from a worker that is silent, if its lease still stands where it stood. When a container of it was made and not seen
    /// gone, its lane stays closed for [`CONTAINER_GRACE`]: the container may live on for that long.
    pub async fn rescue(&self, seen: &LeaseRow) -> Result<Rescued, StoreError> {
        let mut transaction = self.pool.begin().await?;
        // Locked first and looked at with the next statement's snapshot: a reservation that was being committed is seen then.
        let row = sqlx::query!(
            r#"
            SELECT lane_id, attempts_used FROM jobs
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 AND beat = $4
            FOR NO KEY UPDATE
            "#,
            seen.job.0,
            seen.attempt.0,
            seen.lease.0,
            seen.beat,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            transaction.rollback().await?;
            return Ok(Rescued::NotNeeded);
        };
        let left = sqlx::query!(
            r#"
            SELECT EXISTS (SELECT FROM model_requests WHERE job_id = $1 AND attempt = $2) AS "spent!",
                EXISTS (SELECT FROM attempts WHERE job_id = $1 AND attempt = $2 AND container IS NOT NULL AND gone_at IS NULL) AS "container!"
            "#,
            seen.job.0,
            seen.attempt.0,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let closed = if left.container {
            CONTAINER_GRACE
        } else {
            Duration::ZERO
        };
        let used = row.attempts_used + 1;

        if !left.spent && used < MAX_ATTEMPTS {
            sqlx::query!(
                r#"
                UPDATE jobs
                SET state = 'queued', worker = NULL, reason = 'worker-gone', detail = '', not_before = now(), attempts_used = $2
                WHERE id = $1
                "#,
                seen.job.0,
                used,
            )
            .execute(&mut *transaction)
            .await?;
            free_lane(&mut transaction, row.lane_id, seen.job, 1, closed).await?;
            end_attempt(&mut transaction, seen.job, seen.attempt, true, Some("worker-gone")).await?;
            transaction.commit().await?;
            self.notifier.say(Channel::Jobs);
            return Ok(Rescued::BackInQueue);
        }

        let reason = if left.spent {
            Reason::WorkerLost
        } else {
            Reason::AttemptsUsedUp
        };
        sqlx::query!(
            r#"
            UPDATE jobs
            SET state = 'finished', worker = NULL, outcome = 'failed', reason = $2, detail = '', finished_at = now(), attempts_used = $3
            WHERE id = $1
            "#,
            seen.job.0,
            reason.word(),
            used,
        )
        .execute(&mut *transaction)
        .await?;
        free_lane(&mut transaction, row.lane_id, seen.job, 0, closed).await?;
        end_attempt(&mut transaction, seen.job, seen.attempt, true, Some(reason.word())).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        Ok(Rescued::Failed)
    }

    /// The running jobs of that worker name: what a starting worker may find containers of.
    pub async fn adoptable(&self, worker: &WorkerName) -> Result<Vec<Adoptable>, StoreError> {
        let rows = sqlx::query_as!(
            Adoptable,
            r#"
            SELECT j.id AS "job: JobId", j.attempt AS "attempt: Attempt", a.container, a.started_at IS NOT NULL AS "started!"
            FROM jobs j JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt
            WHERE j.state = 'running' AND j.worker = $1
            ORDER BY j.id
            "#,
            worker.as_str(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Takes over a running job of one's own name, with a new lease number: whoever had the old one can write nothing more.
    /// `None` when it is not running any more in that attempt.
    pub async fn adopt(&self, worker: &WorkerName, job: JobId, attempt: Attempt) -> Result<Option<Claim>, StoreError> {
        let taken = sqlx::query_as!(
            Taken,
            r#"
            UPDATE jobs SET lease_no = lease_no + 1, beat = 0
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND worker = $3
            RETURNING id AS "job: JobId", attempt AS "attempt: Attempt", lease_no AS "lease: LeaseNo", attempts_used,
                repository_id AS "repository: RepositoryKey", data, created_at
            "#,
            job.0,
            attempt.0,
            worker.as_str(),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(taken) = taken else {
            return Ok(None);
        };
        let asked = asked_of(&self.pool, &[job]).await?.remove(&job).unwrap_or_default();
        Ok(Some(taken.into_claim(worker, asked)?))
    }
}

/// Frees the lane of a job that runs no more: in the transaction that takes it out of `running`. `queued` is how many jobs went back into it.
pub(crate) async fn free_lane(
    connection: &mut PgConnection,
    lane: i64,
    job: JobId,
    queued: i32,
    closed: Duration,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"
        UPDATE lanes
        SET running = NULL, queued = queued + $3, since = clock_timestamp(),
            free_at = CASE WHEN $4::float8 > 0 THEN now() + make_interval(secs => $4) ELSE free_at END
        WHERE id = $1 AND running = $2
        "#,
        lane,
        job.0,
        queued,
        closed.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Closes an attempt's row. Whether it spent is what its model requests say.
pub(crate) async fn end_attempt(
    connection: &mut PgConnection,
    job: JobId,
    attempt: Attempt,
    counted: bool,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"
        UPDATE attempts
        SET ended_at = now(), counted = $3, reason = $4,
            spent = EXISTS (SELECT FROM model_requests WHERE job_id = $1 AND attempt = $2)
        WHERE job_id = $1 AND attempt = $2
        "#,
        job.0,
        attempt.0,
        counted,
        reason,
    )
    .execute(connection)
    .await?;
    Ok(())
}
