//! What a person does to the deployment and its jobs: pause, stop, cancel. Each is audited in the same transaction.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::Queue;
use crate::error::StoreError;
use crate::finish::end_waiting;
use crate::ids::JobId;
use crate::notify::Channel;
use crate::people::audit;
use crate::reason::Reason;
use crate::state::{JobStatus, Outcome};
use crate::values::clean;

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
        let mut transaction = self.pool.begin().await?;
        sqlx::query!(
            "UPDATE settings SET paused_at = now(), paused_by = $1 WHERE paused_at IS NULL",
            clean(who)
        )
        .execute(&mut *transaction)
        .await?;
        audit(&mut transaction, who, "pause", "", &json!({})).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Claims go on.
    pub async fn resume(&self, who: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query!("UPDATE settings SET paused_at = NULL, paused_by = NULL")
            .execute(&mut *transaction)
            .await?;
        audit(&mut transaction, who, "resume", "", &json!({})).await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        Ok(())
    }

    /// The pause, if there is one.
    pub async fn paused(&self) -> Result<Option<Pause>, StoreError> {
        let pause = sqlx::query_as!(
            Pause,
            r#"SELECT paused_at AS "since!", paused_by AS "who!" FROM settings WHERE paused_at IS NOT NULL"#,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(pause)
    }

    /// Stops one job: a running one is asked to, a waiting one is cancelled.
    pub async fn stop(&self, job: JobId, who: &str) -> Result<Stopped, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let detail = format!("by {who}");
        let cancelled = end_waiting(
            &mut transaction,
            job,
            true,
            Outcome::Cancelled,
            Reason::PersonCancelled,
            &detail,
        )
        .await?;
        let stopped = if cancelled {
            Stopped::Cancelled
        } else {
            // The lane is locked by now, so a waiting job can not have begun in between.
            let state = sqlx::query_scalar!(
                r#"
                UPDATE jobs
                SET stop_at = CASE state WHEN 'running' THEN COALESCE(stop_at, now()) ELSE stop_at END,
                    stop_by = CASE state WHEN 'running' THEN COALESCE(stop_by, $2) ELSE stop_by END
                WHERE id = $1
                RETURNING state
                "#,
                job.0,
                clean(who),
            )
            .fetch_optional(&mut *transaction)
            .await?
            .ok_or_else(|| StoreError::NotFound {
                what: "job",
                id: job.to_string(),
            })?;
            if state == JobStatus::Running.word() {
                Stopped::Asked
            } else {
                Stopped::WasOver
            }
        };
        audit(
            &mut transaction,
            who,
            "stop",
            &format!("job {job}"),
            &json!({ "did": stopped }),
        )
        .await?;
        transaction.commit().await?;
        match stopped {
            Stopped::Asked => self.notifier.say(Channel::Stops),
            Stopped::Cancelled => self.notifier.say(Channel::Jobs),
            Stopped::WasOver => {}
        }
        Ok(stopped)
    }

    /// Stops every job that runs or waits. Returns what became of each.
    pub async fn stop_all(&self, who: &str) -> Result<Vec<(JobId, Stopped)>, StoreError> {
        // Waiting ones first, or a slot that becomes free would let one of them begin.
        let open = sqlx::query_scalar!(
            r#"
            SELECT id AS "job: JobId" FROM jobs
            WHERE state IN ('queued', 'held', 'running') ORDER BY state = 'running', id
            "#,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut stopped = Vec::with_capacity(open.len());
        for job in open {
            stopped.push((job, self.stop(job, who).await?));
        }
        Ok(stopped)
    }
}
