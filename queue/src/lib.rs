//! Everything in PostgreSQL: all SQL, the states, leases, the outbox, the log.
//!
//! [`Queue`] is a pool of connections with one function per question, named for what it does. What passes between receiver, worker and
//! panel is a row that this crate writes and reads; none of them sees SQL.
//!
//! * a delivery: [`Queue::store_delivery`] → [`Queue::take_delivery`] → [`Queue::decide`];
//! * a job: [`Queue::claim`] → gates, container, log, money, each fenced by the [`Claim`] → [`Queue::finish`];
//! * something for a forge: a [`NewOutput`] → [`Queue::take_output`] → [`Queue::output_posted`];
//! * a page: [`read`].
//!
//! States are enums here, CHECKs in `migrations/`, diagrams in `docs/job-states.md`. Times are PostgreSQL's. Fails with [`StoreError`]
//! when PostgreSQL does, or when somebody else has the row by now.
//!
//! # The checked queries
//!
//! Queries are checked against the real schema when this crate is compiled: with what is kept in `queue/.sqlx`, or, where `DATABASE_URL` is
//! set, with that database. After a change of a query or a migration run `queue/prepare URL` with a database that may be thrown away; it brings
//! `queue/.sqlx` up to date. `queue/prepare --check URL` only says whether it is.

mod claim;
mod control;
mod data;
mod decide;
mod deliveries;
mod error;
mod finish;
mod ids;
mod lease;
mod live;
mod money;
mod notify;
mod outbox;
mod people;
pub mod read;
mod reason;
mod setup;
mod state;
mod values;
mod work;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use sqlx::PgPool;

pub use claim::{Claim, ClaimRequest};
pub use control::{Pause, Stopped};
pub use data::{Actor, Asked, JobData, Limits, Repository, Subject};
pub use decide::{
    Call, Decided, DecidedEvent, DeliveryVerdict, EventVerdict, Fire, FiredJob, NewDecision, lane_of_subject, series_of,
};
pub use deliveries::{Delivery, NewDelivery, RUN_REQUEST, Receipt, RunRequest};
pub use error::StoreError;
pub use finish::{Finish, WentBack};
pub use ids::{
    Attempt, DeliveryId, EventId, JobId, LeaseNo, LogId, OutputId, ProposalId, RepositoryKey, ReservationId, TriggerId,
    UserId, WorkerName,
};
pub use lease::{Adoptable, CONTAINER_GRACE, HEARTBEAT, LEASE, LeaseRow, MAX_ATTEMPTS, Rescued};
pub use live::{ImageSeen, NewTriggers, NewWorker, Pruned, TriggersInForce, WorkerRow};
pub use money::{Caps, NewReservation, Reserved, Settlement, Spend};
pub use notify::{Channel, Heard, Listener, Notifier};
pub use outbox::{NewOutput, Output, OwnPost, Unanswered};
pub use people::{AuditRow, Session, User};
pub use reason::{About, Reason, reasons_page};
pub use setup::{Connect, MIGRATIONS};
pub use state::{DeliveryStatus, GateVerdict, JobRef, JobState, JobStatus, Outcome, OutputKind, OutputStatus, Role};
pub use work::{GateRow, LogLine, LogSource, Proposal, Proposed};

/// The database, as one value. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Queue {
    pool: PgPool,
    notifier: Notifier,
    /// The repository that this process served last: where the next claim's tour begins. -1 before the first.
    served: Arc<AtomicI64>,
}

impl Queue {
    /// Over a pool that is there already, as in tests.
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Self {
        let notifier = Notifier::new(pool.clone());
        Self {
            pool,
            notifier,
            served: Arc::new(AtomicI64::new(-1)),
        }
    }
}
