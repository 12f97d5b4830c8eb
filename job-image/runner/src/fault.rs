//! Why the runner gives up: a word of the contract and what was seen.

use contract::FaultReason;

/// A reason to end without a useful result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub(crate) struct Fault {
    /// The contract's word; it decides the exit code.
    pub(crate) reason: FaultReason,
    /// What was seen. It may quote the job's input, so it is cut before it is printed.
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn new(reason: FaultReason, detail: impl Into<String>) -> Fault {
        Fault {
            reason,
            detail: detail.into(),
        }
    }

    /// A system call that never fails on a sound host.
    pub(crate) fn host(what: &str, error: impl std::fmt::Display) -> Fault {
        Fault::new(FaultReason::Host, format!("{what}: {error}"))
    }
}
