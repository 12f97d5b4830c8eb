//! Claims and leases: which worker has which job, and how it loses it.
//!
//! The fencing token is (attempt, lease number). A [`Claim`] carries it, and every write about a running job takes a claim; an
//! UPDATE that finds the token gone returns [`StoreError::LeaseLost`] and has written nothing.
//!
//! No wall clock decides about a lease. The holder raises a counter; who wants to rescue the job reads the counters
//! ([`Queue::leases`]), waits a whole lease by its own monotonic clock, and [`Queue::rescue`] acts only if the counter still stands there.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::Queue;
use crate::data::{Asked, JobData};
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, LeaseNo, RepositoryKey, WorkerName};

/// How long a job stays with a worker that says nothing.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often a holder says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
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

impl Queue {
    /// Takes due jobs: fair between repositories, at most one running job per lane, none while paused.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let _ = request;
        todo!()
    }

    /// Says that the holder lives. Returns the claims that are lost: kill their containers.
    pub async fn heartbeat(&self, claims: &[&Claim]) -> Result<Vec<JobId>, StoreError> {
        let _ = claims;
        todo!()
    }

    /// All running jobs' leases, for whoever watches over them.
    pub async fn leases(&self) -> Result<Vec<LeaseRow>, StoreError> {
        todo!()
    }

    /// Takes a job from a worker that is silent, if its lease still stands where it stood.
    pub async fn rescue(&self, seen: &LeaseRow) -> Result<Rescued, StoreError> {
        let _ = seen;
        todo!()
    }

    /// The running jobs of that worker name: what a starting worker may find containers of.
    pub async fn adoptable(&self, worker: &WorkerName) -> Result<Vec<Adoptable>, StoreError> {
        let _ = worker;
        todo!()
    }

    /// Takes over a running job of one's own name, with a new lease number: whoever had the old one can write nothing more.
    /// `None` when it is not running any more in that attempt.
    pub async fn adopt(&self, worker: &WorkerName, job: JobId, attempt: Attempt) -> Result<Option<Claim>, StoreError> {
        let _ = (worker, job, attempt);
        todo!()
    }
}
