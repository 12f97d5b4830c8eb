//! From a delivery to the jobs that it starts, or to the reason why it starts none.
//!
//! One delivery at a time per [`Decider::run_once`], many deciders at once: a delivery that waits for its forge holds
//! up nobody. The order is that of the price: what the row itself says, what our tables say, the triggers, and only
//! then the forge, asked once per event however many triggers want to fire (design section 5).
//!
//! * [`read`](forges::read) → events, or why there are none;
//! * ours or not, listed or not, too old or not: no forge is asked;
//! * triggers match;
//! * `confirm`: the forge says the same as the delivery;
//! * `who`: the one who did it may write;
//! * one transaction with every verdict, job and reaction.
//!
//! A "no" posts nothing. A look-up that cannot be completed delays the delivery, visibly, for at most a day; then it is
//! given up and stays replayable. Fails with [`StoreError`] only when PostgreSQL does; the delivery's lease then brings
//! it back. No text of a delivery gets into a log line or a detail.

mod by_hand;
mod comment;
mod confirm;
mod forge;
mod frozen;
mod halt;
mod who;

use std::{sync::Arc, time::Duration};

use forges::{IgnoredReason, KeptHeaders, Reading};
use queue::{
    Call, Delivery, DeliveryVerdict, EventVerdict, NewDecision, Queue, RUN_REQUEST, Reason, StoreError, TriggerId,
    WorkerName,
};

pub use forge::{BadRepositories, Forge, Forges};
pub(crate) use frozen::reaction_target;

use crate::{
    backoff,
    settings::Settings,
    texts,
    trigger_file::{InForce, Live},
};
use halt::{Halt, Later};

/// How long a delivery is ours. Longer than all questions to a forge that never answers take together.
const LEASE: Duration = Duration::from_secs(5 * 60);
/// The patience with a delivery that a person replayed: its age says nothing, so tries are counted. About a day.
const REPLAYED_TRIES: i32 = 100;

/// Decides deliveries. Cheap to clone: run several at once.
#[derive(Clone)]
pub struct Decider {
    queue: Queue,
    forges: Forges,
    triggers: Arc<Live>,
    settings: Arc<Settings>,
    worker: WorkerName,
}

impl Decider {
    /// A decider over the forges and the triggers file of this worker.
    #[must_use]
    pub fn new(queue: Queue, forges: Forges, triggers: Arc<Live>, settings: Arc<Settings>) -> Self {
        let worker = WorkerName(settings.worker.clone());
        Self {
            queue,
            forges,
            triggers,
            settings,
            worker,
        }
    }

