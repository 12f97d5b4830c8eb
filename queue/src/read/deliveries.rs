//! Deliveries with their verdicts, and why a delivery started no job.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{DeliveryId, EventId, JobId, TriggerId};
use crate::reason::Reason;
use crate::state::{DeliveryStatus, words};
use crate::values::without_nul;

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
        let before = filter.before.map_or(i64::MAX, |id| id.0);
        let limit = super::page(filter.limit);
        let forge = filter.forge.as_deref();
        // One statement per leading filter, each with its index.
        let ids = match filter.status {
            Some(status) if status != DeliveryStatus::Decided => {
                sqlx::query_scalar!(
                    r#"
                    SELECT id FROM deliveries
                    WHERE state <> 'decided' AND state = $1 AND id < $2 AND ($4::text IS NULL OR forge = $4)
                    ORDER BY id DESC LIMIT $3
                    "#,
                    status.word(),
                    before,
                    limit,
                    forge,
                )
                .fetch_all(&self.pool)
                .await?
            }
            status => {
                sqlx::query_scalar!(
                    r#"
                    SELECT id FROM deliveries
                    WHERE id < $1 AND ($3::text IS NULL OR state = $3) AND ($4::text IS NULL OR forge = $4)
                    ORDER BY id DESC LIMIT $2
                    "#,
                    before,
                    limit,
                    status.map(DeliveryStatus::word),
                    forge,
                )
                .fetch_all(&self.pool)
                .await?
            }
        };
        self.delivery_rows(&ids).await
    }

    async fn delivery_rows(&self, ids: &[i64]) -> Result<Vec<DeliveryRow>, StoreError> {
        let rows = sqlx::query_as!(
            DeliveryRow,
            r#"
            SELECT d.id AS "id: DeliveryId", d.forge, d.kind, d.delivery, d.event, d.event_type, octet_length(d.body) AS "bytes!",
                d.received_at, d.state AS "status: DeliveryStatus",
                CASE d.state WHEN 'waiting' THEN d.not_before END AS not_before, d.tries, d.reason AS "reason: Reason", d.detail, d.decided_at,
                ARRAY(SELECT DISTINCT x.job_id FROM decisions x
                    WHERE x.delivery_id = d.id AND x.job_id IS NOT NULL ORDER BY x.job_id) AS "jobs!: Vec<JobId>",
                (SELECT x.reason FROM decisions x WHERE x.delivery_id = d.id AND x.verdict = 'no'
                    AND NOT EXISTS (SELECT FROM decisions y WHERE y.delivery_id = d.id AND y.job_id IS NOT NULL)
                    ORDER BY x.id LIMIT 1) AS "no: Reason"
            FROM deliveries d WHERE d.id = ANY ($1) ORDER BY d.id DESC
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// One delivery with all that was decided.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryDetail>, StoreError> {
        let Some(row) = self.delivery_rows(&[id.0]).await?.pop() else {
            return Ok(None);
        };
        let raw = sqlx::query!("SELECT headers, body FROM deliveries WHERE id = $1", id.0)
            .fetch_optional(&self.pool)
            .await?;
        let Some(raw) = raw else {
            return Ok(None);
        };
        let mut events = sqlx::query!(
            r#"
            SELECT e.id AS "event: EventId", e.key, e.kind, e.duplicate_of AS "duplicate_of: EventId",
                first.delivery_id AS "duplicate_of_delivery?: DeliveryId", e.at, r.owner || '/' || r.name AS repository, e.subject, e.actor
            FROM events e
            LEFT JOIN repositories r ON r.id = e.repository_id
            LEFT JOIN events first ON first.id = e.duplicate_of
            WHERE e.delivery_id = $1 ORDER BY e.id
            "#,
            id.0,
        )
        .fetch_all(&self.pool)
        .await?
        .into_iter()
        .map(|row| EventRow {
            event: row.event,
            key: row.key,
            kind: row.kind,
            duplicate_of: row.duplicate_of,
            duplicate_of_delivery: row.duplicate_of_delivery,
            at: row.at,
            repository: row.repository,
            subject: row.subject,
            actor: row.actor,
            decisions: Vec::new(),
        })
        .collect::<Vec<_>>();
        let decisions = sqlx::query!(
            r#"
            SELECT event_id AS "event: EventId", trigger_id AS "trigger: TriggerId", verdict AS "verdict: Verdict", job_id AS "job: JobId",
                reason AS "reason: Reason", detail, at
            FROM decisions WHERE delivery_id = $1 ORDER BY id
            "#,
            id.0,
        )
        .fetch_all(&self.pool)
        .await?;
        for row in decisions {
            if let Some(event) = events.iter_mut().find(|event| event.event == row.event) {
                event.decisions.push(DecisionRow {
                    trigger: row.trigger,
                    verdict: row.verdict,
                    job: row.job,
                    reason: row.reason,
                    detail: row.detail,
                    at: row.at,
                });
            }
        }
        Ok(Some(DeliveryDetail {
            row,
            headers: raw.headers,
            body: String::from_utf8(raw.body).ok(),
            events,
        }))
    }

    /// Finds a delivery by our number or the forge's id, and tells all about it. Empty when there is none.
    pub async fn explain(&self, word: &str) -> Result<Explained, StoreError> {
        let ids = sqlx::query_scalar!(
            r#"
            SELECT id AS "id: DeliveryId" FROM deliveries WHERE id = $1 OR delivery = $2 ORDER BY id DESC LIMIT 20
            "#,
            word.parse::<i64>().ok(),
            without_nul(word),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut deliveries = Vec::with_capacity(ids.len());
        for id in ids {
            deliveries.extend(self.delivery(id).await?);
        }
        Ok(Explained { deliveries })
    }

    /// The newest decisions of a trigger with their deliveries, for its page.
    pub async fn decisions_of(
        &self,
        trigger: &TriggerId,
        limit: i64,
    ) -> Result<Vec<(DeliveryId, DecisionRow)>, StoreError> {
        let rows = sqlx::query!(
            r#"
            SELECT delivery_id AS "delivery: DeliveryId", trigger_id AS "trigger: TriggerId", verdict AS "verdict: Verdict",
                job_id AS "job: JobId", reason AS "reason: Reason", detail, at
            FROM decisions WHERE trigger_id = $1 ORDER BY id DESC LIMIT $2
            "#,
            trigger.as_str(),
            super::page(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let decision = DecisionRow {
                    trigger: row.trigger,
                    verdict: row.verdict,
                    job: row.job,
                    reason: row.reason,
                    detail: row.detail,
                    at: row.at,
                };
                (row.delivery, decision)
            })
            .collect())
    }
}
