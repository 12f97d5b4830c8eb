//! The life of one job, from top to bottom. Start reading here.
//!
//! ```text
//! claim ─▶ gates::admit ─▶ prepare ─▶ door opened ─▶ container made, compared, started ─▶ watched to its end
//!              │no                                                                             │
//!              ▼                                                                               ▼
//!        refused, answered once;                                     outcome::decide ─▶ publish ─▶ finish ─▶ cleaned up
//!        or back to the queue
//! ```
//!
//! [`live`] is a claimed job; `adopt` is one whose container lived on while its worker was away; by hand
//! ([`crate::manual`]) it is the same box without a queue. What happens inside the box is [`in_the_box`] for all three.
//!
//! A job is finished while its container still lies there, ended: so a death in between loses nothing, and the next
//! worker removes what is left. Its key is free only after the container was seen ended.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use contract::StopReason;
use gateway::{Door, DoorSpec, ModelGrant, Timeouts, providers::Catalog};
use queue::{Caps, Claim, Finish, Outcome, Queue, Reason, WentBack};
use tokio::time::sleep;
use triggers::Mode;

use crate::{
    container::{Ask, Engine, EngineError, Exit, Owner},
    decide::Forges,
    folders::JobFolders,
    gates::{self, Admitted, Gate, No, Passage, Plan},
    jobdir::JobDirError,
    ledger::{Ledger, Terms},
    outcome::{self, Ended, Expected, Told, Verdict},
    prepare, publish,
    repo::{GitError, Repos},
    settings::{DayLimits, Settings},
    stop::{StopCause, Switch},
    texts::job as texts,
    trigger_file::Live,
    watch::Watched,
};

/// What every job of this worker shares.
pub struct House {
    /// The database.
    pub queue: Queue,
    /// The forges.
    pub forges: Forges,
    /// The triggers file in force.
    pub triggers: Arc<Live>,
    /// The repositories of this host.
    pub repos: Repos,
    /// What a job needs also without a queue.
    pub bench: Bench,
}

/// What a job needs also without a queue.
pub struct Bench {
    /// Docker.
    pub engine: Engine,
    /// The models.
    pub catalog: Arc<Catalog>,
    /// The operator's figures and folders.
    pub settings: Arc<Settings>,
}

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
    fn may_get_a_container(&self) -> bool {
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

/// Which job, for the box: its numbers, and its claim when it has one.
pub(crate) struct Target<'a> {
    pub(crate) job: i64,
    pub(crate) attempt: i32,
    pub(crate) claim: Option<&'a Claim>,
}

