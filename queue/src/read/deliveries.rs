//! Deliveries with their verdicts, and why a delivery started no job.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{DeliveryId, EventId, JobId, TriggerId};
use crate::reason::Reason;
use crate::state::{DeliveryStatus, words};

words!(
    /// What a trigger got from an event.
    Verdict {
        /// A new job.
        Fired = "fired",
        /// A job that waited already.
        Joined = "joined",
        /// None.
        No = "no",
    }
);

/// Which deliveries. Everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// In that state.
    pub status: Option<DeliveryStatus>,
    /// Of that forge.
    pub forge: Option<String>,
    /// Older than that one: the last row of the page before.
    pub before: Option<DeliveryId>,
    /// Rows of a page; at most [`super::PAGE_MAX`].
    pub limit: i64,
}

/// A delivery in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryRow {
    /// Its number.
    pub id: DeliveryId,
    /// The forge's configured name.
    pub forge: String,
    /// The forge's kind word, or `run-request`.
    pub kind: String,
    /// The forge's delivery id.
    pub delivery: String,
    /// The event header.
    pub event: String,
    /// The event type header.
    pub event_type: String,
    /// Bytes of the body.
    pub bytes: i32,
    /// When it was stored.
    pub received_at: DateTime<Utc>,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// When it is looked at again, while it waits.
    pub not_before: Option<DateTime<Utc>>,
    /// How often it was looked at.
    pub tries: i32,
    /// Why it waits, was given up, or holds nothing.
    pub reason: Option<Reason>,
    /// More about that.
    pub detail: String,
    /// When it got its verdict.
    pub decided_at: Option<DateTime<Utc>>,
    /// The jobs that it made or joined.
    pub jobs: Vec<JobId>,
    /// The first "no" of its decisions, when it made no job.
    pub no: Option<Reason>,
}

/// A delivery with all that was decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryDetail {
    /// As in the list.
    pub row: DeliveryRow,
    /// The kept headers.
    pub headers: Value,
    /// The body, when it is text. Somebody else's.
    pub body: Option<String>,
    /// What happened.
    pub events: Vec<EventRow>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventRow {
    /// Its number.
    pub event: EventId,
    /// What tells it from others.
    pub key: String,
    /// One word.
    pub kind: String,
    /// The first arrival, when this was not it.
    pub duplicate_of: Option<EventId>,
    /// The delivery of the first arrival, while it is kept.
    pub duplicate_of_delivery: Option<DeliveryId>,
    /// When it happened, as the forge says.
    pub at: Option<DateTime<Utc>>,
    /// `owner/name`.
    pub repository: Option<String>,
    /// Number of the issue or pull request.
    pub subject: Option<i64>,
    /// Who did it.
    pub actor: Option<String>,
    /// One per trigger.
    pub decisions: Vec<DecisionRow>,
}

/// What one trigger got from an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecisionRow {
    /// Which; `None`: the event as a whole.
    pub trigger: Option<TriggerId>,
    /// Yes or no.
    pub verdict: Verdict,
    /// The job, when yes.
    pub job: Option<JobId>,
    /// Why not, when no.
    pub reason: Option<Reason>,
    /// More about that.
    pub detail: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// What `pi-dispatch explain` tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// Deliveries that the word meant: a number of ours, or a forge's delivery id (which two forges may share).
    pub deliveries: Vec<DeliveryDetail>,
}

impl Queue {
    /// A page of deliveries, newest first.
    pub async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        let _ = filter;
        todo!()
    }

    /// One delivery with all that was decided.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryDetail>, StoreError> {
        let _ = id;
        todo!()
    }

    /// Finds a delivery by our number or the forge's id, and tells all about it. Empty when there is none.
    pub async fn explain(&self, word: &str) -> Result<Explained, StoreError> {
        let _ = word;
        todo!()
    }

    /// The newest decisions of a trigger with their deliveries, for its page.
    pub async fn decisions_of(
        &self,
        trigger: &TriggerId,
        limit: i64,
    ) -> Result<Vec<(DeliveryId, DecisionRow)>, StoreError> {
        let _ = (trigger, limit);
        todo!()
    }
}
