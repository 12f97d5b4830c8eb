//! Claims: which worker has which job, and the proof of it. How it loses one stands in [`crate::lease`].
//!
//! The fencing token is (attempt, lease number). A [`Claim`] carries it, and every write about a running job takes a claim; an
//! UPDATE that finds the token gone returns [`StoreError::LeaseLost`] and has written nothing.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};

use crate::Queue;
use crate::data::{Asked, JobData};
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, LeaseNo, RepositoryKey, WorkerName};
use crate::lease::{end_attempt, free_lane};
use crate::values::read_json;

/// How often what is asked of claimed jobs is read again when PostgreSQL does not answer.
const ASKED_TRIES: u32 = 10;
/// Between two such tries.
const ASKED_AGAIN: Duration = Duration::from_millis(500);

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

/// A claimed row before its JSON was read.
pub(crate) struct Taken {
    pub(crate) job: JobId,
    pub(crate) attempt: Attempt,
    pub(crate) lease: LeaseNo,
    pub(crate) attempts_used: i32,
    pub(crate) repository: RepositoryKey,
    pub(crate) data: Value,
    pub(crate) created_at: DateTime<Utc>,
}

impl Taken {
    pub(crate) fn into_claim(self, worker: &WorkerName, asked: Vec<Value>) -> Result<Claim, StoreError> {
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
            let (some, stale) = match self.take_jobs(request, wanted).await {
                Ok(tour) => tour,
                // What an earlier tour took is ours: an error here must not drop it.
                Err(error) if taken.is_empty() => return Err(error),
                Err(_) => break,
            };
            taken.extend(some);
            if stale == 0 {
                break;
            }
        }
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<JobId> = taken.iter().map(|taken| taken.job).collect();
        // They are ours by now: a short fault of PostgreSQL must not leave them to a rescue, which uses up an attempt.
        let mut tries = 0;
        let mut asked = loop {
            match asked_of(&self.pool, &jobs).await {
                Ok(asked) => break asked,
                Err(error) if error.is_transient() && tries < ASKED_TRIES => {
                    tries += 1;
                    tokio::time::sleep(ASKED_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        };

        let mut claims = Vec::with_capacity(taken.len());
        for taken in taken {
            let (job, attempt, lease) = (taken.job, taken.attempt, taken.lease);
            let asked = asked.remove(&job).unwrap_or_default();
            match taken.into_claim(&request.worker, asked) {
                Ok(claim) => claims.push(claim),
                Err(error) => {
                    tracing::warn!(job.id = job.0, %error, "a job can not be read and is refused");
                    if let Err(error) = self.refuse_unreadable(job, attempt, lease, &error.to_string()).await {
                        // The others were claimed all the same; this one comes back when its lease ends.
                        tracing::warn!(job.id = job.0, %error, "a job that can not be read could not be refused");
                    }
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
}

/// What is asked of these jobs, in the order of arrival.
pub(crate) async fn asked_of(
    db: impl PgExecutor<'_>,
    jobs: &[JobId],
) -> Result<HashMap<JobId, Vec<Value>>, StoreError> {
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
