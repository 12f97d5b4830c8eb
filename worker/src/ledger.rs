//! The record of one running job: everything that it and its door write, in one place.
//!
//! Two books are kept alike: the rows of the queue, fenced by the job's [`Claim`]; and, for a job that a person runs by
//! hand without a database, plain memory that shows each line as it comes. The life of a job ([`crate::job`]) knows
//! only the [`Ledger`].
//!
//! When PostgreSQL is away, writing waits and is repeated: nothing of a job is lost, and its door answers 503
//! meanwhile. When the lease is lost, nothing can be written any more: the ledger pulls the job's switch.
//!
//! Money is whole micro-dollars. A reservation is committed before this answers; see [`gateway::Host`].

mod memory;

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use contract::{ForgeComment, ProposalVerdict, StopReason};
use gateway::{Answer, Cap, DoorEvent, Host, HostFault, Proposal, Reservation, ReservationId, Reserve};
use queue::{
    Caps, Claim, GateRow, LogLine, LogSource, NewReservation, Proposed, Queue, Reason, Reserved, Spend, StoreError,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

pub use memory::{Memory, Show};

use crate::{
    logs::{Line, What},
    stop::Switch,
    texts,
};

/// Between two tries of a write.
const AGAIN: Duration = Duration::from_millis(500);
/// How long an event of the door may wait for PostgreSQL before it is only logged.
const EVENT_PATIENCE: Duration = Duration::from_secs(20);

/// One job's record.
#[derive(Debug)]
pub struct Ledger {
    job: i64,
    attempt: i32,
    book: Book,
    switch: Switch,
    terms: Mutex<Terms>,
    /// Ids of proposals that were kept by this process: the runner may ask again.
    kept: Mutex<BTreeSet<String>>,
    worker_seq: AtomicI64,
    gateway_seq: AtomicI64,
}

/// Where it is written.
#[derive(Debug)]
enum Book {
    Rows { queue: Queue, claim: Box<Claim> },
    Memory(Memory),
}

/// Under which terms the job runs; known after its gates.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The provider's name, for the money's rows.
    pub provider: String,
    /// The model's id, for the money's rows.
    pub model: String,
    /// The caps that hold.
    pub caps: Caps,
    /// Comments that it may propose.
    pub comments: u32,
}

impl Ledger {
    /// Over the rows of a claimed job.
    #[must_use]
    pub fn rows(queue: Queue, claim: Claim, switch: Switch) -> Self {
        let (job, attempt) = (claim.job.0, claim.attempt.0);
        Self::new(
            job,
            attempt,
            Book::Rows {
                queue,
                claim: Box::new(claim),
            },
            switch,
        )
    }

    /// In memory, for a job by hand.
    #[must_use]
    pub fn memory(memory: Memory, switch: Switch) -> Self {
        Self::new(0, 1, Book::Memory(memory), switch)
    }

    fn new(job: i64, attempt: i32, book: Book, switch: Switch) -> Self {
        Self {
            job,
            attempt,
            book,
            switch,
            terms: Mutex::default(),
            kept: Mutex::default(),
            worker_seq: AtomicI64::new(1),
            gateway_seq: AtomicI64::new(1),
        }
    }

    /// The job's number; 0 for one by hand.
    #[must_use]
    pub fn job(&self) -> i64 {
        self.job
    }

    /// Its attempt.
    #[must_use]
    pub fn attempt(&self) -> i32 {
        self.attempt
    }

    /// Its switch.
    #[must_use]
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Sets the terms; before them nothing can be reserved.
    pub fn agree(&self, terms: Terms) {
        *self.terms.lock().unwrap_or_else(PoisonError::into_inner) = terms;
    }

    /// Goes on with the numbers of an adopted job's own lines where its last holder stopped.
    pub async fn resume(&self) {
        if let Book::Rows { queue, claim } = &self.book {
            for (source, seq) in [
                (LogSource::Worker, &self.worker_seq),
                (LogSource::Gateway, &self.gateway_seq),
            ] {
                let last = self.written(|| queue.last_seq(claim, source)).await.flatten();
                seq.store(last.map_or(1, |last| last + 1), Ordering::Relaxed);
            }
        }
    }

    /// Keeps a gate's verdict.
    pub async fn gate(&self, row: &GateRow) {
        match &self.book {
            Book::Rows { queue, claim } => {
                self.written(|| queue.gate(claim, row)).await;
            }
            Book::Memory(memory) => memory.gate(row),
        }
    }

    /// The container is made; committed before it is started. False: no row says so, and it must not start.
    #[must_use]
    pub async fn container_created(&self, container: &str, image: &str) -> bool {
        match &self.book {
            Book::Rows { queue, claim } => self
                .written(|| queue.container_created(claim, container, image))
                .await
                .is_some(),
            Book::Memory(_) => true,
        }
    }

