//! Claims and leases: which worker has which job, and how it loses it.
//!
//! The fencing token is (attempt, lease number). A [`Claim`] carries it, and every write about a running job takes a claim; an
//! UPDATE that finds the token gone returns [`StoreError::LeaseLost`] and has written nothing.
//!
//! No wall clock decides about a lease. The holder raises a counter; who wants to rescue the job reads the counters
//! ([`Queue::leases`]), waits a whole lease by its own monotonic clock, and [`Queue::rescue`] acts only if the counter still stands there.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};

use crate::Queue;
use crate::data::{Asked, JobData};
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, LeaseNo, RepositoryKey, WorkerName};
use crate::notify::Channel;
use crate::reason::Reason;
use crate::values::read_json;

/// How long a job stays with a worker that says nothing.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often a holder says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the lane of a rescued job stays closed while its container was not seen gone: a runner whose gateway is gone ends itself
/// after two minutes.
pub const CONTAINER_GRACE: Duration = Duration::from_secs(180);
/// How many attempts an infrastructure failure may use up, as long as nothing was spent.
pub const MAX_ATTEMPTS: i32 = 3;

/// What a worker can take.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Who.
    pub worker: WorkerName,
    /// At most so many.
    pub slots: u16,
    /// The highest version of [`JobData`] that it reads.
    pub max_data_version: u32,
    /// Images that are known to be missing on its host: jobs that need one are left to others.
    pub not_images: Vec<String>,
}

/// Proof that this worker has the job, and what the job is.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// Which attempt: the first half of the fencing token.
    pub attempt: Attempt,
    /// The second half.
    pub lease: LeaseNo,
    /// Who has it.
    pub worker: WorkerName,
    /// How many attempts before this one counted.
    pub attempts_used: i32,
    /// The repository's turn in the fair order.
    pub repository: RepositoryKey,
    /// What to do.
    pub data: JobData,
    /// All that is asked, in the order of arrival.
    pub asked: Vec<Asked>,
    /// When the job was made.
    pub created_at: DateTime<Utc>,
}

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

/// A claimed row before its JSON was read.
struct Taken {
    job: JobId,
    attempt: Attempt,
    lease: LeaseNo,
    attempts_used: i32,
    repository: RepositoryKey,
    data: Value,
    created_at: DateTime<Utc>,
}

impl Taken {
    fn into_claim(self, worker: &WorkerName, asked: Vec<Value>) -> Result<Claim, StoreError> {
        let what = || format!("job {}", self.job);
        let asked = asked
            .into_iter()
            .map(|asked| read_json(what, asked))
            .collect::<Result<_, _>>()?;
        Ok(Claim {
            job: self.job,
            attempt: self.attempt,
            lease: self.lease,
            worker: worker.clone(),
            attempts_used: self.attempts_used,
            repository: self.repository,
            data: read_json(what, self.data)?,
            asked,
            created_at: self.created_at,
        })
    }
}

impl Claim {
    /// What a write says when it hit no row.
    pub(crate) fn lost(&self) -> StoreError {
        StoreError::LeaseLost {
            job: self.job,
            attempt: self.attempt,
            lease: self.lease,
        }
    }

    /// An UPDATE that carries the token either hit the row or the lease is gone.
    pub(crate) fn still_ours(&self, written: u64) -> Result<(), StoreError> {
        if written == 1 { Ok(()) } else { Err(self.lost()) }
    }

    /// Keeps the lease from changing hands until the transaction ends; fails when it already did.
    pub(crate) async fn hold_fast(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let held = sqlx::query!(
            r#"SELECT id FROM jobs WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 FOR SHARE"#,
            self.job.0,
            self.attempt.0,
            self.lease.0,
        )
        .fetch_optional(connection)
        .await?;
        held.map(|_| ()).ok_or_else(|| self.lost())
    }
}

