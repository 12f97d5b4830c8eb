//! The first page: how much waits, runs and was spent.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::types::Json;

use crate::Queue;
use crate::control::Pause;
use crate::error::StoreError;
use crate::ids::WorkerName;
use crate::live::{ImageSeen, WorkerRow};
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
        let counts = sqlx::query!(
            r#"
            SELECT
                (SELECT count(*) FROM (SELECT FROM jobs WHERE state = 'queued' LIMIT $1) z) AS "queued!",
                (SELECT count(*) FROM (SELECT FROM jobs WHERE state = 'running' LIMIT $1) z) AS "running!",
                (SELECT count(*) FROM (SELECT FROM jobs WHERE state = 'held' LIMIT $1) z) AS "held!",
                (SELECT count(*) FROM (SELECT FROM jobs
                    WHERE state = 'finished' AND finished_at > now() - interval '1 day' LIMIT $1) z) AS "finished_day!",
                (SELECT count(*) FROM (SELECT FROM jobs
                    WHERE state = 'finished' AND finished_at > now() - interval '1 day' AND outcome <> 'completed'
                    LIMIT $1) z) AS "not_completed_day!",
                (SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'received' LIMIT $1) z) AS "deliveries_received!",
                (SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'waiting' LIMIT $1) z) AS "deliveries_waiting!",
                (SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'abandoned' LIMIT $1) z) AS "deliveries_abandoned!",
                (SELECT count(*) FROM (SELECT FROM outputs WHERE state = 'pending' LIMIT $1) z) AS "outputs_pending!",
                (SELECT count(*) FROM (SELECT FROM outputs WHERE state = 'failed' LIMIT $1) z) AS "outputs_failed!"
            "#,
            super::COUNT_STOPS_AT,
        )
        .fetch_one(&self.pool)
        .await?;
        let (day_is, day) = self.day_spend().await?;
        Ok(Overview {
            queued: counts.queued,
            running: counts.running,
            held: counts.held,
            finished_day: counts.finished_day,
            not_completed_day: counts.not_completed_day,
            deliveries_received: counts.deliveries_received,
            deliveries_waiting: counts.deliveries_waiting,
            deliveries_abandoned: counts.deliveries_abandoned,
            outputs_pending: counts.outputs_pending,
            outputs_failed: counts.outputs_failed,
            day,
            day_is,
            pause: self.paused().await?,
            workers: self.workers().await?,
        })
    }

    /// The workers, as last seen.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        let rows = sqlx::query!(
            r#"
            SELECT worker AS "worker: WorkerName", version, slots, busy, data_version, images AS "images: Json<BTreeMap<String, ImageSeen>>",
                trouble, started_at, seen_at, extract(epoch FROM now() - seen_at)::float8 AS "silent_seconds!"
            FROM workers ORDER BY worker
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| WorkerRow {
                worker: row.worker,
                version: row.version,
                slots: row.slots,
                busy: row.busy,
                data_version: row.data_version,
                images: row.images.0,
                trouble: row.trouble,
                started_at: row.started_at,
                seen_at: row.seen_at,
                silent_seconds: row.silent_seconds,
            })
            .collect())
    }
}
