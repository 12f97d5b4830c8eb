//! Names of rows, as newtypes: a job's number can not be handed over where a delivery's is wanted.
//!
//! Numbers are PostgreSQL's `bigint` identities; they grow, are never used again and start at 1.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The same name as borrowed text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

number!(
    /// One delivery that a forge sent, or one request of a person.
    DeliveryId(i64)
);
number!(
    /// One arrival of something that happened on a forge.
    EventId(i64)
);
number!(
    /// One job.
    JobId(i64)
);
number!(
    /// How often a job was claimed: 0 before the first claim, then 1, 2, …
    Attempt(i32)
);
number!(
    /// The second half of the fencing token: raised by every claim and every adoption.
    LeaseNo(i64)
);
number!(
    /// A repository as this database knows it (not the forge's number).
    RepositoryKey(i64)
);
number!(
    /// A line of a job's log. Grows within a job: `after` in paging and `Last-Event-ID` in the live view.
    LogId(i64)
);
number!(
    /// A row of money set aside for one model request.
    ReservationId(i64)
);
number!(
    /// A proposal of the agent that was accepted.
    ProposalId(i64)
);
number!(
    /// A row of the outbox.
    OutputId(i64)
);
number!(
    /// Somebody who may sign in.
    UserId(i64)
);

word!(
    /// A worker's name, unique in the deployment: it says which host holds a container.
    WorkerName
);
word!(
    /// A trigger's identity, as the trigger language derives it (never a position in the file).
    TriggerId
);
