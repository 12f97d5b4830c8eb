//! Deliveries: stored by the receiver, taken by a worker that decides, and back again when that worker dies.
//!
//! A worker has a delivery for a lease by PostgreSQL's own clock; writing after it was taken over fails with
//! [`StoreError::TakenOver`]. The order is fair enough by being the order of arrival: a delivery that waits is not due and is skipped.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use triggers::Target;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{DeliveryId, TriggerId, WorkerName};
use crate::notify::Channel;
use crate::people::audit;
use crate::reason::Reason;
use crate::state::DeliveryStatus;
use crate::values::{clean, seconds, to_json};

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
        let row = sqlx::query!(
            r#"
            WITH stored AS (
                INSERT INTO deliveries (forge, kind, delivery, event, event_type, headers, body)
                VALUES ($1, $2, $3, $4, $5, $6::text::json, $7)
                ON CONFLICT (forge, delivery) DO NOTHING
                RETURNING id
            )
            SELECT id AS "id!: DeliveryId", true AS "new!" FROM stored
            UNION ALL
            SELECT id, false FROM deliveries WHERE forge = $1 AND delivery = $3 AND NOT EXISTS (SELECT FROM stored)
            "#,
            new.forge,
            new.kind,
            new.delivery,
            new.event,
            new.event_type,
            new.headers.to_string(),
            new.body,
        )
        .fetch_optional(&self.pool)
        .await?;
        match row {
            Some(row) if row.new => {
                self.notifier.say(Channel::Deliveries);
                Ok(Receipt::Stored(row.id))
            }
            Some(row) => Ok(Receipt::Known(row.id)),
            // Its twin was committed while this statement waited for it: the statement's snapshot is older than that row.
            None => {
                let id = sqlx::query_scalar!(
                    r#"SELECT id AS "id: DeliveryId" FROM deliveries WHERE forge = $1 AND delivery = $2"#,
                    new.forge,
                    new.delivery,
                )
                .fetch_one(&self.pool)
                .await?;
                Ok(Receipt::Known(id))
            }
        }
    }

    /// Stores a person's wish for a run as a delivery of its own; a worker decides on it like on any other. Audited.
    pub async fn request_run(&self, request: &RunRequest) -> Result<DeliveryId, StoreError> {
        let body = to_json("run request", request)?.to_string().into_bytes();
        let mut transaction = self.pool.begin().await?;
        let id = sqlx::query_scalar!(
            r#"
            INSERT INTO deliveries (forge, kind, delivery, event, event_type, headers, body)
            VALUES ($1, $2, gen_random_uuid()::text, $2, '', '{}', $3)
            RETURNING id AS "id: DeliveryId"
            "#,
            request.forge,
            RUN_REQUEST,
            body,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let detail =
            json!({ "trigger": request.trigger, "repository": request.repository, "subject": request.subject });
        audit(
            &mut transaction,
            &request.who,
            "run",
            &format!("delivery {id}"),
            &detail,
        )
        .await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Deliveries);
        Ok(id)
    }

    /// The oldest delivery that is due, for `lease`. `None` when there is nothing to do now.
    pub async fn take_delivery(&self, worker: &WorkerName, lease: Duration) -> Result<Option<Delivery>, StoreError> {
        let row = sqlx::query!(
            r#"
            WITH due AS (
                SELECT id FROM deliveries
                WHERE state IN ('received', 'waiting') AND not_before <= now() AND (lease_until IS NULL OR lease_until < now())
                ORDER BY not_before, id
                LIMIT 1
                FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE deliveries d
            SET worker = $1, lease_until = now() + make_interval(secs => $2), lease_no = lease_no + 1, tries = tries + 1
            FROM due
            WHERE d.id = due.id
            RETURNING d.id AS "id: DeliveryId", d.lease_no, d.forge, d.kind, d.delivery, d.event, d.event_type, d.headers, d.body,
                d.received_at, extract(epoch FROM now() - d.received_at)::float8 AS "age!", now() AS "now!", d.tries, d.replayed
            "#,
            worker.as_str(),
            lease.as_secs_f64(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| Delivery {
            id: row.id,
            lease: row.lease_no,
            forge: row.forge,
            kind: row.kind,
            delivery: row.delivery,
            event: row.event,
            event_type: row.event_type,
            headers: row.headers,
            body: row.body,
            received_at: row.received_at,
            age: seconds(row.age),
            now: row.now,
            tries: row.tries - 1,
            replayed: row.replayed,
        }))
    }

    /// Puts it back: a look-up could not be completed. It waits, visibly, for `backoff`.
    pub async fn delay_delivery(
        &self,
        delivery: &Delivery,
        reason: Reason,
        detail: &str,
        backoff: Duration,
    ) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            UPDATE deliveries
            SET state = 'waiting', reason = $3, detail = $4, not_before = now() + make_interval(secs => $5),
                worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state IN ('received', 'waiting')
            "#,
            delivery.id.0,
            delivery.lease,
            reason.word(),
            clean(detail),
            backoff.as_secs_f64(),
        )
        .execute(&self.pool)
        .await?;
        delivery.still_ours(written.rows_affected())
    }

    /// Ends the patience. It stays replayable.
    pub async fn give_up_delivery(&self, delivery: &Delivery, reason: Reason, detail: &str) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            UPDATE deliveries
            SET state = 'abandoned', reason = $3, detail = $4, decided_at = now(), worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state IN ('received', 'waiting')
            "#,
            delivery.id.0,
            delivery.lease,
            reason.word(),
            clean(detail),
        )
        .execute(&self.pool)
        .await?;
        delivery.still_ours(written.rows_affected())
    }

    /// Looks at an abandoned delivery again, whatever its age. Audited.
    pub async fn replay_delivery(&self, id: DeliveryId, who: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let state = sqlx::query_scalar!("SELECT state FROM deliveries WHERE id = $1 FOR NO KEY UPDATE", id.0)
            .fetch_optional(&mut *transaction)
            .await?
            .ok_or_else(|| StoreError::NotFound {
                what: "delivery",
                id: id.to_string(),
            })?;
        if state != DeliveryStatus::Abandoned.word() {
            return Err(StoreError::WrongState {
                what: "delivery",
                id: id.0,
                state,
            });
        }
        sqlx::query!(
            r#"
            UPDATE deliveries
            SET state = 'received', reason = NULL, detail = '', decided_at = NULL, not_before = now(), tries = 0, replayed = true
            WHERE id = $1
            "#,
            id.0,
        )
        .execute(&mut *transaction)
        .await?;
        audit(&mut transaction, who, "replay", &format!("delivery {id}"), &json!({})).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Deliveries);
        Ok(())
    }
}

impl Delivery {
    /// An UPDATE that carries the lease number either hit the row or somebody else has it.
    pub(crate) fn still_ours(&self, written: u64) -> Result<(), StoreError> {
        if written == 1 {
            Ok(())
        } else {
            Err(StoreError::TakenOver {
                what: "delivery",
                id: self.id.0,
            })
        }
    }
}
