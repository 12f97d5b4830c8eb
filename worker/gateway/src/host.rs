//! What the door asks of the worker, and what it tells it.
//!
//! [`Host`] is implemented by the worker over its rows. Every method may take as long as PostgreSQL takes; none may block the thread.
//! Events arrive one after another, in the order in which they happened at this door.

use std::fmt;

use contract::{Micros, ProposalVerdict, StopReason};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

/// What a [`Host`] method returns: a boxed future, so that the trait can be used as an object.
pub type Answer<'a, T> = BoxFuture<'a, T>;

/// The worker's side of one door.
pub trait Host: Send + Sync + 'static {
    /// Commits a row with the request's worst case, or says which cap refuses it. Not one byte leaves before this answered [`Reserve::Yes`].
    ///
    /// It may be asked several times for one request, each time with less output, when a cap refused the larger one; only a `Yes` makes a row.
    fn reserve<'a>(&'a self, wanted: &'a Reservation) -> Answer<'a, Result<Reserve, HostFault>>;

    /// Writes what the request really cost. A reservation that is never settled stays charged in full, which is the safe side.
    fn settle<'a>(&'a self, id: ReservationId, settlement: Settlement) -> Answer<'a, Result<(), HostFault>>;

    /// Checks a proposed output and keeps it. The same `id` may come twice (the runner asks again after an adoption): answer the same, keep one.
    fn propose<'a>(&'a self, proposal: &'a Proposal) -> Answer<'a, ProposalVerdict>;

    /// Notes what happened. It must not fail the job when it cannot be written.
    fn event<'a>(&'a self, event: DoorEvent) -> Answer<'a, ()>;
}

/// PostgreSQL is away, or the lease is lost: the request is answered 503, nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the worker cannot answer: {0}")]
pub struct HostFault(pub String);

/// The worst case of one model request, before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// Counts the requests of this door, from 1.
    pub request: u64,
    /// Estimated from the bytes, on the high side.
    pub input_tokens: u64,
    /// What the request allows the model to write; the door wrote this number into it.
    pub output_tokens: u64,
    /// The cost of both at the model's highest price. 0 when the model has no price: see `priced`.
    pub worst: Micros,
    /// False: the model's price is unknown and `worst` says nothing. It does not mean that it is free.
    pub priced: bool,
}

/// Names a committed reservation: the row's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ReservationId(pub i64);

/// The answer to a [`Reservation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// The row is committed.
    Yes(ReservationId),
    /// This cap would be passed. Nothing was written.
    No(Cap),
}

/// A cap that can refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cap {
    /// Dollars of this run.
    RunCost,
    /// Tokens of this run.
    RunTokens,
    /// Requests of this run (turns, retries and summaries together).
    RunRequests,
    /// Dollars of the deployment's day.
    DayCost,
    /// Tokens of the deployment's day.
    DayTokens,
}

impl Cap {
    /// Why the job is stopped when this cap refuses a request.
    pub fn stop_reason(self) -> StopReason {
        match self {
            Self::RunCost => StopReason::CostCap,
            Self::RunTokens => StopReason::TokenCap,
            Self::RunRequests => StopReason::RequestCap,
            Self::DayCost => StopReason::DayCostCap,
            Self::DayTokens => StopReason::DayTokenCap,
        }
    }
}

/// Tokens as the provider bills them. `input` counts what was neither read from nor written to the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from the prompt cache.
    pub cache_read: u64,
    /// Input written to the prompt cache.
    pub cache_write: u64,
}

impl Usage {
    /// All four together.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// What a request is charged, and why that much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settlement {
    /// How the figures were found.
    pub how: Settled,
    /// The tokens charged.
    pub usage: Usage,
    /// What they cost; 0 for a model without a price.
    pub cost: Micros,
    /// The upstream's HTTP status, when it answered.
    pub status: Option<u16>,
}

/// How a settlement was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settled {
    /// The provider's own usage.
    Usage,
    /// The provider's usage was lower than the bytes allow, and was raised to that floor.
    Raised,
    /// No usable usage: the reservation stays as it was.
    WorstCase,
    /// Nothing was sent, or the provider said that it did not take the request.
    Nothing,
}

/// An output that the agent proposes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// The runner's id of this proposal, unique per attempt. From inside the box: at most 64 letters, digits, `-` and `_`, checked.
    pub id: String,
    /// The proposing tool, e.g. `forge_comment`. A name from inside the box: compare, do not trust.
    pub tool: String,
    /// Its arguments, checked by nobody yet.
    pub arguments: Value,
}

/// One of the two sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Socket {
    /// `control.sock`.
    Control,
    /// `model.sock`.
    Model,
}

/// What happened at the door. Texts in it are safe to show: names that came from the job are cut and cleaned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum DoorEvent {
    /// The runner opened the control connection and said the right job, attempt and contract.
    ControlOpened,
    /// The control connection ended.
    ControlClosed,
    /// No line came from the runner for this long. Said once per silence.
    ControlSilent {
        /// Seconds.
        seconds: u64,
    },
    /// A connection was turned away: not the container's first process, a second control connection, too many.
    ConnectionRefused {
        /// Which socket.
        socket: Socket,
        /// The peer's process id on the host, when the kernel said one.
        pid: Option<i32>,
        /// A kebab-case word.
        why: String,
    },
    /// A model request was turned away with 403; nothing was sent.
    RequestRefused {
        /// A kebab-case word: `path`, `model`, `field-unknown`, …
        why: String,
        /// Where in the request, cleaned and cut.
        place: String,
    },
    /// More requests were refused than are worth a line each; later ones are only counted.
    RefusalsUnlisted,
    /// A model request was let through; its reservation is committed.
    RequestSent {
        /// The committed row.
        reservation: ReservationId,
        /// What was reserved.
        reserved: Reservation,
        /// The tools that the model was offered.
        tools: Vec<String>,
    },
    /// A request that was let through has ended.
    RequestEnded {
        /// The committed row.
        reservation: ReservationId,
        /// What it is charged.
        settlement: Settlement,
        /// How it ended: `complete`, `refused-by-provider`, `cut`, `silent`, `too-large`, `key-echoed`, `unreachable`, …
        end: String,
    },
    /// A request offered an excluded tool to the model: `exclude-tools-breached`. Nothing was sent, the door is shut, the worker must stop the job.
    Breach {
        /// The tool.
        tool: String,
    },
    /// A cap refused a request: the worker stops the job with the cap's reason.
    CapReached {
        /// The cap.
        cap: Cap,
    },
    /// The worker could not answer (PostgreSQL, lease); the request was answered 503.
    HostFailed {
        /// What it was asked.
        asked: String,
    },
}

impl DoorEvent {
    /// Why the worker must stop the job after this event, if it must. The door has already told the runner and lets nothing more through.
    pub fn stops_the_job(&self) -> Option<StopReason> {
        match self {
            Self::Breach { .. } => Some(StopReason::ExcludeToolsBreached),
            Self::CapReached { cap } => Some(cap.stop_reason()),
            Self::ControlOpened
            | Self::ControlClosed
            | Self::ControlSilent { .. }
            | Self::ConnectionRefused { .. }
            | Self::RequestRefused { .. }
            | Self::RefusalsUnlisted
            | Self::RequestSent { .. }
            | Self::RequestEnded { .. }
            | Self::HostFailed { .. } => None,
        }
    }
}

impl fmt::Display for DoorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::texts::event(self, f)
    }
}