impl Claim {
    /// Like [`Claim::hold_fast`], for a transaction that goes on to change the job or that must be the only one to count something of it.
    pub(crate) async fn lock(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let locked = sqlx::query!(
            r#"SELECT id FROM jobs WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 FOR NO KEY UPDATE"#,
            self.job.0,
            self.attempt.0,
            self.lease.0,
        )
        .fetch_optional(connection)
        .await?;
        locked.map(|_| ()).ok_or_else(|| self.lost())
    }
}

impl Queue {
    /// Takes due jobs: fair between repositories, at most one running job per lane, none while paused.
    ///
    /// The next call begins at the repository after the last one served, so no repository is served twice before the others with waiting
    /// lanes were. A job whose data can not be read, though its version is one of ours, is refused at once (`data-unknown`).
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let mut taken = Vec::new();
        // A lane that was claimed and finished between our snapshot and our lock gives nothing although it may have more: look again.
        for _ in 0..3 {
            let wanted = usize::from(request.slots).saturating_sub(taken.len());
            if wanted == 0 {
                break;
            }
            let (some, stale) = self.take_jobs(request, wanted).await?;
            taken.extend(some);
            if stale == 0 {
                break;
            }
        }
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<JobId> = taken.iter().map(|taken| taken.job).collect();
        let mut asked = asked_of(&self.pool, &jobs).await?;

