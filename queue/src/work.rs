//! What a worker writes about a job that it has: container, gates, log, proposals.
//!
//! Each write is fenced: see [`crate::claim`].

use serde::Serialize;
use serde_json::Value;

use crate::Queue;
use crate::claim::Claim;
use crate::error::StoreError;
use crate::finish::container_is_gone;
use crate::ids::{Attempt, JobId, ProposalId};
use crate::lease::CONTAINER_GRACE;
use crate::notify::Channel;
use crate::reason::Reason;
use crate::state::{GateVerdict, words};
use crate::values::clean;

words!(
    /// Who says a line of a job's log.
    LogSource {
        /// The runner in the container; its own numbers.
        Runner = "runner",
        /// The worker; numbers of the worker.
        Worker = "worker",
        /// The gateway, through the worker.
        Gateway = "gateway",
    }
);

/// One line of a job's log.
#[derive(Debug, Clone)]
pub struct LogLine {
    /// Who says it.
    pub source: LogSource,
    /// Unique per job, attempt and source. A line that is there already is left as it is: so a log may be read again after an adoption.
    pub seq: i64,
    /// One word: the event.
    pub kind: String,
    /// The event, with its fields. Bounded by the caller.
    pub data: Value,
}

/// A gate's verdict, for the run's page.
#[derive(Debug, Clone, Serialize)]
pub struct GateRow {
    /// The gate's number in the order of the design.
    pub number: i16,
    /// Its name, one or a few words.
    pub name: String,
    /// What it said.
    pub verdict: GateVerdict,
    /// Why not, when it said no.
    pub reason: Option<Reason>,
    /// What it saw, in words: also when it passed.
    pub detail: String,
    /// How long it took, in microseconds.
    pub micros: i64,
}

/// Whether a proposal was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proposed {
    /// Yes.
    Kept(ProposalId),
    /// The job has made as many of its sort as it may.
    Full {
        /// How many that is.
        at_most: u32,
    },
}

/// A proposal that was kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// Its number.
    pub id: ProposalId,
    /// The tool's name.
    pub tool: String,
    /// Its checked arguments.
    pub arguments: Value,
}

