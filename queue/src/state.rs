//! The states of rows, said three times: here, as CHECKs in the migrations, and as diagrams in `docs/job-states.md`.
//!
//! The words are what PostgreSQL holds. What a state carries stands in [`JobState`]; reading a row whose columns do not fit its
//! word is [`crate::StoreError::Unreadable`], and the CHECK makes that impossible.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::ids::{Attempt, JobId, WorkerName};
use crate::reason::Reason;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, sqlx::Type)]
        #[sqlx(type_name = "text")]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] #[sqlx(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in the order of the type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that PostgreSQL, the JSON twins and the panel show.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The variant of a word, exact.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;

words!(
    /// Where a job stands, without what the state carries.
    JobStatus {
        /// May be claimed once it is due.
        Queued = "queued",
        /// Waits for a person or a clock; holds no slot.
        Held = "held",
        /// One worker has it.
        Running = "running",
        /// Final.
        Finished = "finished",
    }
);

words!(
    /// How a finished job ended.
    Outcome {
        /// The agent came to its end.
        Completed = "completed",
        /// A gate said no; nothing was spent.
        Refused = "refused",
        /// A limit or a person ended it; what it had done is kept and published.
        Stopped = "stopped",
        /// Infrastructure, after its retries.
        Failed = "failed",
        /// A person ended it before it ran.
        Cancelled = "cancelled",
        /// It was queued for too long.
        Expired = "expired",
    }
);

words!(
    /// Where a delivery stands.
    DeliveryStatus {
        /// Stored, not looked at yet.
        Received = "received",
        /// A look-up could not be completed; it is tried again at `not_before`.
        Waiting = "waiting",
        /// It has its verdict.
        Decided = "decided",
        /// The patience of a day ended without a verdict. A person may replay it.
        Abandoned = "abandoned",
    }
);

words!(
    /// Where something that goes to a forge stands.
    OutputStatus {
        /// To be posted, or to be posted again after an edit.
        Pending = "pending",
        /// The forge has it.
        Posted = "posted",
        /// It will not be posted; the reason says why.
        Failed = "failed",
    }
);

words!(
    /// What goes to a forge.
    OutputKind {
        /// The 👀 on what fired a job.
        Reaction = "reaction",
        /// The answer of a job.
        Comment = "comment",
        /// Why a job was refused or came to nothing.
        Refusal = "refusal",
        /// The one comment of a run that is edited in place.
        Status = "status",
    }
);

words!(
    /// What a gate said.
    GateVerdict {
        /// Go on.
        Passed = "passed",
        /// No, for good.
        Refused = "refused",
        /// Not now: the job goes back.
        Waits = "waits",
    }
);

words!(
    /// What may be done by somebody who signed in.
    Role {
        /// Looks and acts.
        Operator = "operator",
        /// Looks.
        Viewer = "viewer",
    }
);

/// A job's state with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum JobState {
    /// Nobody has it. It may be claimed once `not_before` has passed.
    Queued {
        /// Earliest moment of a claim.
        not_before: DateTime<Utc>,
        /// Why it came back to the queue, when it did.
        waits_for: Option<Reason>,
    },
    /// It may not start until a person or a clock says so. It holds no slot.
    Held {
        /// What holds it.
        reason: Reason,
        /// When it goes back to the queue by itself.
        until: Option<DateTime<Utc>>,
    },
    /// One worker has it. Only its [`crate::Claim`] may write to it.
    Running {
        /// Who.
        worker: WorkerName,
        /// Which attempt.
        attempt: Attempt,
    },
    /// Final. Nothing moves a finished job; a re-run is a new job.
    Finished {
        /// When.
        at: DateTime<Utc>,
        /// How.
        outcome: Outcome,
        /// Why, in one word.
        reason: Reason,
    },
}

impl JobState {
    /// The word alone.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        match self {
            Self::Queued { .. } => JobStatus::Queued,
            Self::Held { .. } => JobStatus::Held,
            Self::Running { .. } => JobStatus::Running,
            Self::Finished { .. } => JobStatus::Finished,
        }
    }
}

impl JobStatus {
    /// The arrows of the diagram. A trigger function of the database refuses every other one.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Running | Self::Held | Self::Finished),
            Self::Held => matches!(next, Self::Queued | Self::Finished),
            Self::Running => matches!(next, Self::Queued | Self::Held | Self::Finished),
            Self::Finished => false,
        }
    }
}

impl DeliveryStatus {
    /// The arrows of the diagram.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Received | Self::Waiting => matches!(next, Self::Waiting | Self::Decided | Self::Abandoned),
            Self::Decided => false,
            // a replay
            Self::Abandoned => matches!(next, Self::Received),
        }
    }
}

/// Names a job that something belongs to, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JobRef {
    /// The job.
    pub job: JobId,
    /// Which attempt of it.
    pub attempt: Attempt,
}
