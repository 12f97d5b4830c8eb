//! The gates: every check that stands between a claimed job and its container, in their order.
//!
//! [`admit`] reads from top to bottom as they run, each cheaper than the next; what costs nothing comes before what
//! fetches, and nothing here costs money. Each gate's answer becomes a row of the job. A "no" for good is
//! [`No::Refused`], answered once on the forge; "not now" is [`No::Waits`]: the job goes back to the queue.
//!
//! Only this module makes an [`Admitted`], and only an `Admitted` gets a container ([`crate::job`]), which is the last
//! gate: made, compared with what was asked, started. From there on it costs.
//!
//! Gates 7, 8 and 10 of the design (local folders, egress, budgets of trigger and repository) belong to later steps;
//! their numbers are kept free.

mod image;
mod model;
mod repository;
mod trigger;

use std::time::{Duration, Instant};

use contract::{JobLimits, Tool};
use gateway::{ModelGrant, providers::Catalog};
use queue::{Claim, GateRow, GateVerdict, JobData, Reason};
use serde::{Deserialize, Serialize};
use triggers::{Mode, Outputs};

pub use self::repository::Ground;
use crate::{
    container::{Engine, SeenImage},
    job::House,
    ledger::Ledger,
};

/// One gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// The trigger is still there; what the job may do is the trigger as it is now, narrowed by the job's row.
    Trigger,
    /// The deployment is not paused.
    Pause,
    /// Excluded tools are known to the pinned pi.
    ExcludedTools,
    /// The image is on this host.
    Image,
    /// The image can do what the job needs and sets nothing that only the worker may set.
    Capabilities,
    /// Provider and model are known, with a key, and with a price where a dollar cap applies.
    Model,
    /// The repository can be read, its default branch is here, and the flow is found.
    Repository,
    /// The container was made, compared, started.
    Container,
}

impl Gate {
    /// All of them, in their order.
    pub const ALL: [Gate; 8] = [
        Gate::Trigger,
        Gate::Pause,
        Gate::ExcludedTools,
        Gate::Image,
        Gate::Capabilities,
        Gate::Model,
        Gate::Repository,
        Gate::Container,
    ];

    /// Its number in the design.
    #[must_use]
    pub const fn number(self) -> i16 {
        match self {
            Gate::Trigger => 1,
            Gate::Pause => 2,
            Gate::ExcludedTools => 3,
            Gate::Image => 4,
            Gate::Capabilities => 5,
            Gate::Model => 6,
            Gate::Repository => 9,
            Gate::Container => 11,
        }
    }

    /// Its name on the run's page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Gate::Trigger => "trigger",
            Gate::Pause => "pause",
            Gate::ExcludedTools => "excluded tools",
            Gate::Image => "image",
            Gate::Capabilities => "capabilities",
            Gate::Model => "model",
            Gate::Repository => "repository",
            Gate::Container => "container",
        }
    }

    /// The reasons with which it refuses for good.
    #[must_use]
    pub const fn refuses_with(self) -> &'static [Reason] {
        match self {
            Gate::Trigger => &[Reason::TriggerRemoved],
            Gate::Pause => &[],
            Gate::ExcludedTools => &[Reason::ExcludeToolsUnknown],
            Gate::Image => &[Reason::JobImageMissing],
            Gate::Capabilities => &[
                Reason::JobImageExcludeToolsUnsupported,
                Reason::JobImageCapabilityUnsupported,
                Reason::JobImageUnsafe,
            ],
            Gate::Model => &[
                Reason::ProviderUnconfigured,
                Reason::ModelUnknown,
                Reason::ModelUnpriced,
            ],
            Gate::Repository => &[
                Reason::RepositoryUnreadable,
                Reason::FlowNotFound,
                Reason::HeadMoved,
                Reason::JobTooLarge,
            ],
            Gate::Container => &[Reason::ContainerDiffers],
        }
    }
}

/// What a job wants, after everything that may narrow it has spoken.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The image by name.
    pub image: String,
    /// The excluded tools, in the order of the triggers file.
    pub excluded: Vec<Tool>,
    /// The provider, when somebody named one.
    pub provider: Option<String>,
    /// The model, when somebody named one.
    pub model: Option<String>,
    /// How much it is to think.
    pub thinking: contract::Thinking,
    /// Its caps.
    pub limits: JobLimits,
    /// What it may propose.
    pub outputs: Outputs,
    /// Whether it really runs.
    pub mode: Mode,
    /// What the agent is to do, beside the skill.
    pub task: Option<String>,
    /// How it is to go about it, beside the skill.
    pub instructions: Option<String>,
    /// The skill's name.
    pub flow: String,
}

impl Plan {
    /// What the job's row alone says, for messages about a job that did not get through its first gate.
    #[must_use]
    pub fn of_data(data: &JobData) -> Self {
        let run = &data.trigger.run;
        Self {
            image: data.image.clone(),
            excluded: run.exclude_tools.clone(),
            provider: run.provider.clone(),
            model: run.model.clone(),
            thinking: contract::Thinking::Off,
            limits: JobLimits::default(),
            outputs: run.outputs(),
            mode: run.mode,
            task: None,
            instructions: None,
            flow: run.flow.clone(),
        }
    }
}

