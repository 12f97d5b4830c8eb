//! The verdict on a delivery, in one transaction: events, decisions, jobs, the reaction.
//!
//! Uniqueness is the database's: the first arrival of an event's key is the event, a later one is `duplicate-of` it and makes
//! nothing. Of one series at most one job was never claimed; an event that finds one joins it, under the lock of its lane.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::Queue;
use crate::data::{Asked, JobData, Repository};
use crate::deliveries::Delivery;
use crate::error::StoreError;
use crate::ids::{EventId, JobId, TriggerId};
use crate::outbox::NewOutput;
use crate::reason::Reason;

/// What a worker found out about a delivery.
#[derive(Debug, Clone, Default)]
pub struct DeliveryVerdict {
    /// Why the whole delivery holds nothing that could fire; `None` when there are events.
    pub reason: Option<Reason>,
    /// More about that, in words without payload text.
    pub detail: String,
    /// What happened, in the order of the delivery.
    pub events: Vec<EventVerdict>,
}

/// One thing that happened, and what each trigger says to it.
#[derive(Debug, Clone)]
pub struct EventVerdict {
    /// Says what happened; unique per forge. Under it a second arrival is recognised for ever.
    pub key: String,
    /// One word for lists: `comment-created`, `comment-edited`, `run-request`.
    pub kind: String,
    /// When it happened, as the forge says.
    pub at: Option<DateTime<Utc>>,
    /// The repository, as the delivery or the forge says.
    pub repository: Option<Repository>,
    /// The number of the issue or pull request.
    pub subject: Option<i64>,
    /// Who did it, for lists.
    pub actor: Option<String>,
    /// The event itself.
    pub data: Value,
    /// One per trigger that was asked, or one without a trigger that speaks for all.
    pub decisions: Vec<NewDecision>,
}

/// What one trigger (or, without one, all of them) gets from an event.
#[derive(Debug, Clone)]
pub struct NewDecision {
    /// Which trigger. `None`: the event as a whole.
    pub trigger: Option<TriggerId>,
    /// Yes or no.
    pub call: Call,
}

/// Yes or no.
#[derive(Debug, Clone)]
pub enum Call {
    /// A job, or the one of its series that waits already.
    Fire(Box<Fire>),
    /// Nothing, and why.
    No {
        /// The word.
        reason: Reason,
        /// More about it, in words without payload text.
        detail: String,
    },
}

/// What is needed to make a job.
#[derive(Debug, Clone)]
pub struct Fire {
    /// The concurrency key: of one lane one job runs at a time. See [`lane_of_subject`].
    pub lane: String,
    /// Per series at most one job that nobody has claimed yet. `None`: every firing makes a job.
    pub series: Option<String>,
    /// The job's data.
    pub data: JobData,
    /// What is asked, as confirmed; `None` for a run that a person requested without a subject.
    pub asked: Option<Asked>,
    /// The 👀. Its row is made also when the event joins a job, once per event.
    pub reaction: Option<NewOutput>,
}

/// The concurrency key of a subject: everything about one issue or pull request runs one after the other.
#[must_use]
pub fn lane_of_subject(forge: &str, repository: i64, number: i64) -> String {
    format!("{forge}/{repository}/{number}")
}

/// The series key of a subject, a trigger and a flow.
#[must_use]
pub fn series_of(lane: &str, trigger: &TriggerId, flow: &str) -> String {
    format!("{lane} {trigger} {flow}")
}

/// What became of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Per event, in the same order.
    pub events: Vec<DecidedEvent>,
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedEvent {
    /// Its row.
    pub event: EventId,
    /// The first arrival, when this was not it. Then there are no jobs.
    pub duplicate_of: Option<EventId>,
    /// The jobs by trigger.
    pub jobs: BTreeMap<TriggerId, FiredJob>,
}

/// A job that an event made or joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiredJob {
    /// Which.
    pub job: JobId,
    /// It was there already and takes the event along.
    pub joined: bool,
}

impl Queue {
    /// The first arrival of an event of that key, if there was one: asked before the forge is, because it costs nothing.
    pub async fn known_event(&self, forge: &str, key: &str) -> Result<Option<EventId>, StoreError> {
        let _ = (forge, key);
        todo!()
    }

    /// Writes the verdict. All of it or nothing. Notifies about jobs and outputs.
    pub async fn decide(&self, delivery: &Delivery, verdict: &DeliveryVerdict) -> Result<Decided, StoreError> {
        let _ = (delivery, verdict);
        todo!()
    }
}