    /// Takes one delivery and decides or delays it. False when there was none: wait for a notification, or a while.
    ///
    /// # Errors
    /// [`StoreError`] when PostgreSQL could not be asked; the delivery comes back by itself.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let Some(delivery) = self.queue.take_delivery(&self.worker, LEASE).await? else {
            return Ok(false);
        };
        let done = match self.verdict(&delivery).await {
            Ok(verdict) => self.write(&delivery, &verdict).await,
            Err(Halt::Later(later)) => self.wait(&delivery, &later).await,
            Err(Halt::No { reason, detail }) => self.write(&delivery, &nothing(reason, detail)).await,
            Err(Halt::Store(error)) => Err(error),
        };
        match done {
            // Somebody else has it by now and will write the same.
            Err(StoreError::TakenOver { .. }) => {
                tracing::warn!(delivery.id = %delivery.id, "a delivery took longer than its lease; another worker has it");
                Ok(true)
            }
            // Asking again would find the same. It waits, visibly, and is given up in the end, instead of coming back for ever.
            Err(error) if !error.is_transient() => {
                tracing::error!(delivery.id = %delivery.id, %error, "a verdict on a delivery could not be written");
                let later = Later {
                    reason: Reason::InternalFault,
                    detail: error.to_string(),
                    at_least: None,
                };
                self.wait(&delivery, &later).await.map(|()| true)
            }
            done => done.map(|()| true),
        }
    }

    /// What the delivery comes to. `Halt::No` speaks for the delivery as a whole.
    async fn verdict(&self, delivery: &Delivery) -> Result<DeliveryVerdict, Halt> {
        // One file for the whole delivery, whatever is edited meanwhile.
        let in_force = self.triggers.current();
        if delivery.kind == RUN_REQUEST {
            return by_hand::verdict(self, &in_force, delivery).await;
        }
        let forge = self.forge(&delivery.forge)?;
        let headers: KeptHeaders = serde_json::from_value(delivery.headers.clone())
            .map_err(|_| halt::no(Reason::BodyUnreadable, texts::HEADERS_UNREADABLE))?;
        match forges::read(forge.setup.kind, &headers, &delivery.body) {
            Reading::Test => Err(halt::no(Reason::TestDelivery, "")),
            Reading::Ignored(ignored) => Err(halt::no(reason_of(ignored), ignored.sentence())),
            Reading::Events(events) => {
                let mut verdict = DeliveryVerdict::default();
                for event in &events {
                    verdict
                        .events
                        .push(comment::verdict(self, &in_force, forge, delivery, event).await?);
                }
                Ok(verdict)
            }
        }
    }

    fn forge(&self, name: &str) -> Result<&Forge, Halt> {
        self.forges
            .get(name)
            .ok_or_else(|| halt::later(Reason::ForgeNotConfigured, ""))
    }

    async fn write(&self, delivery: &Delivery, verdict: &DeliveryVerdict) -> Result<(), StoreError> {
        let decided = self.queue.decide(delivery, verdict).await?;
        let reason = verdict.reason.map(Reason::word);
        let jobs: Vec<i64> = decided
            .events
            .iter()
            .flat_map(|event| event.jobs.values())
            .map(|fired| fired.job.0)
            .collect();
        tracing::info!(delivery.id = %delivery.id, forge = %delivery.forge, reason, jobs = ?jobs, "decided a delivery");
        Ok(())
    }

    /// Puts a delivery back that could not be decided yet, or gives it up after a day.
    async fn wait(&self, delivery: &Delivery, later: &Later) -> Result<(), StoreError> {
        let over = if delivery.replayed {
            delivery.tries >= REPLAYED_TRIES
        } else {
            delivery.age >= backoff::PATIENCE
        };
        if over {
            let detail = texts::given_up(later.reason.word(), &later.detail);
            tracing::error!(delivery.id = %delivery.id, forge = %delivery.forge, reason = later.reason.word(), "gave a delivery up; it can be replayed");
            return self
                .queue
                .give_up_delivery(delivery, Reason::PatienceEnded, &detail)
                .await;
        }
        let tries = u32::try_from(delivery.tries).unwrap_or_default() + 1;
        let wait = backoff::wait(tries).max(later.at_least.unwrap_or_default());
        tracing::warn!(
            delivery.id = %delivery.id, forge = %delivery.forge, reason = later.reason.word(), detail = %later.detail,
            wait_s = wait.as_secs(), "a delivery waits"
        );
        self.queue
            .delay_delivery(delivery, later.reason, &later.detail, wait)
            .await
    }
}

/// A verdict on a delivery that holds nothing to decide about.
fn nothing(reason: Reason, detail: String) -> DeliveryVerdict {
    DeliveryVerdict {
        reason: Some(reason),
        detail,
        events: Vec::new(),
    }
}

/// A trigger's "no".
fn trigger_no(trigger: &triggers::Trigger, reason: Reason, detail: impl Into<String>) -> NewDecision {
    NewDecision {
        trigger: Some(TriggerId(trigger.id.clone())),
        call: Call::No {
            reason,
            detail: detail.into(),
        },
    }
}

/// A "no" to an event as a whole, before triggers were asked.
fn event_no(reason: Reason, detail: impl Into<String>) -> NewDecision {
    NewDecision {
        trigger: None,
        call: Call::No {
            reason,
            detail: detail.into(),
        },
    }
}

/// Which word of rows an ignored delivery gets; its own sentence becomes the detail.
fn reason_of(ignored: IgnoredReason) -> Reason {
    match ignored {
        IgnoredReason::EditByOther => Reason::NotTheAuthorsEdit,
        IgnoredReason::EditWithoutChange => Reason::PhraseNotNew,
        IgnoredReason::CommentDeleted | IgnoredReason::UnknownAction => Reason::ActionNotRead,
        IgnoredReason::Malformed => Reason::BodyUnreadable,
        IgnoredReason::Label
        | IgnoredReason::Issue
        | IgnoredReason::PullRequest
        | IgnoredReason::Review
        | IgnoredReason::Push
        | IgnoredReason::Branch
        | IgnoredReason::Release
        | IgnoredReason::Wiki
        | IgnoredReason::Fork
        | IgnoredReason::Repository
        | IgnoredReason::Other
        | IgnoredReason::UnknownEvent => Reason::EventNotRead,
    }
}

/// Whether the triggers file says anything at all.
fn some_trigger(in_force: &InForce) -> Result<(), Halt> {
    if in_force.file.triggers().is_empty() {
        Err(halt::no(Reason::NoTriggers, ""))
    } else {
        Ok(())
    }
}

/// What an event's row says while nothing is decided about it.
fn undecided(key: String, kind: &str) -> EventVerdict {
    EventVerdict {
        key,
        kind: kind.to_owned(),
        at: None,
        repository: None,
        subject: None,
        actor: None,
        data: serde_json::Value::Null,
        decisions: Vec::new(),
    }
}