/// A job that passed every gate but the last. Only this module makes one, and only one of these gets a container.
#[derive(Debug)]
pub struct Admitted {
    /// What it wants.
    pub plan: Plan,
    /// The image as the gates saw it: its id is what runs.
    pub image: SeenImage,
    /// The model that it may use.
    pub grant: ModelGrant,
    /// What it works on.
    pub ground: Ground,
    _passed: Passed,
}

/// What only this module can make.
#[derive(Debug)]
struct Passed;

/// Why a job does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum No {
    /// For good.
    Refused {
        /// In one word.
        reason: Reason,
        /// What was seen; no payload text.
        detail: String,
    },
    /// Not now.
    Waits {
        /// In one word.
        reason: Reason,
        /// What was seen; no payload text.
        detail: String,
        /// For how long.
        delay: Duration,
    },
}

impl No {
    pub(crate) fn refused(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Refused {
            reason,
            detail: detail.into(),
        }
    }

    pub(crate) fn waits(reason: Reason, detail: impl Into<String>, delay: Duration) -> Self {
        Self::Waits {
            reason,
            detail: detail.into(),
            delay,
        }
    }
}

/// A gate's "yes": what the next ones need, and what the run's page shows.
pub(crate) struct Yes<T> {
    pub(crate) found: T,
    pub(crate) detail: String,
}

pub(crate) type Answer<T> = Result<Yes<T>, No>;

pub(crate) fn yes<T>(found: T, detail: impl Into<String>) -> Answer<T> {
    Ok(Yes {
        found,
        detail: detail.into(),
    })
}

/// All gates before the container, in their order.
pub async fn admit(house: &House, ledger: &Ledger, claim: &Claim) -> Result<Admitted, No> {
    let bench = &house.bench;
    let at = Passage { ledger };
    let plan = at.through(Gate::Trigger, trigger::narrowed(house, claim)).await?;
    at.through(Gate::Pause, trigger::not_paused(house)).await?;
    at.through(Gate::ExcludedTools, trigger::tools_known(&plan.excluded))
        .await?;
    let image = at
        .through(Gate::Image, image::here(&bench.engine, Some(&house.queue), &plan.image))
        .await?;
    at.through(Gate::Capabilities, image::able(&image, &plan)).await?;
    let grant = at.through(Gate::Model, model::granted(&bench.catalog, &plan)).await?;
    let ground = at
        .through(Gate::Repository, repository::ready(house, claim, &plan))
        .await?;
    Ok(Admitted {
        plan,
        image,
        grant,
        ground,
        _passed: Passed,
    })
}

/// The gates of a job by hand: it has no trigger and no forge, and everything else is the same.
pub async fn admit_by_hand(
    engine: &Engine,
    catalog: &Catalog,
    ledger: &Ledger,
    plan: Plan,
    ground: Ground,
) -> Result<Admitted, No> {
    let at = Passage { ledger };
    at.through(Gate::ExcludedTools, trigger::tools_known(&plan.excluded))
        .await?;
    let image = at.through(Gate::Image, image::here(engine, None, &plan.image)).await?;
    at.through(Gate::Capabilities, image::able(&image, &plan)).await?;
    let grant = at.through(Gate::Model, model::granted(catalog, &plan)).await?;
    Ok(Admitted {
        plan,
        image,
        grant,
        ground,
        _passed: Passed,
    })
}

/// Walks a job through one gate and writes down what it said.
pub(crate) struct Passage<'a> {
    pub(crate) ledger: &'a Ledger,
}

impl Passage<'_> {
    pub(crate) async fn through<T>(&self, gate: Gate, asked: impl Future<Output = Answer<T>>) -> Result<T, No> {
        let begin = Instant::now();
        let answer = asked.await;
        let micros = i64::try_from(begin.elapsed().as_micros()).unwrap_or(i64::MAX);
        let (verdict, reason, detail) = match &answer {
            Ok(yes) => (GateVerdict::Passed, None, yes.detail.clone()),
            Err(No::Refused { reason, detail }) => (GateVerdict::Refused, Some(*reason), detail.clone()),
            Err(No::Waits { reason, detail, .. }) => (GateVerdict::Waits, Some(*reason), detail.clone()),
        };
        let row = GateRow {
            number: gate.number(),
            name: gate.name().to_owned(),
            verdict,
            reason,
            detail,
            micros,
        };
        self.ledger.gate(&row).await;
        answer.map(|yes| yes.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_stand_in_the_order_of_their_numbers() {
        assert!(Gate::ALL.is_sorted_by(|a, b| a.number() < b.number() && a < b));
    }

    #[test]
    fn each_reason_to_refuse_belongs_to_one_gate() {
        let mut seen: Vec<Reason> = Gate::ALL.iter().flat_map(|gate| gate.refuses_with()).copied().collect();
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }

    #[test]
    fn what_an_image_lacks_is_found_before_anything_is_fetched() {
        assert!(
            Gate::Capabilities < Gate::Model && Gate::Model < Gate::Repository && Gate::Repository < Gate::Container
        );
    }
}
