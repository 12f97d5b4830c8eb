//! What a worker writes about a job that it has: container, gates, log, proposals.
//!
//! Each write is fenced: see [`crate::claim`].

use serde::Serialize;
use serde_json::Value;

use crate::Queue;
use crate::claim::Claim;
use crate::error::StoreError;
use crate::ids::ProposalId;
use crate::reason::Reason;
use crate::state::{GateVerdict, words};

words!(
    /// Who says a line of a job's log.
    LogSource {
        /// The runner in the container; its own numbers.
        Runner = "runner",
        /// The worker; numbers of the worker.
        Worker = "worker",
        /// The gateway, through the worker.
        Gateway = "gateway",
    }
);

/// One line of a job's log.
#[derive(Debug, Clone)]
pub struct LogLine {
    /// Who says it.
    pub source: LogSource,
    /// Unique per job, attempt and source. A line that is there already is left as it is: so a log may be read again after an adoption.
    pub seq: i64,
    /// One word: the event.
    pub kind: String,
    /// The event, with its fields. Bounded by the caller.
    pub data: Value,
}

/// A gate's verdict, for the run's page.
#[derive(Debug, Clone, Serialize)]
pub struct GateRow {
    /// The gate's number in the order of the design.
    pub number: i16,
    /// Its name, one or a few words.
    pub name: String,
    /// What it said.
    pub verdict: GateVerdict,
    /// Why not, when it said no.
    pub reason: Option<Reason>,
    /// What it saw, in words: also when it passed.
    pub detail: String,
    /// How long it took, in microseconds.
    pub micros: i64,
}

/// Whether a proposal was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proposed {
    /// Yes.
    Kept(ProposalId),
    /// The job has made as many of its sort as it may.
    Full {
        /// How many that is.
        at_most: u32,
    },
}

/// A proposal that was kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// Its number.
    pub id: ProposalId,
    /// The tool's name.
    pub tool: String,
    /// Its checked arguments.
    pub arguments: Value,
}

impl Queue {
    /// Records a gate.
    pub async fn gate(&self, claim: &Claim, row: &GateRow) -> Result<(), StoreError> {
        let _ = (claim, row);
        todo!()
    }

    /// Records the container that was made (not started yet), and the image id that it was made from.
    pub async fn container_created(&self, claim: &Claim, container: &str, image: &str) -> Result<(), StoreError> {
        let _ = (claim, container, image);
        todo!()
    }

    /// Records that the container is to be started now. Committed before it is started.
    pub async fn container_started(&self, claim: &Claim) -> Result<(), StoreError> {
        let _ = claim;
        todo!()
    }

    /// Records that the container was seen gone.
    pub async fn container_gone(&self, claim: &Claim, exit_code: Option<i32>) -> Result<(), StoreError> {
        let _ = (claim, exit_code);
        todo!()
    }

    /// Appends lines; those that are there already are skipped. Returns how many were new.
    pub async fn append_log(&self, claim: &Claim, lines: &[LogLine]) -> Result<u64, StoreError> {
        let _ = (claim, lines);
        todo!()
    }

    /// The highest number of a source that the log of this attempt holds: where to read on after an adoption.
    pub async fn last_seq(&self, claim: &Claim, source: LogSource) -> Result<Option<i64>, StoreError> {
        let _ = (claim, source);
        todo!()
    }

    /// Keeps a checked proposal, unless the job has `at_most` of that tool already.
    pub async fn propose(
        &self,
        claim: &Claim,
        tool: &str,
        arguments: &Value,
        at_most: u32,
    ) -> Result<Proposed, StoreError> {
        let _ = (claim, tool, arguments, at_most);
        todo!()
    }

    /// What was kept in this attempt, in order.
    pub async fn proposals(&self, claim: &Claim) -> Result<Vec<Proposal>, StoreError> {
        let _ = claim;
        todo!()
    }

    /// Which of these running jobs somebody wants stopped, and who.
    pub async fn stops_requested(&self, claims: &[&Claim]) -> Result<Vec<(crate::ids::JobId, String)>, StoreError> {
        let _ = claims;
        todo!()
    }
}