    /// The container is about to be started. False: no row says so, and it must not start.
    #[must_use]
    pub async fn container_started(&self) -> bool {
        match &self.book {
            Book::Rows { queue, claim } => self.written(|| queue.container_started(claim)).await.is_some(),
            Book::Memory(_) => true,
        }
    }

    /// The container was seen gone.
    pub async fn container_gone(&self, exit_code: Option<i32>) {
        if let Book::Rows { queue, claim } = &self.book {
            self.written(|| queue.container_gone(claim.job, claim.attempt, exit_code))
                .await;
        }
    }

    /// Appends lines of the container's log.
    pub async fn append(&self, lines: Vec<Line>) {
        match &self.book {
            Book::Rows { queue, claim } => {
                let rows: Vec<LogLine> = lines.iter().map(row).collect();
                self.written(|| queue.append_log(claim, &rows)).await;
            }
            Book::Memory(memory) => lines.iter().for_each(|line| memory.line(line)),
        }
    }

    /// Says something of our own in the job's log.
    pub async fn note(&self, kind: &str, text: String) {
        let seq = self.worker_seq.fetch_add(1, Ordering::Relaxed);
        self.say(LogSource::Worker, seq, kind, json!({ "text": text })).await;
    }

    async fn say(&self, source: LogSource, seq: i64, kind: &str, data: Value) {
        match &self.book {
            Book::Rows { queue, claim } => {
                let line = [LogLine {
                    source,
                    seq,
                    kind: kind.to_owned(),
                    data,
                }];
                self.written(|| queue.append_log(claim, &line)).await;
            }
            Book::Memory(memory) => memory.say(source, kind, &data),
        }
    }

    /// What this attempt has spent so far, unsettled requests in full; `None` when the lease was lost while asking.
    pub async fn spend(&self) -> Option<Spend> {
        match &self.book {
            Book::Rows { queue, claim } => self.written(|| queue.run_spend(claim.job, claim.attempt)).await,
            Book::Memory(memory) => Some(memory.spend()),
        }
    }

    /// The comments that the agent proposed and we kept; `None` when nobody can say now which.
    pub async fn comments(&self) -> Option<Vec<String>> {
        let proposals = match &self.book {
            Book::Rows { queue, claim } => {
                let kept = self.written(|| queue.proposals(claim)).await?;
                kept.into_iter().map(|one| (one.tool, one.arguments)).collect()
            }
            Book::Memory(memory) => memory.proposals(),
        };
        let body = |(tool, arguments): &(String, Value)| match contract::Proposal::read(tool, arguments) {
            Ok(contract::Proposal::ForgeComment(ForgeComment { body })) => Some(body),
            Err(_) => None,
        };
        Some(proposals.iter().filter_map(body).collect())
    }

    /// Repeats a write until it stands. `None`: it never will, because the lease is lost or PostgreSQL refuses it.
    pub async fn written<T, F>(&self, write: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut said = false;
        loop {
            match write().await {
                Ok(done) => return Some(done),
                Err(StoreError::LeaseLost { .. }) => {
                    tracing::warn!(job.id = self.job, "the lease is lost, nothing more can be written");
                    self.switch.pull(StopReason::WorkerStopping);
                    return None;
                }
                Err(fault) if fault.is_transient() => {
                    if !std::mem::replace(&mut said, true) {
                        tracing::warn!(job.id = self.job, %fault, "a write about a job is repeated");
                    }
                    if self
                        .switch
                        .cause()
                        .is_some_and(|cause| cause.reason == StopReason::WorkerStopping)
                    {
                        return None;
                    }
                    sleep(AGAIN).await;
                }
                Err(fault) => {
                    tracing::error!(job.id = self.job, %fault, "a write about a job was refused");
                    return None;
                }
            }
        }
    }

    fn terms(&self) -> Terms {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn check(&self, proposal: &Proposal) -> ProposalVerdict {
        let refused = |reason: String| ProposalVerdict::Refused { reason };
        if let Err(fault) = contract::Proposal::read(&proposal.tool, &proposal.arguments) {
            return refused(fault.to_string());
        }
        if self
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&proposal.id)
        {
            return ProposalVerdict::Accepted;
        }
        let at_most = self.terms().comments;
        let proposed = match &self.book {
            Book::Rows { queue, claim } => {
                // After an adoption the same one may come again under its old id, which the rows do not know.
                let Some(there) = self.written(|| queue.proposals(claim)).await else {
                    return refused(texts::job::NOT_KEPT.to_owned());
                };
                if there
                    .iter()
                    .any(|one| one.tool == proposal.tool && one.arguments == proposal.arguments)
                {
                    return ProposalVerdict::Accepted;
                }
                self.written(|| queue.propose(claim, &proposal.tool, &proposal.arguments, at_most))
                    .await
            }
            Book::Memory(memory) => Some(memory.propose(proposal, at_most)),
        };
        match proposed {
            Some(Proposed::Kept(_)) => {
                self.kept
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(proposal.id.clone());
                ProposalVerdict::Accepted
            }
            Some(Proposed::Full { at_most }) => refused(texts::job::proposals_full(at_most)),
            None => refused(texts::job::NOT_KEPT.to_owned()),
        }
    }
}

