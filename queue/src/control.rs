//! What a person does to the deployment and its jobs: pause, stop, cancel. Each is audited in the same transaction.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::JobId;

/// A pause of the whole deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Since when.
    pub since: DateTime<Utc>,
    /// By whom.
    pub who: String,
}

/// What a stop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// It runs; its worker was asked to stop it.
    Asked,
    /// It had not begun; it is cancelled.
    Cancelled,
    /// It was over already.
    WasOver,
}

impl Queue {
    /// Nothing is claimed any more; what runs goes on.
    pub async fn pause(&self, who: &str) -> Result<(), StoreError> {
        let _ = who;
        todo!()
    }

    /// Claims go on.
    pub async fn resume(&self, who: &str) -> Result<(), StoreError> {
        let _ = who;
        todo!()
    }

    /// The pause, if there is one.
    pub async fn paused(&self) -> Result<Option<Pause>, StoreError> {
        todo!()
    }

    /// Stops one job: a running one is asked to, a waiting one is cancelled.
    pub async fn stop(&self, job: JobId, who: &str) -> Result<Stopped, StoreError> {
        let _ = (job, who);
        todo!()
    }

    /// Stops every job that runs or waits. Returns what became of each.
    pub async fn stop_all(&self, who: &str) -> Result<Vec<(JobId, Stopped)>, StoreError> {
        let _ = who;
        todo!()
    }
}