impl Queue {
    /// Records a gate. Asked again in the same attempt (after an adoption), the newer verdict stands.
    pub async fn gate(&self, claim: &Claim, row: &GateRow) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            WITH mine AS (
                SELECT id FROM jobs WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 FOR SHARE
            )
            INSERT INTO gates (job_id, attempt, number, name, verdict, reason, detail, micros)
            SELECT mine.id, $2, $4, $5, $6, $7, $8, $9 FROM mine
            ON CONFLICT (job_id, attempt, number) DO UPDATE
            SET name = excluded.name, verdict = excluded.verdict, reason = excluded.reason, detail = excluded.detail,
                micros = excluded.micros, at = now()
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            row.number,
            row.name,
            row.verdict.word(),
            row.reason.map(Reason::word),
            clean(&row.detail),
            row.micros,
        )
        .execute(&self.pool)
        .await?;
        claim.still_ours(written.rows_affected())
    }

    /// Records the container that was made (not started yet), and the image id that it was made from.
    pub async fn container_created(&self, claim: &Claim, container: &str, image: &str) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            WITH mine AS (
                SELECT id FROM jobs WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 FOR SHARE
            )
            UPDATE attempts SET container = $4, image = $5 FROM mine WHERE job_id = mine.id AND attempt = $2
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            container,
            image,
        )
        .execute(&self.pool)
        .await?;
        claim.still_ours(written.rows_affected())
    }

    /// Records that the container is to be started now. Committed before it is started.
    pub async fn container_started(&self, claim: &Claim) -> Result<(), StoreError> {
        let written = sqlx::query!(
            r#"
            WITH mine AS (
                UPDATE jobs SET started_at = COALESCE(started_at, now())
                WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3
                RETURNING id
            )
            UPDATE attempts SET started_at = now() FROM mine WHERE job_id = mine.id AND attempt = $2
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
        )
        .execute(&self.pool)
        .await?;
        claim.still_ours(written.rows_affected())
    }

    /// Records that the container of an attempt was seen gone, and opens the lane that a rescue had closed because of it. Not fenced:
    /// gone is gone, whoever saw it.
    pub async fn container_gone(&self, job: JobId, attempt: Attempt, exit_code: Option<i32>) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        container_is_gone(&mut transaction, job, attempt, exit_code).await?;
        sqlx::query!(
            r#"
            UPDATE lanes SET free_at = '-infinity'
            WHERE id = (SELECT lane_id FROM jobs WHERE id = $1) AND free_at > now()
                AND NOT EXISTS (
                    SELECT FROM attempts a JOIN jobs j ON j.id = a.job_id
                    WHERE j.lane_id = lanes.id AND a.ended_at > now() - make_interval(secs => $2)
                        AND a.container IS NOT NULL AND a.gone_at IS NULL
                )
            "#,
            job.0,
            CONTAINER_GRACE.as_secs_f64(),
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.notifier.say(Channel::Jobs);
        Ok(())
    }

    /// Appends lines; those that are there already are skipped. Returns how many were new.
    pub async fn append_log(&self, claim: &Claim, lines: &[LogLine]) -> Result<u64, StoreError> {
        let row = sqlx::query!(
            r#"
            WITH mine AS (
                SELECT id FROM jobs WHERE id = $1 AND state = 'running' AND attempt = $2 AND lease_no = $3 FOR SHARE
            ), new AS (
                INSERT INTO job_log (job_id, attempt, source, seq, kind, data)
                SELECT mine.id, $2, line.source, line.seq, line.kind, line.data::json
                FROM mine CROSS JOIN unnest($4::text[], $5::bigint[], $6::text[], $7::text[]) WITH ORDINALITY
                    AS line (source, seq, kind, data, place)
                ORDER BY line.place
                ON CONFLICT (job_id, attempt, source, seq) DO NOTHING
                RETURNING id
            )
            SELECT (SELECT count(*) FROM mine) AS "mine!", (SELECT count(*) FROM new) AS "new!"
            "#,
            claim.job.0,
            claim.attempt.0,
            claim.lease.0,
            &lines
                .iter()
                .map(|line| line.source.word().to_owned())
                .collect::<Vec<_>>(),
            &lines.iter().map(|line| line.seq).collect::<Vec<_>>(),
            &lines.iter().map(|line| clean(&line.kind)).collect::<Vec<_>>(),
            &lines.iter().map(|line| line.data.to_string()).collect::<Vec<_>>(),
        )
        .fetch_one(&self.pool)
        .await?;
        if row.mine == 0 {
            return Err(claim.lost());
        }
        Ok(u64::try_from(row.new).unwrap_or(0))
    }

    /// The highest number of a source that the log of this attempt holds: where to read on after an adoption.
    pub async fn last_seq(&self, claim: &Claim, source: LogSource) -> Result<Option<i64>, StoreError> {
        let seq = sqlx::query_scalar!(
            "SELECT max(seq) FROM job_log WHERE job_id = $1 AND attempt = $2 AND source = $3",
            claim.job.0,
            claim.attempt.0,
            source.word(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(seq)
    }

    /// Keeps a checked proposal, unless the job has `at_most` of that tool already.
    pub async fn propose(
        &self,
        claim: &Claim,
        tool: &str,
        arguments: &Value,
        at_most: u32,
    ) -> Result<Proposed, StoreError> {
        let mut transaction = self.pool.begin().await?;
        claim.lock(&mut transaction).await?;
        let there = sqlx::query_scalar!(
            r#"SELECT count(*) AS "there!" FROM proposals WHERE job_id = $1 AND attempt = $2 AND tool = $3"#,
            claim.job.0,
            claim.attempt.0,
            tool,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if there >= i64::from(at_most) {
            return Ok(Proposed::Full { at_most });
        }
        let id = sqlx::query_scalar!(
            r#"
            INSERT INTO proposals (job_id, attempt, tool, ordinal, arguments) VALUES ($1, $2, $3, $4, $5::text::json)
            RETURNING id AS "id: ProposalId"
            "#,
            claim.job.0,
            claim.attempt.0,
            tool,
            i32::try_from(there).unwrap_or(i32::MAX),
            arguments.to_string(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Proposed::Kept(id))
    }

    /// What was kept in this attempt, in order.
    pub async fn proposals(&self, claim: &Claim) -> Result<Vec<Proposal>, StoreError> {
        let rows = sqlx::query_as!(
            Proposal,
            r#"
            SELECT id AS "id: ProposalId", tool, arguments FROM proposals WHERE job_id = $1 AND attempt = $2 ORDER BY id
            "#,
            claim.job.0,
            claim.attempt.0,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }

    /// Which of these running jobs somebody wants stopped, and who.
    pub async fn stops_requested(&self, claims: &[&Claim]) -> Result<Vec<(JobId, String)>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let rows = sqlx::query!(
            r#"
            SELECT id AS "job: JobId", stop_by AS "who!" FROM jobs
            WHERE id = ANY ($1) AND state = 'running' AND stop_at IS NOT NULL
            "#,
            &claims.iter().map(|claim| claim.job.0).collect::<Vec<_>>(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| (row.job, row.who)).collect())
    }
}
