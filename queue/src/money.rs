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
    /// No; nothing was written. One of `requests-cap`, `tokens-cap`, `cost-cap`, `day-tokens-cap`, `day-cost-cap`.
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

impl Queue {
    /// Sets the worst case of a request aside, or says which cap refuses. Fenced. Committed when it returns.
    pub async fn reserve_model(
        &self,
        claim: &Claim,
        new: &NewReservation,
        caps: &Caps,
    ) -> Result<Reserved, StoreError> {
        let _ = (claim, new, caps);
        todo!()
    }

    /// Replaces the worst case by what it was. Twice is once. Not fenced: what was spent counts, whoever has the job now.
    pub async fn settle_model(&self, reservation: ReservationId, settlement: &Settlement) -> Result<(), StoreError> {
        let _ = (reservation, settlement);
        todo!()
    }

    /// What one attempt has spent.
    pub async fn run_spend(&self, job: JobId, attempt: Attempt) -> Result<Spend, StoreError> {
        let _ = (job, attempt);
        todo!()
    }

    /// What the deployment has spent today (UTC), and which day that is.
    pub async fn day_spend(&self) -> Result<(NaiveDate, Spend), StoreError> {
        todo!()
    }
}
