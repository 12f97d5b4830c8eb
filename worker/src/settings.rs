//! What a worker is told by its operator: one plain struct, filled by the program from `pi-dispatch.toml`.
//!
//! Sizes are bytes, times are [`Duration`]s, money is whole micro-dollars. Nothing here is read from the environment
//! or from a file; the program has done so. The defaults are those of the starter file.
//!
//! Source of the figures: `docs/operations.md`.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use contract::Micros;
use forges::{Api, ForgeKind};
use gateway::providers::Catalog;
use queue::Queue;
use secrecy::SecretString;

/// Everything that [`crate::run`] needs, made by the program.
pub struct Deps {
    /// The database.
    pub queue: Queue,
    /// The forges whose deliveries this worker decides and to which it answers.
    pub forges: Vec<ForgeSetup>,
    /// The operator's figures and folders.
    pub settings: Settings,
    /// The models that this host may call, with prices and keys.
    pub catalog: Arc<Catalog>,
    /// The engine. The program connects it, so that a wrong address is refused before anything starts.
    pub docker: bollard::Docker,
}

/// One forge, as the worker sees it.
#[derive(Clone)]
pub struct ForgeSetup {
    /// The operator's name for it, as in `/hooks/NAME`.
    pub name: String,
    /// Which dialect it speaks.
    pub kind: ForgeKind,
    /// Its API, with the token inside.
    pub api: Arc<Api>,
    /// The repositories that may start jobs: globs on `owner/name`.
    pub repositories: Vec<String>,
    /// Our own account there, whose posts start nothing.
    pub account_id: Option<i64>,
    /// Numeric ids of people who may start jobs without being looked up.
    pub allow_users: BTreeSet<i64>,
    /// Secrets that no text of ours may carry: tokens, hook secrets, model keys.
    pub withhold: Vec<SecretString>,
}

/// The operator's choices for one worker.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This worker's name: unique in the deployment and the same after a restart, or its containers find no parent.
    pub worker: String,
    /// This deployment's name. It stands in the labels of every container; a worker touches no container of another.
    pub deployment: String,
    /// How many jobs run here at once.
    pub slots: u16,
    /// Where job folders and repository caches live (made 0700).
    pub data_dir: PathBuf,
    /// Where the gateway's sockets live. Short: a socket's path may have 107 bytes.
    pub socket_dir: PathBuf,
    /// The triggers file.
    pub triggers: PathBuf,
    /// The image of triggers that name none.
    pub image: String,
    /// The operator's folder with skills, persona and models, when there is one.
    pub overlay: Option<PathBuf>,
    /// The provider of triggers that name none.
    pub provider: Option<String>,
    /// The model of triggers that name none.
    pub model: Option<String>,
    /// Where people find the panel: the base of links in comments.
    pub public_url: Option<String>,
    /// An object that was older than this when its delivery came makes no job.
    pub max_event_age: Duration,
    /// Caps of every run and of the day.
    pub limits: Limits,
    /// What a container may use of this host.
    pub container: ContainerSettings,
    /// How much of a job's output is kept.
    pub log: LogLimits,
    /// Intervals and patience.
    pub timing: Timing,
}

/// Caps that hold unless a trigger has less. `None` means no cap of that sort.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// For every run.
    pub run: RunLimits,
    /// For all runs of one UTC day together.
    pub day: DayLimits,
}

/// Caps of one run.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// Answers of the model.
    pub turns: u32,
    /// Tokens of all kinds, as the provider bills them.
    pub tokens: u64,
    /// Money.
    pub cost: Option<Micros>,
    /// From container start to the end.
    pub total: Duration,
}

/// Caps of one UTC day over all runs of the deployment.
#[derive(Debug, Clone, Default)]
pub struct DayLimits {
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Micros>,
}

