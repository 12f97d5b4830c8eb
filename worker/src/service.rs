//! The worker's loops, wired: deciders, claims, posters, triggers file, heartbeat, rescue, registry.
//!
//! Each loop does one thing, waits for its bell or for a while, and begins again; polling is correctness, the bell is
//! latency. A fault of PostgreSQL or Docker is waited out. A loop that panics or returns ends the worker with an
//! error, and what runs in containers goes on until the next start adopts it.

mod claims;
mod leases;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use queue::{Channel, Heard, JobId, Outcome, Reason, StoreError, WorkerName};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    container::{Engine, EngineError},
    decide::{BadRepositories, Decider, Forges},
    folders,
    job::{Bench, House, Running},
    manual,
    outbox::Poster,
    publish,
    repo::{GitError, GitSettings, Repos},
    settings::Deps,
    status,
    trigger_file::{LOOK_EVERY, Live, TriggerFileError},
};

/// Deliveries that are decided at once: one that waits for its forge holds up nobody.
const DECIDERS: usize = 4;
/// Outputs that are posted at once.
const POSTERS: usize = 2;
/// After a fault of PostgreSQL.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two comparisons of rows and containers, and two looks for what waits too long.
const HOUSEKEEPING: Duration = Duration::from_secs(60);
/// A job that was queued for longer expires.
const EXPIRES: Duration = Duration::from_secs(24 * 3600);
/// How far back housekeeping looks for ends that nobody said; the first time it looks back a day.
const UNSAID: Duration = Duration::from_secs(3600);
/// How long the loops may take to end.
const LAST: Duration = Duration::from_secs(10);
/// The longest path of a Unix socket, and the longest name of one in a job's folder.
const SOCKET_PATH: usize = 107;
const SOCKET_NAME: &str = "/9999999999-99999/control.sock";