        let mut claims = Vec::with_capacity(taken.len());
        for taken in taken {
            let (job, attempt, lease) = (taken.job, taken.attempt, taken.lease);
            let asked = asked.remove(&job).unwrap_or_default();
            match taken.into_claim(&request.worker, asked) {
                Ok(claim) => claims.push(claim),
                Err(error) => {
                    tracing::warn!(job.id = job.0, %error, "a job can not be read and is refused");
                    self.refuse_unreadable(job, attempt, lease, &error.to_string()).await?;
                }
            }
        }
        Ok(claims)
    }

    /// Where the next tour begins. A process begins its first one at a repository picked by chance: processes that all begin at the same
    /// one would serve the same repositories in step.
    async fn turn(&self) -> Result<i64, StoreError> {
        let served = self.served.load(Ordering::Relaxed);
        if served >= 0 {
            return Ok(served);
        }
        let anywhere = sqlx::query_scalar!(
            r#"SELECT floor(random() * COALESCE(max(id), 0))::bigint AS "anywhere!" FROM repositories"#
        )
        .fetch_one(&self.pool)
        .await?;
        self.served.store(anywhere, Ordering::Relaxed);
        Ok(anywhere)
    }

    /// One tour over the lanes. Also says how many lanes turned out to be stale.
    async fn take_jobs(&self, request: &ClaimRequest, wanted: usize) -> Result<(Vec<Taken>, usize), StoreError> {
        // Two arms, since the tour wraps: first the repositories after the last one served, then those up to it.
        // Lanes change only through the job that was really taken: a stale head is an empty claim, never a stuck lane.
        let rows = sqlx::query!(
            r#"
            WITH a AS (
                SELECT k.id, k.repository_id, h.head
                FROM lanes k CROSS JOIN LATERAL (
                    SELECT j.id AS head FROM jobs j
                    WHERE j.lane_id = k.id AND j.state = 'queued' AND j.not_before <= now()
                        AND j.data_version <= $4 AND j.image <> ALL ($5)
                    ORDER BY j.id LIMIT 1
                ) h
                WHERE k.queued > 0 AND k.running IS NULL AND k.free_at <= now() AND k.repository_id > $2
                    AND NOT EXISTS (SELECT FROM settings WHERE paused_at IS NOT NULL)
                ORDER BY k.repository_id, k.since
                LIMIT $3
                FOR NO KEY UPDATE OF k SKIP LOCKED
            ), b AS (
                SELECT k.id, k.repository_id, h.head
                FROM lanes k CROSS JOIN LATERAL (
                    SELECT j.id AS head FROM jobs j
                    WHERE j.lane_id = k.id AND j.state = 'queued' AND j.not_before <= now()
                        AND j.data_version <= $4 AND j.image <> ALL ($5)
                    ORDER BY j.id LIMIT 1
                ) h
                WHERE k.queued > 0 AND k.running IS NULL AND k.free_at <= now() AND k.repository_id <= $2
                    AND NOT EXISTS (SELECT FROM settings WHERE paused_at IS NOT NULL)
                ORDER BY k.repository_id, k.since
                LIMIT $3
                FOR NO KEY UPDATE OF k SKIP LOCKED
            ), l AS MATERIALIZED (
                SELECT * FROM (TABLE a UNION ALL TABLE b) z LIMIT $3
            ), u AS (
                UPDATE jobs j
                SET state = 'running', worker = $1, attempt = attempt + 1, lease_no = lease_no + 1, beat = 0, reason = NULL, detail = ''
                FROM l
                WHERE j.id = l.head AND j.state = 'queued'
                RETURNING j.id, j.lane_id, j.attempt, j.lease_no, j.attempts_used, j.data, j.created_at
            ), x AS (
                UPDATE lanes k SET running = u.id, queued = k.queued - 1 FROM u WHERE k.id = u.lane_id
            ), t AS (
                INSERT INTO attempts (job_id, attempt, worker) SELECT u.id, u.attempt, $1 FROM u
            )
            SELECT l.repository_id AS "repository!: RepositoryKey", u.id AS "job?: JobId", u.attempt AS "attempt?: Attempt",
                u.lease_no AS "lease?: LeaseNo", u.attempts_used AS "attempts_used?", u.data AS "data?", u.created_at AS "created_at?"
            FROM l LEFT JOIN u ON u.id = l.head
            "#,
            request.worker.as_str(),
            self.turn().await?,
            i64::try_from(wanted).unwrap_or(i64::MAX),
            i32::try_from(request.max_data_version).unwrap_or(i32::MAX),
            &request.not_images,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut taken = Vec::with_capacity(rows.len());
        let mut stale = 0;
        for row in rows {
            let (Some(job), Some(attempt), Some(lease), Some(attempts_used), Some(data), Some(created_at)) = (
                row.job,
                row.attempt,
                row.lease,
                row.attempts_used,
                row.data,
                row.created_at,
            ) else {
                stale += 1;
                continue;
            };
            self.served.store(row.repository.0, Ordering::Relaxed);
            taken.push(Taken {
                job,
                attempt,
                lease,
                attempts_used,
                repository: row.repository,
                data,
                created_at,
            });
        }
        Ok((taken, stale))
    }

    async fn refuse_unreadable(
        &self,
        job: JobId,
        attempt: Attempt,
        lease: LeaseNo,
        detail: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let lane = sqlx::query_scalar!(
            r#"
            UPDATE jobs SET state = 'finished', outcome = 'refused', reason = 'data-unknown', detail = $4, finished_at = now(), worker = NULL
            WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3
            RETURNING lane_id
            "#,
            job.0,
            attempt.0,
            lease.0,
            crate::values::clean(detail),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(lane) = lane {
            free_lane(&mut transaction, lane, job, 0, Duration::ZERO).await?;
            end_attempt(&mut transaction, job, attempt, false, Some("data-unknown")).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

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

/// What is asked of these jobs, in the order of arrival.
async fn asked_of(db: impl PgExecutor<'_>, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<Value>>, StoreError> {
    let rows = sqlx::query!(
        r#"
        SELECT job_id AS "job: JobId", asked AS "asked!" FROM job_events
        WHERE job_id = ANY ($1) AND asked IS NOT NULL ORDER BY job_id, id
        "#,
        &jobs.iter().map(|job| job.0).collect::<Vec<_>>(),
    )
    .fetch_all(db)
    .await?;
    let mut asked: HashMap<JobId, Vec<Value>> = HashMap::new();
    for row in rows {
        asked.entry(row.job).or_default().push(row.asked);
    }
    Ok(asked)
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
