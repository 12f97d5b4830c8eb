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
use uuid::Uuid;

use crate::Queue;
use crate::claim::Claim;
use crate::data::Repository;
use crate::error::StoreError;
use crate::ids::{EventId, JobId, OutputId, WorkerName};
use crate::reason::Reason;
use crate::state::OutputKind;

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

impl Queue {
    /// Makes an output of a running job (fenced). A second one of the same kind and ordinal is not made; returns the one that is there.
    pub async fn put_output(&self, claim: &Claim, new: &NewOutput) -> Result<OutputId, StoreError> {
        let _ = (claim, new);
        todo!()
    }

    /// Makes the output of a job that is over (rescued, expired, cancelled). Once by the same constraint.
    pub async fn put_output_of_finished(&self, job: JobId, new: &NewOutput) -> Result<OutputId, StoreError> {
        let _ = (job, new);
        todo!()
    }

    /// Makes the status comment of the job or gives it a new text, to be edited in place. Not fenced: also the end of a lost worker's
    /// job finishes it.
    pub async fn put_status(&self, job: JobId, new: &NewOutput) -> Result<OutputId, StoreError> {
        let _ = (job, new);
        todo!()
    }

    /// The oldest output that is due. Never two of one subject at once, so that their order is kept.
    pub async fn take_output(&self, worker: &WorkerName, lease: Duration) -> Result<Option<Output>, StoreError> {
        let _ = (worker, lease);
        todo!()
    }

    /// The forge has it. Records our post as our own in the same transaction.
    pub async fn output_posted(
        &self,
        output: &Output,
        remote_id: Option<i64>,
        url: Option<&str>,
    ) -> Result<(), StoreError> {
        let _ = (output, remote_id, url);
        todo!()
    }

    /// Not now.
    pub async fn delay_output(
        &self,
        output: &Output,
        reason: Reason,
        detail: &str,
        delay: Duration,
    ) -> Result<(), StoreError> {
        let _ = (output, reason, detail, delay);
        todo!()
    }

    /// Not at all.
    pub async fn fail_output(&self, output: &Output, reason: Reason, detail: &str) -> Result<(), StoreError> {
        let _ = (output, reason, detail);
        todo!()
    }

    /// Whether we wrote that comment. Kept for ever.
    pub async fn is_own_post(&self, forge: &str, remote_id: i64) -> Result<bool, StoreError> {
        let _ = (forge, remote_id);
        todo!()
    }
}
