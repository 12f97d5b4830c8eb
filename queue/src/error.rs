//! What can go wrong between a caller and PostgreSQL, one variant per reaction.

use crate::ids::{Attempt, JobId, LeaseNo};

/// Why PostgreSQL did not do what was asked. A refusal ("not enough left", "already there") is not here: it is an answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has the job now, or it is over. Drop it: every later write would fail too.
    #[error("the lease of job {job} (attempt {attempt}, lease {lease}) is gone")]
    LeaseLost {
        /// The job that was written to.
        job: JobId,
        /// The attempt of the writer.
        attempt: Attempt,
        /// The lease number of the writer.
        lease: LeaseNo,
    },
    /// Somebody else has the delivery or the output now. Drop it.
    #[error("{what} {id} was taken over by somebody else")]
    TakenOver {
        /// `delivery` or `output`.
        what: &'static str,
        /// Its number.
        id: i64,
    },
    /// There is no such row. Tell the person who asked.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What was looked for, in one word.
        what: &'static str,
        /// Under which name.
        id: String,
    },
    /// The row is there but not in a state in which this is possible. Tell the person who asked.
    #[error("{what} {id} is {state}")]
    WrongState {
        /// What was looked at, in one word.
        what: &'static str,
        /// Its number.
        id: i64,
        /// The state that it was found in.
        state: String,
    },
    /// The schema is older or newer than this program. Run `pi-dispatch migrate`, or the newer program.
    #[error("the database's schema is {found}, this program needs {needed}")]
    Schema {
        /// What the database has; `none` before the first migration.
        found: String,
        /// What is compiled in.
        needed: i64,
    },
    /// A row holds what this version can not read. Leave the row alone.
    #[error("{what} holds data that this version does not know: {error}")]
    Unreadable {
        /// Which row.
        what: String,
        /// What serde says; it names keys, never values.
        error: String,
    },
    /// A migration failed. Nothing of it is in force.
    #[error("the migration failed")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// PostgreSQL is away, slow, or refused the statement. Wait and try again.
    #[error("postgresql: {0}")]
    Database(#[from] sqlx::Error),
}

impl StoreError {
    /// Whether waiting may help: the connection or the server, not the statement.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => true,
                // 08 connection, 40 rollback (deadlock, serialisation), 53 resources, 55P03 lock not available, 57 operator (restart, time-out),
                // 58 the server's own disk, 25006 a server that is read-only just now (failover).
                sqlx::Error::Database(error) => error.code().is_some_and(|code| {
                    ["08", "25006", "40", "53", "55", "57", "58"]
                        .iter()
                        .any(|class| code.starts_with(class))
                }),
                _ => false,
            },
            _ => false,
        }
    }
}
