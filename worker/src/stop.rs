//! Why a running job is ended by us, and the one switch that does so.
//!
//! Many watch a job: the gateway, the clocks, the disk watcher, the log's reader, the heartbeat. Each may pull the
//! switch; the first cause stands, for it is what a person must read. Only [`StopReason::WorkerStopping`] overrides
//! it: then the lease ends, nothing may be written any more, and nothing is asked or waited for.

use std::sync::Arc;

use contract::StopReason;
use tokio::sync::watch;

/// Why a job is ended by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopCause {
    /// The word that its row will carry.
    pub reason: StopReason,
    /// What was seen, in our own words; never text of the job.
    pub detail: Option<String>,
}

impl From<StopReason> for StopCause {
    fn from(reason: StopReason) -> Self {
        Self { reason, detail: None }
    }
}

/// The switch of one job. Clones pull the same one.
#[derive(Debug, Clone)]
pub struct Switch {
    pulled: Arc<watch::Sender<Option<StopCause>>>,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            pulled: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Switch {
    /// Pulls it. The first cause stands, see the module.
    pub fn pull(&self, cause: impl Into<StopCause>) {
        let cause = cause.into();
        self.pulled.send_if_modified(|standing| {
            let changes = match standing {
                None => true,
                Some(standing) => {
                    cause.reason == StopReason::WorkerStopping && standing.reason != StopReason::WorkerStopping
                }
            };
            if changes {
                *standing = Some(cause);
            }
            changes
        });
    }

    /// The cause, when it was pulled.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        self.pulled.borrow().clone()
    }

    /// Waits until it is pulled.
    pub async fn pulled(&self) -> StopCause {
        self.wait_for(|_| true).await
    }

    /// Waits until the lease ends; forever when it does not.
    pub async fn lease_ends(&self) {
        self.wait_for(|cause| cause.reason == StopReason::WorkerStopping).await;
    }

    async fn wait_for(&self, wanted: impl Fn(&StopCause) -> bool) -> StopCause {
        let mut seen = self.pulled.subscribe();
        match seen
            .wait_for(|cause| cause.as_ref().is_some_and(&wanted))
            .await
            .map(|cause| cause.clone())
        {
            Ok(Some(cause)) => cause,
            // The sender lives in `self` and `wanted` takes no `None`: neither can happen while somebody waits.
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_cause_stands() {
        let switch = Switch::default();
        switch.pull(StopReason::CostCap);
        switch.clone().pull(StopReason::TimeCap);

        assert_eq!(switch.pulled().await.reason, StopReason::CostCap);
    }

    #[tokio::test]
    async fn a_lease_that_ends_overrides_every_other_cause() {
        let switch = Switch::default();
        switch.pull(StopReason::StoppedByPerson);
        switch.pull(StopReason::WorkerStopping);
        switch.pull(StopReason::TimeCap);

        switch.lease_ends().await;
        assert_eq!(switch.cause().unwrap().reason, StopReason::WorkerStopping);
    }
}
