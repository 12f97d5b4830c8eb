//! A job as the loops of its worker see it.

use std::sync::atomic::{AtomicU8, Ordering};

use queue::Claim;

use crate::stop::Switch;

/// A job that this worker has, as its loops see it.
pub(crate) struct Running {
    pub(crate) claim: Claim,
    pub(crate) switch: Switch,
    /// 0: neither. 1: it may have a container. 2: it gets none, the worker stops.
    fate: AtomicU8,
}

impl Running {
    pub(crate) fn new(claim: Claim) -> Self {
        Self {
            claim,
            switch: Switch::default(),
            fate: AtomicU8::new(0),
        }
    }

    /// An adopted one has its container.
    pub(crate) fn adopted(claim: Claim) -> Self {
        Self {
            fate: AtomicU8::new(1),
            ..Self::new(claim)
        }
    }

    /// From here on the job stays with its host, whatever happens to the worker.
    pub(super) fn may_get_a_container(&self) -> bool {
        self.fate
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The worker stops. True: it has no container and gets none; hand it back.
    pub(crate) fn gets_no_container(&self) -> bool {
        self.fate
            .compare_exchange(0, 2, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
