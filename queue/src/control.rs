//! What a person does to the deployment and its jobs: pause, stop, cancel. Each is audited in the same transaction.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

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
        let (mut transaction, stopped) = loop {
            // Each look in a transaction of its own: an UPDATE that waited for a row and then passes it by keeps it locked all the same.
            let mut transaction = self.pool.begin().await?;
            if ask_to_stop(&mut transaction, job, who).await? {
                break (transaction, Stopped::Asked);
            }
            transaction.rollback().await?;
            let mut transaction = self.pool.begin().await?;
            if let Some(stopped) = cancel(&mut transaction, job, who).await? {
                break (transaction, stopped);
            }
            // It was claimed between the two looks: look again.
            transaction.rollback().await?;
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

/// A running job is written to without its lane's lock: whoever ends it has the job's row and waits for the lane's, so to hold the lane's and
/// wait for the job's would be a deadlock. `false` when it does not run.
async fn ask_to_stop(connection: &mut PgConnection, job: JobId, who: &str) -> Result<bool, StoreError> {
    let asked = sqlx::query!(
        r#"
        UPDATE jobs SET stop_at = COALESCE(stop_at, now()), stop_by = COALESCE(stop_by, $2)
        WHERE id = $1 AND state = 'running'
        "#,
        job.0,
        clean(who),
    )
    .execute(&mut *connection)
    .await?;
    Ok(asked.rows_affected() == 1)
}

/// Ends a job that waits. `None` when it runs by now.
async fn cancel(connection: &mut PgConnection, job: JobId, who: &str) -> Result<Option<Stopped>, StoreError> {
    let detail = format!("by {who}");
    let (outcome, reason) = (Outcome::Cancelled, Reason::PersonCancelled);
    if end_waiting(connection, job, true, outcome, reason, &detail).await? {
        return Ok(Some(Stopped::Cancelled));
    }
    let state = sqlx::query_scalar!("SELECT state FROM jobs WHERE id = $1", job.0)
        .fetch_optional(&mut *connection)
        .await?
        .ok_or_else(|| StoreError::NotFound {
            what: "job",
            id: job.to_string(),
        })?;
    Ok((state == JobStatus::Finished.word()).then_some(Stopped::WasOver))
}
