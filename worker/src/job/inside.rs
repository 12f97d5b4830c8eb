//! The box of one job: prepared, its door opened, its container made, compared, started and watched to its end.

use std::{sync::Arc, time::Duration};

use gateway::{Door, DoorSpec, ModelGrant, Timeouts};
use queue::{Caps, Reason};

use super::{Bench, JobFault, Target, cleaning::owner};
use crate::{
    container::{Ask, Engine, EngineError, Exit},
    folders::JobFolders,
    gates::{self, Admitted, Gate, Ground, No, Passage, Plan},
    ledger::{Ledger, Terms},
    outcome::{Expected, Told},
    prepare,
    repo::Repos,
    settings::DayLimits,
    texts::job as texts,
    watch::Watched,
};

/// A run that came to its end, however it ended.
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) told: Told,
    pub(crate) expected: Expected,
}

/// Prepares the box, makes its door and its container, and watches it to its end.
pub(crate) async fn in_the_box(
    bench: &Bench,
    repos: Option<&Repos>,
    ledger: &Arc<Ledger>,
    admitted: &Admitted,
    target: &Target<'_>,
) -> Result<Ran, JobFault> {
    let settings = &bench.settings;
    let owner = owner(settings, target);
    let folders = JobFolders::of(settings, &owner);
    say_left_out(ledger, &admitted.ground).await;
    prepare::prepare(bench, repos, admitted, target, &folders).await?;

    let plan = &admitted.plan;
    ledger.agree(terms(plan, &admitted.grant, &settings.limits.day));
    let door = open_door(&folders, target, plan, admitted.grant.clone(), ledger).await?;
    let ask = Ask {
        image: admitted.image.clone(),
        owner,
        excluded: plan.excluded.iter().map(|tool| tool.name().to_owned()).collect(),
        folders: folders.seen.clone(),
        settings: settings.container.clone(),
        log_size: settings.log.total.saturating_mul(2),
    };
    let container = Passage { ledger }
        .through(Gate::Container, made(&bench.engine, &ask))
        .await
        .map_err(|no| match no {
            No::Refused { detail, .. } => JobFault::Engine(EngineError::Differs(vec![detail])),
            No::Waits { detail, .. } => JobFault::Engine(EngineError::Unavailable(detail)),
        })?;
    // Both rows stand before the process does: who finds a container finds its job.
    let created = ledger.container_created(&container, &admitted.image.id).await;
    may_start(ledger, created)?;
    let started = ledger.container_started().await;
    may_start(ledger, started)?;
    let pid = bench.engine.start(&container).await?;
    door.expect_pid(pid);
    Ok(watch(bench, ledger, plan, &folders, &container, door).await)
}

/// Nothing starts that no row says, or that was stopped meanwhile.
fn may_start(ledger: &Ledger, written: bool) -> Result<(), JobFault> {
    match ledger.switch().cause() {
        Some(cause) => Err(JobFault::Stopped(cause)),
        None if !written => Err(JobFault::Internal("the container's row could not be written")),
        None => Ok(()),
    }
}

/// Goes on with a container that is there: its door is opened anew, its log is read again.
pub(super) async fn go_on(
    bench: &Bench,
    ledger: &Arc<Ledger>,
    plan: &Plan,
    folders: &JobFolders,
    container: &str,
) -> Result<Ran, JobFault> {
    let (Some(provider), Some(model)) = (&plan.provider, &plan.model) else {
        return Err(JobFault::Internal("a running job without a model"));
    };
    let grant = bench
        .catalog
        .grant(provider, model, plan.limits.cost_micros.is_some())
        .map_err(|_| JobFault::Internal("the running job's model is no longer configured"))?;
    ledger.agree(terms(plan, &grant, &bench.settings.limits.day));
    let target = Target {
        job: ledger.job(),
        attempt: ledger.attempt(),
        claim: None,
    };
    let door = open_door(folders, &target, plan, grant, ledger).await?;
    match bench.engine.pid(container).await {
        // It has ended meanwhile: its log and its exit code are still there.
        Ok(0) => {}
        Ok(pid) => door.expect_pid(pid),
        Err(fault) => return Err(fault.into()),
    }
    Ok(watch(bench, ledger, plan, folders, container, door).await)
}

async fn watch(
    bench: &Bench,
    ledger: &Arc<Ledger>,
    plan: &Plan,
    folders: &JobFolders,
    container: &str,
    door: Door,
) -> Ran {
    let expected = Expected {
        excluded: plan.excluded.clone(),
        proposals: prepare::proposal_names(plan),
    };
    let settings = &bench.settings;
    let watched = Watched {
        engine: &bench.engine,
        container,
        door: &door,
        ledger,
        switch: ledger.switch(),
        expected: &expected,
        folders: &folders.seen,
        settings: &settings.container,
        log: &settings.log,
        timing: &settings.timing,
        total: Duration::from_secs(plan.limits.total_seconds),
    };
    let (exit, told) = watched.to_its_end().await;
    door.close().await;
    ledger.container_gone(i32::try_from(exit.code).ok()).await;
    Ran { exit, told, expected }
}

/// Gate 11.
async fn made(engine: &Engine, ask: &Ask) -> gates::Answer<String> {
    match engine.create(ask).await {
        Ok(id) => {
            let detail = texts::container_made(&ask.image.id);
            gates::yes(id, detail)
        }
        Err(EngineError::Differs(differences)) => Err(No::refused(Reason::ContainerDiffers, differences.join("; "))),
        Err(fault) => Err(No::waits(Reason::DockerUnavailable, fault.to_string(), Duration::ZERO)),
    }
}

async fn open_door(
    folders: &JobFolders,
    target: &Target<'_>,
    plan: &Plan,
    grant: ModelGrant,
    ledger: &Arc<Ledger>,
) -> Result<Door, JobFault> {
    let proposals = prepare::proposal_names(plan);
    let spec = DoorSpec {
        dir: folders.seen.sockets.clone(),
        job: target.job,
        attempt: target.attempt,
        grant,
        allowed_tools: contract::expected_active(&plan.excluded, proposals.iter().map(String::as_str))
            .into_iter()
            .collect(),
        excluded: plan.excluded.iter().map(|tool| tool.name().to_owned()).collect(),
        caps: gateway::Caps::default(),
        timeouts: Timeouts::default(),
    };
    Ok(Door::open(spec, Arc::clone(ledger) as Arc<dyn gateway::Host>).await?)
}

fn terms(plan: &Plan, grant: &ModelGrant, day: &DayLimits) -> Terms {
    let figure = |cap: u64| i64::try_from(cap).unwrap_or(i64::MAX);
    Terms {
        provider: grant.provider().to_owned(),
        model: grant.model().to_owned(),
        caps: Caps {
            // pi tries again and sums up: a turn may be more than one request. Turns themselves are the runner's.
            run_requests: Some(i64::from(plan.limits.turns).saturating_mul(3).saturating_add(10)),
            run_tokens: Some(figure(plan.limits.tokens)),
            run_cost: plan.limits.cost_micros,
            day_tokens: day.tokens.map(figure),
            day_cost: day.cost,
        },
        comments: plan.outputs.comment,
    }
}

/// What the prompt and `/job/skill` do not hold although the repository has it.
async fn say_left_out(ledger: &Ledger, ground: &Ground) {
    let Ground::Repository(ground) = ground else { return };
    for line in ground.flow.left_out.iter().chain(&ground.context.left_out) {
        ledger.note("left_out", line.clone()).await;
    }
}
