//! Money: what a run and a day may cost, and what they have cost.
//!
//! Money is whole micro-dollars ([`Micros`]), days are UTC days of the reservation, tokens are counted as the provider bills them.
//! Before a byte of a model request leaves, a row with its worst case is committed ([`Queue::reserve_model`]); it is replaced by what
//! the provider counted when that is known ([`Queue::settle_model`]). A row that is never settled stays charged in full.
//!
//! Reserving locks the run's row and the day's row, in that order: parallel requests can not pass a cap together.
//! "Not enough left" is an answer: [`Reserved::No`].

use chrono::NaiveDate;
use contract::Micros;
use serde::Serialize;

use crate::Queue;
use crate::claim::Claim;
use crate::error::StoreError;
use crate::ids::{Attempt, JobId, ReservationId};
use crate::reason::Reason;
use crate::values::{Money, clean};

/// A model request about to be made.
#[derive(Debug, Clone)]
pub struct NewReservation {
    /// The provider's configured name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// Most tokens that it can use, input and output.
    pub worst_tokens: i64,
    /// Most that it can cost.
    pub worst_cost: Micros,
}

/// The caps that hold. A `None` is no cap of that sort.
#[derive(Debug, Clone, Default)]
pub struct Caps {
    /// Model requests of the run.
    pub run_requests: Option<i64>,
    /// Tokens of the run.
    pub run_tokens: Option<i64>,
    /// Cost of the run.
    pub run_cost: Option<Micros>,
    /// Tokens of the deployment on this UTC day.
    pub day_tokens: Option<i64>,
    /// Cost of the deployment on this UTC day.
    pub day_cost: Option<Micros>,
}

/// Whether the request may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// Yes; its row is committed.
    Yes(ReservationId),
    /// No; nothing was written. One of `request-cap`, `token-cap`, `cost-cap`, `day-token-cap`, `day-cost-cap`.
    No {
        /// The cap that refuses.
        cap: Reason,
    },
}

/// What a model request really used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Settlement {
    /// Tokens read.
    pub input: i64,
    /// Tokens written.
    pub output: i64,
    /// Tokens read from the provider's cache.
    pub cache_read: i64,
    /// Tokens written into the provider's cache.
    pub cache_write: i64,
    /// All tokens, as they count against caps.
    pub tokens: i64,
    /// What it cost.
    pub cost: Micros,
    /// The provider's answer: an HTTP status, `broken-off`, or `usage-missing`.
    pub status: String,
}

/// What was spent, unsettled requests in full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// Model requests.
    pub requests: i64,
    /// Tokens read.
    pub input: i64,
    /// Tokens written.
    pub output: i64,
    /// Tokens read from the provider's cache.
    pub cache_read: i64,
    /// Tokens written into the provider's cache.
    pub cache_write: i64,
    /// All tokens, as they count against caps.
    pub tokens: i64,
    /// Money.
    pub cost: Micros,
}

/// The cap that a row with `had` would pass by `more`, in the order of the list.
fn passed(checks: &[(Option<i64>, i64, i64, Reason)]) -> Option<Reason> {
    checks
        .iter()
        .find(|(cap, had, more, _)| cap.is_some_and(|cap| had.saturating_add(*more) > cap))
        .map(|(.., reason)| *reason)
}

impl Queue {
    /// Sets the worst case of a request aside, or says which cap refuses. Fenced. Committed when it returns.
    pub async fn reserve_model(
        &self,
        claim: &Claim,
        new: &NewReservation,
        caps: &Caps,
    ) -> Result<Reserved, StoreError> {
        let mut transaction = self.pool.begin().await?;
        // Keeps a rescue out until this is committed: it must see that the attempt spent.
        claim.hold_fast(&mut transaction).await?;

        // Each row is locked by the upsert and says what it was before.
        let run = sqlx::query!(
            r#"
            INSERT INTO run_spend (job_id, attempt) VALUES ($1, $2)
            ON CONFLICT (job_id, attempt) DO UPDATE SET requests = run_spend.requests
            RETURNING requests, tokens, cost
            "#,
            claim.job.0,
            claim.attempt.0,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if let Some(cap) = passed(&[
            (caps.run_requests, run.requests, 1, Reason::RequestsCap),
            (caps.run_tokens, run.tokens, new.worst_tokens, Reason::TokensCap),
            (
                caps.run_cost.map(|cost| cost.0),
                run.cost,
                new.worst_cost.0,
                Reason::CostCap,
            ),
        ]) {
            transaction.rollback().await?;
            return Ok(Reserved::No { cap });
        }
        let day = sqlx::query!(
            r#"
            INSERT INTO day_spend (day) VALUES ((now() AT TIME ZONE 'UTC')::date)
            ON CONFLICT (day) DO UPDATE SET requests = day_spend.requests
            RETURNING day, tokens, cost
            "#,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if let Some(cap) = passed(&[
            (caps.day_tokens, day.tokens, new.worst_tokens, Reason::DayTokensCap),
            (
                caps.day_cost.map(|cost| cost.0),
                day.cost,
                new.worst_cost.0,
                Reason::DayCostCap,
            ),
        ]) {
            transaction.rollback().await?;
            return Ok(Reserved::No { cap });
        }

        let id = sqlx::query_scalar!(
            r#"
            WITH run AS (
                UPDATE run_spend SET requests = requests + 1, tokens = tokens + $3, cost = cost + $4
                WHERE job_id = $1 AND attempt = $2
            ), day AS (
                UPDATE day_spend SET requests = requests + 1, tokens = tokens + $3, cost = cost + $4 WHERE day = $5
            )
            INSERT INTO model_requests (job_id, attempt, provider, model, day, worst_tokens, worst_cost)
            VALUES ($1, $2, $6, $7, $5, $3, $4)
            RETURNING id AS "id: ReservationId"
            "#,
            claim.job.0,
            claim.attempt.0,
            new.worst_tokens,
            new.worst_cost.0,
            day.day,
            clean(&new.provider),
            clean(&new.model),
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Reserved::Yes(id))
    }

