//! The verdict on a delivery, in one transaction: events, decisions, jobs, the reaction.
//!
//! Uniqueness is the database's: the first arrival of an event's key is the event, a later one is `duplicate-of` it and makes
//! nothing. Of one series at most one job was never claimed; an event that finds one joins it, under the lock of its lane.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::Queue;
use crate::data::{Asked, JobData, Repository};
use crate::deliveries::Delivery;
use crate::error::StoreError;
use crate::ids::{EventId, JobId, RepositoryKey, TriggerId};
use crate::notify::Channel;
use crate::outbox::{NewOutput, insert_output};
use crate::reason::Reason;
use crate::values::{clean, to_json};

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
        let event = sqlx::query_scalar!(
            r#"SELECT event_id AS "event: EventId" FROM event_keys WHERE forge = $1 AND key = $2"#,
            forge,
            key,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(event)
    }

    /// Writes the verdict. All of it or nothing. Notifies about jobs and outputs.
    pub async fn decide(&self, delivery: &Delivery, verdict: &DeliveryVerdict) -> Result<Decided, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let written = sqlx::query!(
            r#"
            UPDATE deliveries
            SET state = 'decided', reason = $3, detail = $4, decided_at = now(), worker = NULL, lease_until = NULL
            WHERE id = $1 AND lease_no = $2 AND state IN ('received', 'waiting')
            "#,
            delivery.id.0,
            delivery.lease,
            verdict.reason.map(Reason::word),
            clean(&verdict.detail),
        )
        .execute(&mut *transaction)
        .await?;
        delivery.still_ours(written.rows_affected())?;

        let mut events = Vec::with_capacity(verdict.events.len());
        for event in &verdict.events {
            events.push(write_event(&mut transaction, delivery, event).await?);
        }
        transaction.commit().await?;

        if events.iter().any(|event| !event.jobs.is_empty()) {
            self.notifier.say(Channel::Jobs);
            self.notifier.say(Channel::Outputs);
        }
        Ok(Decided { events })
    }
}

/// One event with its decisions. Whether it is the first of its key is what the unique key says, not what was looked up before.
async fn write_event(
    connection: &mut PgConnection,
    delivery: &Delivery,
    event: &EventVerdict,
) -> Result<DecidedEvent, StoreError> {
    let repository = match &event.repository {
        Some(repository) => Some(know_repository(connection, &delivery.forge, repository).await?),
        None => None,
    };
    let id = sqlx::query_scalar!(
        r#"
        INSERT INTO events (delivery_id, forge, key, kind, at, repository_id, subject, actor, data)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::json)
        RETURNING id AS "id: EventId"
        "#,
        delivery.id.0,
        delivery.forge,
        event.key,
        event.kind,
        event.at,
        repository.map(|repository| repository.0),
        event.subject,
        event.actor.as_deref().map(clean),
        event.data.to_string(),
    )
    .fetch_one(&mut *connection)
    .await?;

    if let Some(first) = claim_key(connection, &delivery.forge, &event.key, id).await? {
        sqlx::query!("UPDATE events SET duplicate_of = $2 WHERE id = $1", id.0, first.0)
            .execute(&mut *connection)
            .await?;
        let detail = format!("the same as event {first}");
        write_decision(
            connection,
            delivery,
            id,
            None,
            "no",
            None,
            Some(Reason::DuplicateOf),
            &detail,
        )
        .await?;
        return Ok(DecidedEvent {
            event: id,
            duplicate_of: Some(first),
            jobs: BTreeMap::new(),
        });
    }

    let mut jobs = BTreeMap::new();
    for decision in &event.decisions {
        let trigger = decision.trigger.as_ref();
        match &decision.call {
            Call::No { reason, detail } => {
                write_decision(connection, delivery, id, trigger, "no", None, Some(*reason), detail).await?;
            }
            Call::Fire(fire) => {
                let fired = write_job(connection, delivery, id, fire).await?;
                let verdict = if fired.joined { "joined" } else { "fired" };
                write_decision(connection, delivery, id, trigger, verdict, Some(fired.job), None, "").await?;
                if let Some(reaction) = &fire.reaction {
                    insert_output(connection, Some(fired.job), Some(id), reaction).await?;
                }
                jobs.insert(TriggerId(fire.data.trigger.id.clone()), fired);
            }
        }
    }
    Ok(DecidedEvent {
        event: id,
        duplicate_of: None,
        jobs,
    })
}

