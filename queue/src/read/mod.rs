//! What the panel and the commands show. Nothing here changes a row.
//!
//! Lists are paged by key, newest first: hand the last row's number over as `before`. Logs are read forward: `after`.
//! Counts stop at [`COUNT_STOPS_AT`], so that a page costs the same with a million rows.

mod deliveries;
mod job;
mod jobs;
mod overview;
mod triggers;

pub use deliveries::{DecisionRow, DeliveryDetail, DeliveryFilter, DeliveryRow, EventRow, Explained, Verdict};
pub use job::{AskedRow, AttemptRow, JobDetail, LogRow, ModelRequestRow, OutputRow};
pub use jobs::{JobFilter, JobRow};
pub use overview::Overview;
pub use triggers::TriggerActivity;

/// Where counting ends.
pub const COUNT_STOPS_AT: i64 = 1_000;

/// The most rows that one page may ask for.
pub const PAGE_MAX: i64 = 200;

/// The most lines of a log that one question may ask for.
pub const LOG_PAGE_MAX: i64 = 2_000;

pub(crate) fn page(limit: i64) -> i64 {
    limit.clamp(1, PAGE_MAX)
}
