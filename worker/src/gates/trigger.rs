//! Gates 1 to 3: what the job may do is its trigger as it is now, narrowed by what its row carries.

use std::time::Duration;

use contract::{JobLimits, Micros, Tool};
use queue::{Claim, Limits, Reason};
use triggers::{Run, Thinking, narrow};

use super::{Answer, No, Plan, yes};
use crate::{job::House, settings::Settings, texts::job as texts};

/// How long a paused job is left alone.
const PAUSED: Duration = Duration::from_secs(30);

/// Gate 1.
pub(super) async fn narrowed(house: &House, claim: &Claim) -> Answer<Plan> {
    let carried = &claim.data.trigger;
    let file = house.triggers.current();
    let Some(now) = file.file.get(&carried.id) else {
        return Err(No::refused(Reason::TriggerRemoved, texts::trigger_removed(&carried.id)));
    };
    let run = narrow(&now.run, &carried.run);
    let plan = plan(&run, &claim.data.limits, &house.bench.settings);
    yes(plan, texts::trigger_found(&now.id, now.line))
}

/// Gate 2.
pub(super) async fn not_paused(house: &House) -> Answer<()> {
    match house.queue.paused().await {
        Ok(None) => yes((), ""),
        Ok(Some(pause)) => Err(No::waits(Reason::Paused, texts::paused_by(&pause.who), PAUSED)),
        // Without PostgreSQL the job goes nowhere anyway; a pause that cannot be read may be one.
        Err(fault) => Err(No::waits(Reason::Paused, fault.to_string(), PAUSED)),
    }
}

/// Gate 3. The names were read into [`Tool`] when the file loaded, so what arrives here is known; what is checked is
/// that this program's list is the pinned pi's, which the image gate and the runner compare again with the real one.
pub(super) async fn tools_known(excluded: &[Tool]) -> Answer<()> {
    match excluded.iter().find(|tool| !Tool::ALL.contains(tool)) {
        Some(unknown) => Err(No::refused(Reason::ExcludeToolsUnknown, unknown.name())),
        None if excluded.is_empty() => yes((), texts::FULL_SET),
        None => yes(
            (),
            excluded.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", "),
        ),
    }
}

/// The smallest of what the trigger, the job's row and the deployment say.
fn plan(run: &Run, frozen: &Limits, settings: &Settings) -> Plan {
    let own = &settings.limits.run;
    let turns = least([Some(own.turns), run.max_turns, frozen.turns]);
    let tokens = least([Some(own.tokens), run.max_tokens, frozen.tokens]);
    let cost: Option<Micros> = least([own.cost, run.max_cost_usd, frozen.cost]);
    let minutes = run.timeout_minutes.map(|minutes| u64::from(minutes) * 60);
    let total = least([Some(own.total.as_secs()), minutes, frozen.seconds.map(u64::from)]);
    Plan {
        image: run.image.clone().unwrap_or_else(|| settings.image.clone()),
        excluded: run.exclude_tools.clone(),
        provider: run.provider.clone().or_else(|| settings.provider.clone()),
        model: run.model.clone().or_else(|| settings.model.clone()),
        thinking: run.thinking.map_or(contract::Thinking::Off, thinking),
        limits: JobLimits {
            turns: turns.unwrap_or(own.turns),
            tokens: tokens.unwrap_or(own.tokens),
            cost_micros: cost,
            total_seconds: total.unwrap_or(own.total.as_secs()),
            idle_seconds: settings.timing.idle.as_secs(),
            setup_seconds: settings.timing.setup.as_secs(),
        },
        outputs: run.outputs(),
        mode: run.mode,
        task: run.task.clone(),
        instructions: run.instructions.clone(),
        flow: run.flow.clone(),
    }
}

fn least<T: Ord + Copy, const N: usize>(caps: [Option<T>; N]) -> Option<T> {
    caps.into_iter().flatten().min()
}

fn thinking(level: Thinking) -> contract::Thinking {
    match level {
        Thinking::Off => contract::Thinking::Off,
        Thinking::Minimal => contract::Thinking::Minimal,
        Thinking::Low => contract::Thinking::Low,
        Thinking::Medium => contract::Thinking::Medium,
        Thinking::High => contract::Thinking::High,
        Thinking::Xhigh => contract::Thinking::Xhigh,
        Thinking::Max => contract::Thinking::Max,
    }
}
