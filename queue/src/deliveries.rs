//! Deliveries: stored by the receiver, taken by a worker that decides, and back again when that worker dies.
//!
//! A worker has a delivery for a lease by PostgreSQL's own clock; writing after it was taken over fails with
//! [`StoreError::TakenOver`]. The order is fair enough by being the order of arrival: a delivery that waits is not due and is skipped.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use triggers::Target;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{DeliveryId, TriggerId, WorkerName};
use crate::reason::Reason;

/// What the receiver stores.
#[derive(Debug, Clone)]
pub struct NewDelivery<'a> {
    /// The forge's configured name (of the hook's path).
    pub forge: &'a str,
    /// The forge's kind word, or [`RUN_REQUEST`].
    pub kind: &'a str,
    /// The forge's delivery id; unique per forge name.
    pub delivery: &'a str,
    /// The event header.
    pub event: &'a str,
    /// The event type header; empty where the forge has none.
    pub event_type: &'a str,
    /// The headers that matter, as JSON. Never `Authorization`.
    pub headers: &'a Value,
    /// The raw body.
    pub body: &'a [u8],
}

/// The kind word of a delivery that a person made: see [`Queue::request_run`].
pub const RUN_REQUEST: &str = "run-request";

/// Whether it was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It is durable now.
    Stored(DeliveryId),
    /// It already was, under this number.
    Known(DeliveryId),
}

/// A delivery that a worker has for the time of a lease.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its number.
    pub id: DeliveryId,
    /// The proof that later writes need.
    pub lease: i64,
    /// The forge's configured name.
    pub forge: String,
    /// The forge's kind word, or [`RUN_REQUEST`].
    pub kind: String,
    /// The forge's delivery id.
    pub delivery: String,
    /// The event header.
    pub event: String,
    /// The event type header.
    pub event_type: String,
    /// The kept headers.
    pub headers: Value,
    /// The raw body.
    pub body: Vec<u8>,
    /// When it was stored.
    pub received_at: DateTime<Utc>,
    /// How long ago that was, by PostgreSQL's clock.
    pub age: Duration,
    /// PostgreSQL's clock when it was taken.
    pub now: DateTime<Utc>,
    /// How often it was taken before.
    pub tries: i32,
    /// A person replayed it: age does not count.
    pub replayed: bool,
}

/// A run that a person asks for at the panel or the command line; the body of a [`RUN_REQUEST`] delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Which trigger.
    pub trigger: TriggerId,
    /// On which forge, by its configured name.
    pub forge: String,
    /// `owner/name`.
    pub repository: String,
    /// Under which issue or pull request, if any.
    pub subject: Option<i64>,
    /// Which of the two, where the person said so.
    pub subject_kind: Option<Target>,
    /// Who asked: a name of the panel, or `cli:NAME`.
    pub who: String,
}

impl Queue {
    /// Stores a delivery, or says that it is there already. Durable when it returns. Notifies.
    pub async fn store_delivery(&self, new: &NewDelivery<'_>) -> Result<Receipt, StoreError> {
        let _ = new;
        todo!()
    }

    /// Stores a person's wish for a run as a delivery of its own; a worker decides on it like on any other. Audited.
    pub async fn request_run(&self, request: &RunRequest) -> Result<DeliveryId, StoreError> {
        let _ = request;
        todo!()
    }

    /// The oldest delivery that is due, for `lease`. `None` when there is nothing to do now.
    pub async fn take_delivery(&self, worker: &WorkerName, lease: Duration) -> Result<Option<Delivery>, StoreError> {
        let _ = (worker, lease);
        todo!()
    }

    /// Puts it back: a look-up could not be completed. It waits, visibly, for `backoff`.
    pub async fn delay_delivery(
        &self,
        delivery: &Delivery,
        reason: Reason,
        detail: &str,
        backoff: Duration,
    ) -> Result<(), StoreError> {
        let _ = (delivery, reason, detail, backoff);
        todo!()
    }

    /// Ends the patience. It stays replayable.
    pub async fn give_up_delivery(&self, delivery: &Delivery, reason: Reason, detail: &str) -> Result<(), StoreError> {
        let _ = (delivery, reason, detail);
        todo!()
    }

    /// Looks at an abandoned delivery again, whatever its age. Audited.
    pub async fn replay_delivery(&self, id: DeliveryId, who: &str) -> Result<(), StoreError> {
        let _ = (id, who);
        todo!()
    }
}
