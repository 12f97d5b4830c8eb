//! The triggers that workers have in force, and what became of each.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::{JobId, TriggerId, WorkerName};
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
        let rows = sqlx::query_as!(
            TriggersInForce,
            r#"
            SELECT worker AS "worker: WorkerName", file, sha256, triggers, faults, remarks, at FROM triggers_in_force ORDER BY worker
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// What these triggers did lately, in the same order.
    pub async fn trigger_activity(&self, triggers: &[TriggerId]) -> Result<Vec<TriggerActivity>, StoreError> {
        let rows = sqlx::query_as!(
            TriggerActivity,
            r#"
            SELECT asked.trigger AS "trigger!: TriggerId", last.id AS "last_job?: JobId", last.created_at AS "last_at?",
                (SELECT count(*) FROM (
                    SELECT FROM jobs j WHERE j.trigger_id = asked.trigger AND j.created_at > now() - interval '1 day'
                    ORDER BY j.id DESC LIMIT $2
                ) z) AS "jobs_day!"
            FROM unnest($1::text[]) WITH ORDINALITY AS asked (trigger, place)
            LEFT JOIN LATERAL (
                SELECT j.id, j.created_at FROM jobs j WHERE j.trigger_id = asked.trigger ORDER BY j.id DESC LIMIT 1
            ) last ON true
            ORDER BY asked.place
            "#,
            &triggers.iter().map(|trigger| trigger.0.clone()).collect::<Vec<_>>(),
            super::COUNT_STOPS_AT,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }
}