    /// Replaces the worst case by what it was. Twice is once. Not fenced: what was spent counts, whoever has the job now.
    pub async fn settle_model(&self, reservation: ReservationId, settlement: &Settlement) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            UPDATE model_requests
            SET settled_at = now(), status = $2, input = $3, output = $4, cache_read = $5, cache_write = $6, tokens = $7, cost = $8
            WHERE id = $1 AND settled_at IS NULL
            RETURNING job_id, attempt, day, worst_tokens, worst_cost
            "#,
            reservation.0,
            clean(&settlement.status),
            settlement.input,
            settlement.output,
            settlement.cache_read,
            settlement.cache_write,
            settlement.tokens,
            settlement.cost.0,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(());
        };
        // In the same order as a reservation: the run's row, then the day's.
        sqlx::query!(
            "UPDATE run_spend SET tokens = tokens + $3, cost = cost + $4 WHERE job_id = $1 AND attempt = $2",
            row.job_id,
            row.attempt,
            settlement.tokens - row.worst_tokens,
            settlement.cost.0 - row.worst_cost,
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query!(
            r#"
            UPDATE day_spend
            SET tokens = tokens + $2, cost = cost + $3,
                input = input + $4, output = output + $5, cache_read = cache_read + $6, cache_write = cache_write + $7
            WHERE day = $1
            "#,
            row.day,
            settlement.tokens - row.worst_tokens,
            settlement.cost.0 - row.worst_cost,
            settlement.input,
            settlement.output,
            settlement.cache_read,
            settlement.cache_write,
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// What one attempt has spent.
    pub async fn run_spend(&self, job: JobId, attempt: Attempt) -> Result<Spend, StoreError> {
        self.spend_of(job, Some(attempt)).await
    }

    /// What a job has spent in all its attempts, or in one.
    pub(crate) async fn spend_of(&self, job: JobId, attempt: Option<Attempt>) -> Result<Spend, StoreError> {
        let spend = sqlx::query_as!(
            Spend,
            r#"
            SELECT count(*) AS "requests!",
                COALESCE(sum(input), 0)::bigint AS "input!", COALESCE(sum(output), 0)::bigint AS "output!",
                COALESCE(sum(cache_read), 0)::bigint AS "cache_read!", COALESCE(sum(cache_write), 0)::bigint AS "cache_write!",
                COALESCE(sum(COALESCE(tokens, worst_tokens)), 0)::bigint AS "tokens!",
                COALESCE(sum(COALESCE(cost, worst_cost)), 0)::bigint AS "cost!: Money"
            FROM model_requests WHERE job_id = $1 AND ($2::integer IS NULL OR attempt = $2)
            "#,
            job.0,
            attempt.map(|attempt| attempt.0),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(spend)
    }

    /// What the deployment has spent today (UTC), and which day that is.
    pub async fn day_spend(&self) -> Result<(NaiveDate, Spend), StoreError> {
        let row = sqlx::query!(
            r#"
            SELECT today.day AS "day!", COALESCE(d.requests, 0) AS "requests!", COALESCE(d.tokens, 0) AS "tokens!",
                COALESCE(d.cost, 0) AS "cost!", COALESCE(d.input, 0) AS "input!", COALESCE(d.output, 0) AS "output!",
                COALESCE(d.cache_read, 0) AS "cache_read!", COALESCE(d.cache_write, 0) AS "cache_write!"
            FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS day) today LEFT JOIN day_spend d ON d.day = today.day
            "#,
        )
        .fetch_one(&self.pool)
        .await?;
        let spend = Spend {
            requests: row.requests,
            input: row.input,
            output: row.output,
            cache_read: row.cache_read,
            cache_write: row.cache_write,
            tokens: row.tokens,
            cost: Micros(row.cost),
        };
        Ok((row.day, spend))
    }
}