/// What a job's container may use of the host.
#[derive(Debug, Clone)]
pub struct ContainerSettings {
    /// The user and group inside, and the owner of what it may write. Never the worker's own.
    pub uid: u32,
    /// Memory, with no swap on top.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Processors, in billionths.
    pub nano_cpus: u64,
    /// The largest single file that it may write.
    pub file_size: u64,
    /// Open files per process.
    pub open_files: u32,
    /// Size of `/tmp`.
    pub tmp: u64,
    /// Size of the home folder.
    pub home: u64,
    /// Size of pi's own folder.
    pub agent_dir: u64,
    /// Bytes that `/workspace` may hold.
    pub workspace_bytes: u64,
    /// Files and folders that `/workspace` may hold.
    pub workspace_files: u64,
    /// Bytes that `/session` may hold.
    pub session_bytes: u64,
    /// Files and folders that `/session` may hold.
    pub session_files: u64,
    /// Below this much free space nothing is claimed.
    pub free_floor: u64,
    /// Another OCI runtime than Docker's default, by its name in the engine's configuration.
    pub runtime: Option<String>,
}

/// How much a job may print. What is over the line's length is cut, what is over the rate is counted and dropped,
/// what is over the total stops the job (`log-cap`).
#[derive(Debug, Clone)]
pub struct LogLimits {
    /// Bytes of one line. The runner's own lines fit.
    pub line: usize,
    /// Lines in one second of Docker's clock.
    pub lines_per_second: u32,
    /// Bytes of one attempt.
    pub total: u64,
}

/// Intervals and patience. Tests shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How long a lease holds after a heartbeat.
    pub lease: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// Containers are killed this long before a lease ends that could not be renewed.
    pub lease_margin: Duration,
    /// Between two looks for work when no notification came.
    pub poll: Duration,
    /// From container start to the runner's `started` line.
    pub setup: Duration,
    /// The longest silence of a running job.
    pub idle: Duration,
    /// Between asking a job to stop and killing it.
    pub grace: Duration,
    /// A run that takes longer gets a status comment.
    pub status_after: Duration,
    /// Between two looks at a job's folders.
    pub disk: Duration,
    /// How often infrastructure may fail before the job does.
    pub max_attempts: i32,
    /// The wait before an attempt is repeated; doubled each time.
    pub retry: Duration,
}

const MIB: u64 = 1024 * 1024;

impl Settings {
    /// Defaults around the three things that have none.
    pub fn new(worker: impl Into<String>, deployment: impl Into<String>, data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        Self {
            worker: worker.into(),
            deployment: deployment.into(),
            slots: 3,
            socket_dir: data_dir.join("s"),
            data_dir,
            triggers: PathBuf::from("triggers.json"),
            image: "pi-job:2.0.0".to_owned(),
            overlay: None,
            provider: None,
            model: None,
            public_url: None,
            max_event_age: Duration::from_secs(24 * 3600),
            limits: Limits::default(),
            container: ContainerSettings::default(),
            log: LogLimits::default(),
            timing: Timing::default(),
        }
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            turns: 60,
            tokens: 2_000_000,
            cost: Some(Micros(5_000_000)),
            total: Duration::from_secs(30 * 60),
        }
    }
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            uid: 10001,
            memory: 1024 * MIB,
            pids: 256,
            nano_cpus: 1_000_000_000,
            file_size: 512 * MIB,
            open_files: 4096,
            tmp: 256 * MIB,
            home: 64 * MIB,
            agent_dir: 64 * MIB,
            workspace_bytes: 2048 * MIB,
            workspace_files: 200_000,
            session_bytes: 256 * MIB,
            session_files: 10_000,
            free_floor: 1024 * MIB,
            runtime: None,
        }
    }
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            line: 128 * 1024,
            lines_per_second: 500,
            total: 32 * MIB,
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            heartbeat: Duration::from_secs(10),
            lease_margin: Duration::from_secs(10),
            poll: Duration::from_secs(2),
            setup: Duration::from_secs(120),
            idle: Duration::from_secs(600),
            grace: Duration::from_secs(10),
            status_after: Duration::from_secs(30),
            disk: Duration::from_secs(2),
            max_attempts: 3,
            retry: Duration::from_secs(15),
        }
    }
}
