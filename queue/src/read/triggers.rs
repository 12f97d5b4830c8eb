//! The triggers that workers have in force, and what became of each.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{JobId, TriggerId};
use crate::live::TriggersInForce;

/// What a trigger did lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerActivity {
    /// Which.
    pub trigger: TriggerId,
    /// Its newest job.
    pub last_job: Option<JobId>,
    /// When that was made.
    pub last_at: Option<DateTime<Utc>>,
    /// Its jobs of the last 24 hours, counted up to [`super::COUNT_STOPS_AT`].
    pub jobs_day: i64,
}

impl Queue {
    /// One per worker, by name. Workers whose `sha256` differ have different files.
    pub async fn triggers_in_force(&self) -> Result<Vec<TriggersInForce>, StoreError> {
        todo!()
    }

    /// What these triggers did lately, in the same order.
    pub async fn trigger_activity(&self, triggers: &[TriggerId]) -> Result<Vec<TriggerActivity>, StoreError> {
        let _ = triggers;
        todo!()
    }
}
