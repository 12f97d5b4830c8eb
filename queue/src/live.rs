//! What workers show of themselves: the triggers in force, their images, that they live.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::WorkerName;

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
        let _ = (worker, new);
        todo!()
    }

    /// Shows the worker; called at start (`starting`) and with every heartbeat.
    pub async fn put_worker(&self, new: &NewWorker, starting: bool) -> Result<(), StoreError> {
        let _ = (new, starting);
        todo!()
    }

    /// The worker stopped cleanly: it is not missed.
    pub async fn remove_worker(&self, worker: &WorkerName) -> Result<(), StoreError> {
        let _ = worker;
        todo!()
    }

    /// Whether a worker that was seen within `within` has an image of that name.
    pub async fn image_somewhere(&self, image: &str, within: Duration) -> Result<bool, StoreError> {
        let _ = (image, within);
        todo!()
    }

    /// Removes what is older than `age`: decided deliveries, finished jobs, ended sessions. In small steps; call again while it removes something.
    pub async fn prune(&self, age: Duration) -> Result<Pruned, StoreError> {
        let _ = age;
        todo!()
    }
}
