//! What workers show of themselves: the triggers in force, their images, that they live.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::WorkerName;
use crate::values::{clean, to_json};

/// The triggers file that a worker has in force, and the state of the file beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriggersInForce {
    /// Which worker.
    pub worker: WorkerName,
    /// The file's name.
    pub file: String,
    /// SHA-256 of the file in force, in hex.
    pub sha256: String,
    /// The parsed triggers, as JSON: a list of `triggers::Trigger`.
    pub triggers: Value,
    /// Faults of a newer edit that is not in force, as JSON: a list of `triggers::Fault`. Empty when the file is in force as it stands.
    pub faults: Value,
    /// Remarks about the file in force, likewise.
    pub remarks: Value,
    /// When that was written.
    pub at: DateTime<Utc>,
}

/// What a worker says of its triggers.
#[derive(Debug, Clone)]
pub struct NewTriggers {
    /// The file's name.
    pub file: String,
    /// SHA-256 of the file in force, in hex.
    pub sha256: String,
    /// The parsed triggers, as JSON.
    pub triggers: Value,
    /// Faults of a newer edit that is not in force.
    pub faults: Value,
    /// Remarks about the file in force.
    pub remarks: Value,
}

/// An image on a worker's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSeen {
    /// The id that would run.
    pub id: String,
    /// Labels of ours.
    pub labels: BTreeMap<String, String>,
}

/// What a worker says of itself.
#[derive(Debug, Clone)]
pub struct NewWorker {
    /// Its name.
    pub worker: WorkerName,
    /// The program's version.
    pub version: String,
    /// Slots in all.
    pub slots: i32,
    /// Slots in use.
    pub busy: i32,
    /// The highest version of job data that it reads.
    pub data_version: u32,
    /// Images that triggers name, those that it has.
    pub images: BTreeMap<String, ImageSeen>,
    /// A fault that an operator should see (Docker away, disk full), in words.
    pub trouble: Option<String>,
}

/// A worker as it was last seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerRow {
    /// Its name.
    pub worker: WorkerName,
    /// The program's version.
    pub version: String,
    /// Slots in all.
    pub slots: i32,
    /// Slots in use.
    pub busy: i32,
    /// The highest version of job data that it reads.
    pub data_version: i32,
    /// Images that it has.
    pub images: BTreeMap<String, ImageSeen>,
    /// What troubles it.
    pub trouble: Option<String>,
    /// When it was started.
    pub started_at: DateTime<Utc>,
    /// When it last said something.
    pub seen_at: DateTime<Utc>,
    /// How long ago that was, in seconds, by PostgreSQL's clock.
    pub silent_seconds: f64,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Deliveries with their events and decisions. The events' keys stay.
    pub deliveries: u64,
    /// Finished jobs with all that hangs on them.
    pub jobs: u64,
    /// Sessions that had ended.
    pub sessions: u64,
}

impl Queue {
    /// Shows the triggers in force on that worker.
    pub async fn put_triggers(&self, worker: &WorkerName, new: &NewTriggers) -> Result<(), StoreError> {
        sqlx::query!(
            r#"
            INSERT INTO triggers_in_force (worker, file, sha256, triggers, faults, remarks) VALUES ($1, $2, $3, $4::text::json, $5::text::json, $6::text::json)
            ON CONFLICT (worker) DO UPDATE
            SET file = excluded.file, sha256 = excluded.sha256, triggers = excluded.triggers, faults = excluded.faults,
                remarks = excluded.remarks, at = now()
            "#,
            worker.as_str(),
            clean(&new.file),
            new.sha256,
            new.triggers.to_string(),
            new.faults.to_string(),
            new.remarks.to_string(),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Shows the worker; called at start (`starting`) and with every heartbeat.
    pub async fn put_worker(&self, new: &NewWorker, starting: bool) -> Result<(), StoreError> {
        sqlx::query!(
            r#"
            INSERT INTO workers (worker, version, slots, busy, data_version, images, trouble) VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (worker) DO UPDATE
            SET version = excluded.version, slots = excluded.slots, busy = excluded.busy, data_version = excluded.data_version,
                images = excluded.images, trouble = excluded.trouble, seen_at = now(),
                started_at = CASE WHEN $8 THEN now() ELSE workers.started_at END
            "#,
            new.worker.as_str(),
            new.version,
            new.slots,
            new.busy,
            i32::try_from(new.data_version).unwrap_or(i32::MAX),
            to_json("images", &new.images)?,
            new.trouble.as_deref().map(clean),
            starting,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// The worker stopped cleanly: it is not missed, and its triggers are no longer in force.
    pub async fn remove_worker(&self, worker: &WorkerName) -> Result<(), StoreError> {
        sqlx::query!(
            r#"
            WITH gone AS (DELETE FROM workers WHERE worker = $1)
            DELETE FROM triggers_in_force WHERE worker = $1
            "#,
            worker.as_str(),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Whether a worker that was seen within `within` has an image of that name.
    pub async fn image_somewhere(&self, image: &str, within: Duration) -> Result<bool, StoreError> {
        let there = sqlx::query_scalar!(
            r#"
            SELECT EXISTS (
                SELECT FROM workers WHERE images ? $1 AND seen_at > now() - make_interval(secs => $2)
            ) AS "there!"
            "#,
            image,
            within.as_secs_f64(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(there)
    }

    /// Removes what is older than `age`: decided deliveries, finished jobs, ended sessions. In small steps; call again while it removes something.
    /// The keys of events and our own posts stay.
    pub async fn prune(&self, age: Duration) -> Result<Pruned, StoreError> {
        let age = age.as_secs_f64();
        let deliveries = sqlx::query!(
            r#"
            DELETE FROM deliveries WHERE id IN (
                SELECT id FROM deliveries
                WHERE state IN ('decided', 'abandoned') AND decided_at < now() - make_interval(secs => $1)
                ORDER BY decided_at LIMIT 500
            )
            "#,
            age,
        )
        .execute(&self.pool)
        .await?;
        // A job whose words did not all reach the forge yet stays until they did.
        let jobs = sqlx::query!(
            r#"
            DELETE FROM jobs WHERE id IN (
                SELECT j.id FROM jobs j
                WHERE j.state = 'finished' AND j.finished_at < now() - make_interval(secs => $1)
                    AND NOT EXISTS (SELECT FROM outputs o WHERE o.job_id = j.id AND o.state = 'pending')
                ORDER BY j.finished_at LIMIT 50
            )
            "#,
            age,
        )
        .execute(&self.pool)
        .await?;
        let sessions = sqlx::query!("DELETE FROM sessions WHERE expires_at < now()")
            .execute(&self.pool)
            .await?;
        Ok(Pruned {
            deliveries: deliveries.rows_affected(),
            jobs: jobs.rows_affected(),
            sessions: sessions.rows_affected(),
        })
    }
}