impl Host for Ledger {
    fn reserve<'a>(&'a self, wanted: &'a Reservation) -> Answer<'a, Result<Reserve, HostFault>> {
        Box::pin(async move {
            let terms = self.terms();
            let tokens = wanted.input_tokens.saturating_add(wanted.output_tokens);
            let new = NewReservation {
                provider: terms.provider,
                model: terms.model,
                worst_tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
                worst_cost: wanted.worst,
            };
            let reserved = match &self.book {
                Book::Rows { queue, claim } => queue.reserve_model(claim, &new, &terms.caps).await,
                Book::Memory(memory) => Ok(memory.reserve(&new, &terms.caps)),
            };
            match reserved {
                Ok(Reserved::Yes(id)) => Ok(Reserve::Yes(ReservationId(id.0))),
                Ok(Reserved::No { cap }) => Ok(Reserve::No(cap_of(cap))),
                Err(fault) => {
                    if matches!(fault, StoreError::LeaseLost { .. }) {
                        self.switch.pull(StopReason::WorkerStopping);
                    }
                    Err(HostFault(fault.to_string()))
                }
            }
        })
    }

    fn settle<'a>(&'a self, id: ReservationId, settlement: gateway::Settlement) -> Answer<'a, Result<(), HostFault>> {
        Box::pin(async move {
            let row = settled(&settlement);
            match &self.book {
                Book::Rows { queue, .. } => {
                    let id = queue::ReservationId(id.0);
                    self.written(|| queue.settle_model(id, &row))
                        .await
                        .ok_or(HostFault("not settled".to_owned()))
                }
                Book::Memory(memory) => {
                    memory.settle(id.0, row);
                    Ok(())
                }
            }
        })
    }

    fn propose<'a>(&'a self, proposal: &'a Proposal) -> Answer<'a, ProposalVerdict> {
        Box::pin(self.check(proposal))
    }

    fn event<'a>(&'a self, event: DoorEvent) -> Answer<'a, ()> {
        Box::pin(async move {
            // First the switch: a breach must not wait for PostgreSQL.
            if let Some(reason) = event.stops_the_job() {
                self.switch.pull(reason);
            }
            let data = serde_json::to_value(&event).unwrap_or(Value::Null);
            let kind = data.get("event").and_then(Value::as_str).unwrap_or("event").to_owned();
            let seq = self.gateway_seq.fetch_add(1, Ordering::Relaxed);
            let until = Instant::now() + EVENT_PATIENCE;
            let said = self.say(LogSource::Gateway, seq, &kind, data);
            if tokio::time::timeout_at(until, said).await.is_err() {
                tracing::warn!(job.id = self.job, event = %kind, "an event of the door could not be written");
            }
        })
    }
}

/// A line of the container's log as a row: the event with its fields, or the text.
fn row(line: &Line) -> LogLine {
    let (kind, data) = match &line.what {
        What::Event(event) => {
            let data = serde_json::to_value(event.as_ref()).unwrap_or_else(|_| json!({ "text": line.text }));
            let kind = data
                .get("event")
                .and_then(Value::as_str)
                .unwrap_or("unknown")
                .to_owned();
            (kind, data)
        }
        What::Unreadable => ("unreadable".to_owned(), json!({ "text": line.text })),
        What::Text => ("stderr".to_owned(), json!({ "text": line.text })),
        What::Dropped(count) => ("dropped".to_owned(), json!({ "text": line.text, "count": count })),
    };
    LogLine {
        source: LogSource::Runner,
        seq: line.seq,
        kind,
        data,
    }
}

fn cap_of(reason: Reason) -> Cap {
    match reason {
        Reason::RequestsCap => Cap::RunRequests,
        Reason::TokensCap => Cap::RunTokens,
        Reason::DayTokensCap => Cap::DayTokens,
        Reason::DayCostCap => Cap::DayCost,
        // The queue names no other; money is the narrowest reading of a word that we do not know.
        _ => Cap::RunCost,
    }
}

fn settled(settlement: &gateway::Settlement) -> queue::Settlement {
    let figure = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    let usage = &settlement.usage;
    let how = serde_json::to_value(settlement.how)
        .ok()
        .and_then(|how| how.as_str().map(str::to_owned));
    queue::Settlement {
        input: figure(usage.input),
        output: figure(usage.output),
        cache_read: figure(usage.cache_read),
        cache_write: figure(usage.cache_write),
        tokens: figure(usage.total()),
        cost: settlement.cost,
        status: match settlement.status {
            Some(status) => format!("{status} {}", how.unwrap_or_default()),
            None => how.unwrap_or_default(),
        },
    }
}