/// Takes the key for this event, or returns the event that has it. Waits for a transaction that is just taking it.
async fn claim_key(
    connection: &mut PgConnection,
    forge: &str,
    key: &str,
    event: EventId,
) -> Result<Option<EventId>, StoreError> {
    let taken = sqlx::query!(
        "INSERT INTO event_keys (forge, key, event_id) VALUES ($1, $2, $3) ON CONFLICT (forge, key) DO NOTHING",
        forge,
        key,
        event.0,
    )
    .execute(&mut *connection)
    .await?;
    if taken.rows_affected() == 1 {
        return Ok(None);
    }
    let first = sqlx::query_scalar!(
        r#"SELECT event_id AS "event: EventId" FROM event_keys WHERE forge = $1 AND key = $2"#,
        forge,
        key,
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(Some(first))
}

#[expect(clippy::too_many_arguments, reason = "one per column, and each caller says them all")]
async fn write_decision(
    connection: &mut PgConnection,
    delivery: &Delivery,
    event: EventId,
    trigger: Option<&TriggerId>,
    verdict: &str,
    job: Option<JobId>,
    reason: Option<Reason>,
    detail: &str,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"
        INSERT INTO decisions (delivery_id, event_id, trigger_id, verdict, job_id, reason, detail)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        "#,
        delivery.id.0,
        event.0,
        trigger.map(TriggerId::as_str),
        verdict,
        job.map(|job| job.0),
        reason.map(Reason::word),
        clean(detail),
    )
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The repository's row, with its present name.
async fn know_repository(
    connection: &mut PgConnection,
    forge: &str,
    repository: &Repository,
) -> Result<RepositoryKey, StoreError> {
    let known = sqlx::query_scalar!(
        r#"
        SELECT id AS "id: RepositoryKey" FROM repositories
        WHERE forge = $1 AND remote_id = $2 AND owner = $3 AND name = $4
        "#,
        forge,
        repository.id,
        repository.owner,
        repository.name,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(known) = known {
        return Ok(known);
    }
    let id = sqlx::query_scalar!(
        r#"
        INSERT INTO repositories (forge, remote_id, owner, name) VALUES ($1, $2, $3, $4)
        ON CONFLICT (forge, remote_id) DO UPDATE SET owner = excluded.owner, name = excluded.name
        RETURNING id AS "id: RepositoryKey"
        "#,
        forge,
        repository.id,
        clean(&repository.owner),
        clean(&repository.name),
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(id)
}

/// Joins the job of the series that nobody has claimed yet, or makes one. The lane's row is locked first: a claim of this lane
/// either was before (then the job is no longer there to be joined) or comes after.
async fn write_job(
    connection: &mut PgConnection,
    delivery: &Delivery,
    event: EventId,
    fire: &Fire,
) -> Result<FiredJob, StoreError> {
    let data = &fire.data;
    let repository = know_repository(connection, &data.forge, &data.repository).await?;
    let lane = sqlx::query_scalar!(
        r#"
        INSERT INTO lanes (key, repository_id) VALUES ($1, $2)
        ON CONFLICT (key) DO UPDATE SET repository_id = excluded.repository_id
        RETURNING id
        "#,
        fire.lane,
        repository.0,
    )
    .fetch_one(&mut *connection)
    .await?;
    let asked = match &fire.asked {
        Some(asked) => Some(to_json("what is asked", asked)?.to_string()),
        None => None,
    };

    let waiting = match &fire.series {
        Some(series) => {
            sqlx::query_scalar!(
                r#"
                SELECT id AS "id: JobId" FROM jobs
                WHERE series = $1 AND state IN ('queued', 'held') AND attempt = 0
                FOR NO KEY UPDATE
                "#,
                series,
            )
            .fetch_optional(&mut *connection)
            .await?
        }
        None => None,
    };
    let fired = match waiting {
        Some(job) => FiredJob { job, joined: true },
        None => {
            let job = sqlx::query_scalar!(
                r#"
                INSERT INTO jobs (lane_id, repository_id, series, trigger_id, flow, forge, subject, image, data_version, data, title, actor)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::json, $11, $12)
                RETURNING id AS "id: JobId"
                "#,
                lane,
                repository.0,
                fire.series,
                data.trigger.id,
                data.trigger.run.flow,
                data.forge,
                data.subject.as_ref().map(|subject| subject.number),
                data.image,
                i32::try_from(data.version).unwrap_or(i32::MAX),
                to_json("job data", data)?.to_string(),
                data.subject.as_ref().map(|subject| clean(&subject.title)),
                fire.asked.as_ref().map(|asked| clean(&asked.actor.login)),
            )
            .fetch_one(&mut *connection)
            .await?;
            sqlx::query!("UPDATE lanes SET queued = queued + 1 WHERE id = $1", lane)
                .execute(&mut *connection)
                .await?;
            FiredJob { job, joined: false }
        }
    };
    sqlx::query!(
        "INSERT INTO job_events (job_id, event_id, delivery_id, asked) VALUES ($1, $2, $3, $4::text::json)",
        fired.job.0,
        event.0,
        delivery.id.0,
        asked,
    )
    .execute(&mut *connection)
    .await?;
    Ok(fired)
}