/// What kept a job from its end. Infrastructure, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum JobFault {
    /// Docker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The sockets.
    #[error(transparent)]
    Door(#[from] gateway::DoorError),
    /// The files of `/job`.
    #[error(transparent)]
    JobDir(#[from] JobDirError),
    /// The host's file system.
    #[error("the host's file system: {0}")]
    Host(std::io::Error),
    /// It was stopped before its container was started.
    #[error("stopped before it was started ({})", .0.reason)]
    Stopped(StopCause),
    /// Its container, or what is needed to go on with it, is not there any more.
    #[error("the run was lost: {0}")]
    Lost(&'static str),
    /// A fault of ours.
    #[error("a fault of pi-dispatch: {0}")]
    Internal(&'static str),
}

impl JobFault {
    /// The word of a refusal, when trying again would change nothing.
    fn refuses(&self) -> Option<Reason> {
        match self {
            Self::Engine(EngineError::Differs(_)) => Some(Reason::ContainerDiffers),
            Self::JobDir(JobDirError::TooLarge { .. }) | Self::Git(GitError::TooLarge(_)) => Some(Reason::JobTooLarge),
            _ => None,
        }
    }

    /// How the job ends when it is not tried again.
    fn outcome(&self) -> (Outcome, Reason) {
        match self {
            Self::Stopped(StopCause {
                reason: StopReason::StoppedByPerson,
                ..
            }) => (Outcome::Stopped, Reason::PersonStopped),
            Self::Stopped(_) | Self::Lost(_) => (Outcome::Failed, Reason::WorkerLost),
            Self::Engine(_) | Self::JobDir(_) | Self::Host(_) => (Outcome::Failed, Reason::ContainerFailed),
            Self::Door(_) => (Outcome::Failed, Reason::GatewayUnavailable),
            Self::Git(_) => (Outcome::Failed, Reason::ForgeUnavailable),
            Self::Internal(_) => (Outcome::Failed, Reason::InternalFault),
        }
    }
}

/// A run that came to its end, however it ended.
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) told: Told,
    pub(crate) expected: Expected,
}

/// A claimed job: through the gates, into the box, to its end.
pub(crate) async fn live(house: Arc<House>, running: Arc<Running>) {
    let claim = &running.claim;
    let ledger = Arc::new(Ledger::rows(house.queue.clone(), claim.clone(), running.switch.clone()));
    let admitted = tokio::select! {
        admitted = gates::admit(&house, &ledger, claim) => admitted,
        cause = running.switch.pulled() => {
            broken(&house, &ledger, claim, &Plan::of_data(&claim.data), JobFault::Stopped(cause)).await;
            return;
        }
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(No::Refused { reason, detail }) => {
            refuse(&house, &ledger, claim, &Plan::of_data(&claim.data), reason, detail).await;
            return;
        }
        Err(No::Waits { reason, detail, delay }) => {
            return hand_back(&house, &ledger, claim, reason, &detail, delay).await;
        }
    };
    if admitted.plan.mode == Mode::Observe {
        return finish(&house, &ledger, claim, observed()).await;
    }
    if !running.may_get_a_container() {
        // The worker stops, and whoever stops it hands the job back.
        return;
    }
    let target = Target {
        job: claim.job.0,
        attempt: claim.attempt.0,
        claim: Some(&running.claim),
    };
    let owner = owner(&house.bench.settings, &target);
    let status = publish::Status::new(&house, claim, &admitted.plan);
    let ran = tokio::select! {
        ran = in_the_box(&house.bench, Some(&house.repos), &ledger, &admitted, &target) => ran,
        never = status.after_a_while() => match never {},
    };
    let reason = match ran {
        Ok(ran) => end(&house, &ledger, claim, &admitted.plan, &ran).await,
        Err(fault) => {
            kill_until_dead(&house.bench.engine, &owner.name()).await;
            broken(&house, &ledger, claim, &admitted.plan, fault).await
        }
    };
    status.ended(reason).await;
    clean_up(&house.bench, &owner).await;
}

/// A job whose container lived on while its worker was away: the same end, from the middle.
pub(crate) async fn adopt(house: Arc<House>, running: Arc<Running>, container: Option<String>) {
    let claim = &running.claim;
    let ledger = Arc::new(Ledger::rows(house.queue.clone(), claim.clone(), running.switch.clone()));
    ledger.resume().await;
    let target = Target {
        job: claim.job.0,
        attempt: claim.attempt.0,
        claim: Some(&running.claim),
    };
    let owner = owner(&house.bench.settings, &target);
    let folders = JobFolders::of(&house.bench.settings, &owner);
    // Without its plan nobody knows what it may do: then it ends here.
    let (plan, readable) = match folders.plan() {
        Ok(plan) => (plan, true),
        Err(_) => (Plan::of_data(&claim.data), false),
    };
    let status = publish::Status::new(&house, claim, &plan);
    status.look().await;
    let ran = match container {
        Some(container) if readable => {
            ledger.note("adopted", texts::ADOPTED.to_owned()).await;
            tokio::select! {
                ran = go_on(&house.bench, &ledger, &plan, &folders, &container) => ran,
                never = status.after_a_while() => match never {},
            }
        }
        Some(_) => Err(JobFault::Lost("the plan of its attempt is gone")),
        None => Err(JobFault::Lost("its container is gone")),
    };
    let reason = match ran {
        Ok(ran) => end(&house, &ledger, claim, &plan, &ran).await,
        Err(fault) => {
            kill_until_dead(&house.bench.engine, &owner.name()).await;
            broken(&house, &ledger, claim, &plan, fault).await
        }
    };
    status.ended(reason).await;
    clean_up(&house.bench, &owner).await;
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
    ledger.container_created(&container, &admitted.image.id).await;
    if let Some(cause) = ledger.switch().cause() {
        return Err(JobFault::Stopped(cause));
    }
    ledger.container_started().await;
    let pid = bench.engine.start(&container).await?;
    door.expect_pid(pid);
    Ok(watch(bench, ledger, plan, &folders, &container, door).await)
}

/// Goes on with a container that is there: its door is opened anew, its log is read again.
async fn go_on(
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

/// The run came to its end: what it was, what is published, and the job's last row.
/// Gives the reason that stands there; `None` when it is tried again.
async fn end(house: &House, ledger: &Arc<Ledger>, claim: &Claim, plan: &Plan, ran: &Ran) -> Option<Reason> {
    // Without its spend nobody may try again: money could be spent twice.
    let spend = ledger.spend().await;
    let verdict = outcome::decide(&Ended {
        exit: ran.exit,
        cause: ledger.switch().cause(),
        told: &ran.told,
        expected: &ran.expected,
        forwarded: spend.is_none_or(|spend| spend.requests > 0),
        attempts_left: claim.attempts_used + 1 < house.bench.settings.timing.max_attempts,
    });
    let (outcome, reason, detail) = match verdict {
        Verdict::Finish {
            outcome,
            reason,
            detail,
        } => (outcome, reason, detail.unwrap_or_default()),
        Verdict::Again { reason, detail } => {
            let detail = detail.unwrap_or_default();
            if again(house, ledger, claim, reason, &detail).await {
                return None;
            }
            (Outcome::Failed, reason, detail)
        }
    };
    let comments = ledger.comments().await;
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend,
        told: &ran.told,
        comments,
        forges: &house.forges,
    };
    let finished = run.finish(
        &house.bench.settings,
        outcome,
        reason,
        detail,
        i32::try_from(ran.exit.code).ok(),
    );
    let reason = finished.reason;
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

/// It never ran, or its container was lost.
async fn broken(house: &House, ledger: &Arc<Ledger>, claim: &Claim, plan: &Plan, fault: JobFault) -> Option<Reason> {
    tracing::warn!(job.id = claim.job.0, %fault, "a job did not get through its box");
    if let Some(reason) = fault.refuses() {
        return refuse(house, ledger, claim, plan, reason, fault.to_string()).await;
    }
    let (outcome, reason) = fault.outcome();
    if outcome == Outcome::Failed && again(house, ledger, claim, reason, &fault.to_string()).await {
        return None;
    }
    let told = Told::default();
    let spend = ledger.spend().await;
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend,
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let finished = run.finish(&house.bench.settings, outcome, reason, fault.to_string(), None);
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

/// Another attempt, when the queue allows one: it knows whether anything was spent.
async fn again(house: &House, ledger: &Ledger, claim: &Claim, reason: Reason, detail: &str) -> bool {
    let timing = &house.bench.settings.timing;
    let doubled = u32::try_from(claim.attempts_used).unwrap_or(0).min(6);
    let delay = timing.retry.saturating_mul(1 << doubled);
    let went = ledger
        .written(|| house.queue.back_to_queue(claim, reason, detail, delay))
        .await;
    match went {
        Some(WentBack::Queued) => {
            tracing::info!(job.id = claim.job.0, reason = reason.word(), "a job is tried again");
            true
        }
        Some(WentBack::MayNot { .. }) => false,
        // Nothing can be written any more: somebody else has it.
        None => true,
    }
}

async fn hand_back(house: &House, ledger: &Ledger, claim: &Claim, reason: Reason, detail: &str, delay: Duration) {
    tracing::info!(job.id = claim.job.0, reason = reason.word(), detail, "a job waits");
    ledger
        .written(|| house.queue.hand_back(claim, reason, detail, delay))
        .await;
}

async fn refuse(
    house: &House,
    ledger: &Ledger,
    claim: &Claim,
    plan: &Plan,
    reason: Reason,
    detail: String,
) -> Option<Reason> {
    let told = Told::default();
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend: None,
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let finished = run.finish(&house.bench.settings, Outcome::Refused, reason, detail, None);
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

async fn finish(house: &House, ledger: &Ledger, claim: &Claim, finish: Finish) {
    tracing::info!(
        job.id = claim.job.0,
        outcome = finish.outcome.word(),
        reason = finish.reason.word(),
        "a job is finished"
    );
    ledger.written(|| house.queue.finish(claim, &finish)).await;
}

/// Everything up to the container was done, nothing was started and nothing is posted.
fn observed() -> Finish {
    Finish {
        outcome: Outcome::Completed,
        reason: Reason::Observed,
        detail: String::new(),
        exit_code: None,
        turns: None,
        reply: None,
        outputs: Vec::new(),
    }
}

/// The container and the folders go. What cannot be removed now is removed when the worker starts again.
pub(crate) async fn clean_up(bench: &Bench, owner: &Owner) {
    if let Err(fault) = bench.engine.remove(&owner.name()).await {
        tracing::warn!(job.id = owner.job, %fault, "a container could not be removed");
        return;
    }
    if let Err(fault) = remove_folders(bench, JobFolders::of(&bench.settings, owner)).await {
        tracing::warn!(job.id = owner.job, %fault, "a job's folders could not be removed");
    }
}

/// Removes the folders of an attempt whose container is gone. A worker that is not root takes them back first.
pub(crate) async fn remove_folders(bench: &Bench, folders: JobFolders) -> Result<(), JobFault> {
    match folders.removed().await {
        Err(fault) if fault.kind() == std::io::ErrorKind::PermissionDenied => {}
        done => return done.map_err(JobFault::Host),
    }
    let image = folders
        .plan()
        .map_or_else(|_| bench.settings.image.clone(), |plan| plan.image);
    let both = [folders.seen.workspace.as_path(), folders.seen.session.as_path()];
    bench
        .engine
        .give(&image, &both, rustix::process::geteuid().as_raw())
        .await?;
    folders.removed().await.map_err(JobFault::Host)
}

/// Kills and looks, until Docker says that it is dead: before that its key is not free.
pub(crate) async fn kill_until_dead(engine: &Engine, container: &str) {
    loop {
        match engine.kill(container).await {
            Ok(()) if matches!(engine.pid(container).await, Ok(0) | Err(EngineError::NoSuchContainer)) => return,
            Ok(()) => {}
            Err(fault) => tracing::warn!(%fault, "killing a container failed, trying again"),
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// Whose container a job's is.
pub(crate) fn owner(settings: &Settings, target: &Target<'_>) -> Owner {
    Owner {
        deployment: settings.deployment.clone(),
        worker: settings.worker.clone(),
        job: target.job,
        attempt: target.attempt,
    }
}
