//! How a running job leaves its worker: finished, back in the queue, or held.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::Queue;
use crate::claim::Claim;
use crate::error::StoreError;
use crate::ids::JobId;
use crate::outbox::NewOutput;
use crate::reason::Reason;
use crate::state::Outcome;

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
    pub async fn finish(&self, claim: &Claim, finish: &Finish) -> Result<(), StoreError> {
        let _ = (claim, finish);
        todo!()
    }

    /// Back to the queue after an infrastructure failure: uses up an attempt, and only while nothing was spent.
    pub async fn back_to_queue(
        &self,
        claim: &Claim,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<WentBack, StoreError> {
        let _ = (claim, reason, detail, delay);
        todo!()
    }

    /// Back to the queue without using up an attempt: the worker stops cleanly, the deployment is paused, the image is elsewhere.
    /// Only for jobs without a container.
    pub async fn hand_back(
        &self,
        claim: &Claim,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<(), StoreError> {
        let _ = (claim, reason, detail, delay);
        todo!()
    }

    /// Holds a running job that has no container; a person or `until` lets it go on.
    pub async fn hold(&self, claim: &Claim, reason: Reason, until: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        let _ = (claim, reason, until);
        todo!()
    }

    /// Puts held jobs whose time has come back into the queue.
    pub async fn release_due(&self) -> Result<Vec<JobId>, StoreError> {
        todo!()
    }

    /// Ends jobs that were queued for longer than `age`, as `expired`.
    pub async fn expire(&self, age: Duration) -> Result<Vec<JobId>, StoreError> {
        let _ = age;
        todo!()
    }
}