/// Why a worker does not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A forge's `repositories`.
    #[error(transparent)]
    Repositories(#[from] BadRepositories),
    /// The triggers file.
    #[error(transparent)]
    Triggers(#[from] TriggerFileError),
    /// Folders of the host.
    #[error("cannot prepare the worker's folders: {0}")]
    Folders(#[from] std::io::Error),
    /// The caches.
    #[error("cannot prepare the repositories' folder: {0}")]
    Repos(#[from] GitError),
    /// Jobs would run as root or as the worker itself.
    #[error("jobs may not run as user {0}: it is root, or the worker's own")]
    JobUser(u32),
    /// The sockets' folder is too deep.
    #[error("the folder for sockets, `{0}`, is too long: a socket's path may have {SOCKET_PATH} bytes")]
    SocketFolder(PathBuf),
    /// A loop ended: a panic, which was logged, or a fault of ours.
    #[error("the worker's loop `{0}` ended by itself")]
    LoopEnded(&'static str),
}

/// The jobs that this worker has, by number.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<BTreeMap<JobId, Arc<Running>>>);

impl Jobs {
    pub(crate) fn add(&self, running: &Arc<Running>) {
        self.lock().insert(running.claim.job, Arc::clone(running));
    }

    pub(crate) fn remove(&self, running: &Running) {
        let mut jobs = self.lock();
        // The same job may be here again under a later attempt.
        if jobs
            .get(&running.claim.job)
            .is_some_and(|there| there.claim.attempt == running.claim.attempt)
        {
            jobs.remove(&running.claim.job);
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Running>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What wakes a loop before its time. One per loop: a ring is kept until it is heard.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<Notify>);

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.notify_one();
    }

    /// Until it rings, or for that long.
    pub(crate) async fn or(&self, while_: Duration) {
        let _ = timeout(while_, self.0.notified()).await;
    }
}

/// What the loops share.
pub(crate) struct Works {
    pub(crate) house: Arc<House>,
    pub(crate) jobs: Jobs,
    pub(crate) claims: Bell,
    pub(crate) stops: Bell,
    deciders: Vec<Bell>,
    posters: Vec<Bell>,
    pub(crate) stopping: CancellationToken,
    /// What this worker left behind was looked for: before that no lease is rescued, for it may be our own.
    pub(crate) adopted: CancellationToken,
}

/// Runs the worker until `shutdown` is ready; then hands back what has no container and leaves the rest to be adopted.
///
/// # Errors
/// [`WorkerError`]: what it needs is not there, or a part of it broke.
pub async fn run(deps: Deps, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), WorkerError> {
    let works = Arc::new(prepare(deps)?);
    let mut loops: JoinSet<&'static str> = JoinSet::new();
    for bell in works.deciders.clone() {
        loops.spawn(decide(Arc::clone(&works), bell));
    }
    for bell in works.posters.clone() {
        loops.spawn(post(Arc::clone(&works), bell));
    }
    loops.spawn(claims::run(Arc::clone(&works)));
    loops.spawn(leases::beat(Arc::clone(&works)));
    loops.spawn(leases::stops(Arc::clone(&works)));
    loops.spawn(leases::rescue(Arc::clone(&works)));
    loops.spawn(listen(Arc::clone(&works)));
    loops.spawn(look(Arc::clone(&works)));
    loops.spawn(show(Arc::clone(&works)));
    loops.spawn(keep_house(Arc::clone(&works)));

    tokio::select! {
        () = shutdown => {}
        ended = loops.join_next() => {
            works.stopping.cancel();
            return Err(WorkerError::LoopEnded(match ended {
                Some(Ok(name)) => name,
                Some(Err(_)) => "panicked",
                None => "none",
            }));
        }
    }
    tracing::info!("the worker stops");
    works.stopping.cancel();
    let ends = async {
        while let Some(ended) = loops.join_next().await {
            if ended.is_err() {
                return Err(WorkerError::LoopEnded("panicked"));
            }
        }
        Ok(())
    };
    // A forge that hangs does not hold the end up: its rows come back when their lease ends.
    match timeout(LAST, ends).await {
        Ok(ended) => ended?,
        Err(_) => tracing::warn!("something was still being asked or posted when the worker ended"),
    }
    let worker = WorkerName(works.house.bench.settings.worker.clone());
    if let Err(fault) = works.house.queue.remove_worker(&worker).await {
        tracing::warn!(%fault, "could not say that the worker stopped");
    }
    Ok(())
}

fn prepare(deps: Deps) -> Result<Works, WorkerError> {
    let Deps {
        queue,
        forges,
        settings,
        catalog,
        docker,
    } = deps;
    let settings = Arc::new(settings);
    // A job that runs as the worker's own user could do to it whatever it may do itself.
    if [0, rustix::process::geteuid().as_raw()].contains(&settings.container.uid) {
        return Err(WorkerError::JobUser(settings.container.uid));
    }
    if settings.socket_dir.as_os_str().len() + SOCKET_NAME.len() > SOCKET_PATH {
        return Err(WorkerError::SocketFolder(settings.socket_dir.clone()));
    }
    folders::private(&settings.data_dir)?;
    folders::private(&settings.socket_dir)?;
    let house = House {
        forges: Forges::new(forges)?,
        triggers: Arc::new(Live::open(&settings.triggers, settings.container.uid)?),
        repos: Repos::new(&settings.data_dir, GitSettings::default())?,
        queue,
        bench: Bench {
            engine: Engine::new(docker),
            catalog,
            settings,
        },
    };
    Ok(Works {
        house: Arc::new(house),
        jobs: Jobs::default(),
        claims: Bell::default(),
        stops: Bell::default(),
        deciders: vec![Bell::default(); DECIDERS]
            .iter()
            .map(|_| Bell::default())
            .collect(),
        posters: (0..POSTERS).map(|_| Bell::default()).collect(),
        stopping: CancellationToken::new(),
        adopted: CancellationToken::new(),
    })
}

impl Works {
    pub(crate) fn poll(&self) -> Duration {
        self.house.bench.settings.timing.poll
    }

    fn ring(&self, channel: Channel) {
        match channel {
            Channel::Deliveries => self.deciders.iter().for_each(Bell::ring),
            Channel::Jobs => self.claims.ring(),
            Channel::Outputs => self.posters.iter().for_each(Bell::ring),
            Channel::Stops => self.stops.ring(),
        }
    }

    /// Runs `step` again and again until the worker stops. A step that did something is followed at once.
    pub(crate) async fn again<F>(&self, name: &'static str, bell: &Bell, wait: Duration, step: impl Fn() -> F)
    where
        F: Future<Output = Result<bool, StoreError>>,
    {
        let mut trouble = false;
        while !self.stopping.is_cancelled() {
            match step().await {
                Ok(more) => {
                    if std::mem::take(&mut trouble) {
                        tracing::info!(name, "postgresql answers again");
                    }
                    if !more {
                        self.rest(bell.or(wait)).await;
                    }
                }
                Err(fault) => {
                    if !std::mem::replace(&mut trouble, true) {
                        tracing::warn!(name, %fault, "postgresql could not be asked, trying again");
                    }
                    self.rest(sleep(AGAIN)).await;
                }
            }
        }
    }

    /// Waits, but not longer than the worker runs.
    pub(crate) async fn rest(&self, wait: impl Future<Output = ()>) {
        tokio::select! {
            () = wait => {}
            () = self.stopping.cancelled() => {}
        }
    }
}

async fn decide(works: Arc<Works>, bell: Bell) -> &'static str {
    let house = &works.house;
    let settings = Arc::clone(&house.bench.settings);
    let decider = Decider::new(
        house.queue.clone(),
        house.forges.clone(),
        Arc::clone(&house.triggers),
        settings,
    );
    works.again("decide", &bell, works.poll(), || decider.run_once()).await;
    "decide"
}

async fn post(works: Arc<Works>, bell: Bell) -> &'static str {
    let house = &works.house;
    let worker = WorkerName(house.bench.settings.worker.clone());
    let poster = Poster::new(house.queue.clone(), house.forges.clone(), worker);
    works.again("post", &bell, works.poll(), || poster.run_once()).await;
    "post"
}

/// The triggers file, read live.
async fn look(works: Arc<Works>) -> &'static str {
    let house = &works.house;
    let worker = WorkerName(house.bench.settings.worker.clone());
    let step = async || house.triggers.look(&house.queue, &worker).await.map(|_| false);
    works.again("triggers", &Bell::default(), LOOK_EVERY, step).await;
    "triggers"
}

/// This worker's row.
async fn show(works: Arc<Works>) -> &'static str {
    let every = works.house.bench.settings.timing.heartbeat;
    let starting = AtomicBool::new(true);
    let step = async || {
        let row = status::row(&works.house, works.jobs.len()).await;
        works
            .house
            .queue
            .put_worker(&row, starting.load(Ordering::Relaxed))
            .await?;
        starting.store(false, Ordering::Relaxed);
        Ok(false)
    };
    works.again("registry", &Bell::default(), every, step).await;
    "registry"
}

/// What nobody else does: held jobs whose time has come, jobs that waited too long, containers that are over.
async fn keep_house(works: Arc<Works>) -> &'static str {
    let house = &works.house;
    manual::sweep(&house.bench).await;
    let first = AtomicBool::new(true);
    let step = async || {
        house.queue.release_due().await?;
        for job in house.queue.expire(EXPIRES).await? {
            tracing::info!(job.id = job.0, "a job was queued for too long and expired");
            publish::over(house, job, Outcome::Expired, Reason::QueuedTooLong).await?;
        }
        let age = if first.load(Ordering::Relaxed) { EXPIRES } else { UNSAID };
        publish::say_the_unsaid(house, age).await?;
        first.store(false, Ordering::Relaxed);
        leases::sweep(&works).await?;
        Ok(false)
    };
    works.again("housekeeping", &Bell::default(), HOUSEKEEPING, step).await;
    "housekeeping"
}

/// Rings the bells. Whoever listens also polls, so a connection that breaks costs latency and nothing else.
async fn listen(works: Arc<Works>) -> &'static str {
    const ALL: [Channel; 4] = [Channel::Deliveries, Channel::Jobs, Channel::Outputs, Channel::Stops];
    while !works.stopping.is_cancelled() {
        match works.house.queue.listen(&ALL).await {
            Ok(mut listener) => {
                ALL.into_iter().for_each(|channel| works.ring(channel));
                let hear = async {
                    loop {
                        match listener.heard().await {
                            Ok(Heard::Changed(channel)) => works.ring(channel),
                            Ok(Heard::Reconnected) => ALL.into_iter().for_each(|channel| works.ring(channel)),
                            Err(_) => return,
                        }
                    }
                };
                works.rest(hear).await;
            }
            Err(fault) => tracing::debug!(%fault, "not listening, polling only"),
        }
        works.rest(sleep(AGAIN)).await;
    }
    "listen"
}

/// Whether Docker is there; logged once per change by its caller.
pub(crate) async fn docker_is_there(engine: &Engine) -> Result<(), EngineError> {
    engine.version().await.map(|_| ())
}
