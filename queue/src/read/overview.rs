//! The first page: how much waits, runs and was spent.

use serde::Serialize;

use crate::Queue;
use crate::control::Pause;
use crate::error::StoreError;
use crate::live::WorkerRow;
use crate::money::Spend;

/// Counts stop at [`super::COUNT_STOPS_AT`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Jobs that may be claimed or are not due yet.
    pub queued: i64,
    /// Jobs that run.
    pub running: i64,
    /// Jobs that are held.
    pub held: i64,
    /// Jobs that finished within the last 24 hours.
    pub finished_day: i64,
    /// Of those, the ones that did not complete.
    pub not_completed_day: i64,
    /// Deliveries that were not looked at yet.
    pub deliveries_received: i64,
    /// Deliveries that wait for a look-up.
    pub deliveries_waiting: i64,
    /// Deliveries that were given up.
    pub deliveries_abandoned: i64,
    /// Outputs that wait to be posted.
    pub outputs_pending: i64,
    /// Outputs that failed.
    pub outputs_failed: i64,
    /// Spent today.
    pub day: Spend,
    /// The UTC day that `day` speaks of.
    pub day_is: chrono::NaiveDate,
    /// The pause, if there is one.
    pub pause: Option<Pause>,
    /// The workers, as last seen.
    pub workers: Vec<WorkerRow>,
}

impl Queue {
    /// The first page's figures.
    pub async fn overview(&self) -> Result<Overview, StoreError> {
        todo!()
    }

    /// The workers, as last seen.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        todo!()
    }
}
