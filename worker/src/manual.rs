//! One job by hand, without a queue and without a forge: the library half of `pi-dispatch run --job FILE`.
//!
//! It is the same box as every other job's: the same gates (those of trigger and forge aside), the same container,
//! door, log and outcome. The record is kept in memory ([`crate::ledger::Memory`]); the runner's lines are shown as
//! they come, the gates and the door's events beside them. Nothing is posted anywhere.
//!
//! The file (`docs/run-by-hand.md`), JSON, keys spelled as in a trigger:
//!
//! ```json
//! { "prompt": "Say what this folder holds.", "workspace": "./sample",
//!   "image": "pi-job:2.0.0", "excludeTools": ["bash", "powershell", "edit", "write"],
//!   "provider": "local", "model": "qwen3-coder", "thinking": "off",
//!   "maxTurns": 10, "maxTokens": 200000, "maxCostUsd": "0.50", "timeoutMinutes": 10,
//!   "outputs": { "comment": 1 }, "instructions": "Be brief." }
//! ```
//!
//! Only `prompt` is needed. `workspace` is a folder whose *copy* the job gets; relative paths begin at the file's.

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use contract::{JobLimits, Micros, StopReason, Thinking, Tool};
use queue::{Outcome, Reason, Spend};
use serde::Deserialize;
use triggers::{Mode, Outputs};

use crate::{
    container::{EngineError, Owner},
    folders,
    gates::{self, Ground, No, Plan},
    job::{self, Bench, JobFault, Target},
    ledger::{Ledger, Memory},
    outcome::{self, Ended, Verdict},
    random,
    settings::Settings,
    stop::Switch,
    texts::job as texts,
};

pub use crate::ledger::Show;

/// A job file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobByHand {
    /// The first message.
    pub prompt: String,
    /// A folder whose copy becomes the workspace; an empty one when absent.
    pub workspace: Option<PathBuf>,
    /// The image; the worker's when absent.
    pub image: Option<String>,
    /// Tools that the session does not have.
    #[serde(default)]
    pub exclude_tools: Vec<Tool>,
    /// The provider; the worker's when absent.
    pub provider: Option<String>,
    /// The model; the worker's when absent.
    pub model: Option<String>,
    /// How much it is to think.
    #[serde(default)]
    pub thinking: Thinking,
    /// As in a trigger.
    pub max_turns: Option<u32>,
    /// As in a trigger.
    pub max_tokens: Option<u64>,
    /// As in a trigger: decimal text.
    pub max_cost_usd: Option<String>,
    /// As in a trigger.
    pub timeout_minutes: Option<u32>,
    /// What it may propose.
    #[serde(default)]
    pub outputs: Outputs,
    /// How it is to go about it.
    pub instructions: Option<String>,
}

/// A job file that is refused, or a job that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    /// It cannot be read.
    #[error("cannot read the job file: {0}")]
    Unreadable(std::io::Error),
    /// It is not of the documented shape.
    #[error("the job file is refused: {0}")]
    Shape(#[from] serde_json::Error),
    /// A value that makes no sense.
    #[error("the job file is refused: {0}")]
    Value(String),
    /// The worker's folders.
    #[error("cannot prepare the worker's folders: {0}")]
    Folders(std::io::Error),
    /// It did not get through its box.
    #[error(transparent)]
    Job(#[from] JobFault),
}

/// How a job by hand ended.
#[derive(Debug)]
pub struct HandReport {
    /// How.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// What was seen.
    pub detail: String,
    /// What it would have posted: its proposals, else its last message.
    pub answers: Vec<String>,
    /// What it spent, by the gateway's count.
    pub spend: Spend,
}

impl JobByHand {
    /// Reads a job file.
    ///
    /// # Errors
    /// See [`ByHandError`].
    pub fn read(path: &Path) -> Result<Self, ByHandError> {
        let text = std::fs::read(path).map_err(ByHandError::Unreadable)?;
        let mut job: Self = serde_json::from_slice(&text)?;
        let base = path.parent().unwrap_or(Path::new("."));
        job.workspace = job.workspace.map(|folder| base.join(folder));
        Ok(job)
    }

    fn plan(&self, settings: &Settings) -> Result<Plan, ByHandError> {
        if self.prompt.trim().is_empty() {
            return Err(ByHandError::Value("`prompt` is empty".to_owned()));
        }
        let twice = self
            .exclude_tools
            .iter()
            .enumerate()
            .find(|(at, tool)| self.exclude_tools[..*at].contains(tool));
        if let Some((_, tool)) = twice {
            return Err(ByHandError::Value(format!("`excludeTools` names {tool} twice")));
        }
        let cost = match &self.max_cost_usd {
            Some(text) => Some(Micros::parse_usd(text).map_err(|fault| ByHandError::Value(fault.to_string()))?),
            None => None,
        };
        let own = &settings.limits.run;
        let total = self
            .timeout_minutes
            .map_or(own.total.as_secs(), |minutes| u64::from(minutes) * 60);
        Ok(Plan {
            image: self.image.clone().unwrap_or_else(|| settings.image.clone()),
            excluded: self.exclude_tools.clone(),
            provider: self.provider.clone().or_else(|| settings.provider.clone()),
            model: self.model.clone().or_else(|| settings.model.clone()),
            thinking: self.thinking,
            limits: JobLimits {
                turns: self.max_turns.map_or(own.turns, |turns| turns.min(own.turns)),
                tokens: self.max_tokens.map_or(own.tokens, |tokens| tokens.min(own.tokens)),
                cost_micros: [cost, own.cost].into_iter().flatten().min(),
                total_seconds: total.min(own.total.as_secs()),
                idle_seconds: settings.timing.idle.as_secs(),
                setup_seconds: settings.timing.setup.as_secs(),
            },
            outputs: self.outputs,
            mode: Mode::Run,
            task: None,
            instructions: self.instructions.clone(),
            flow: texts::BY_HAND.to_owned(),
        })
    }
}

/// Runs one job by hand to its end and cleans up. `stop` ends it early, as a person would.
///
/// # Errors
/// See [`ByHandError`]. A refusal of a gate is a report, not an error.
pub async fn run_job_file(
    job: &JobByHand,
    mut bench: Bench,
    show: Show,
    stop: impl Future<Output = ()>,
) -> Result<HandReport, ByHandError> {
    // A deployment of its own: no worker adopts or removes it, and two by hand do not meet.
    let mut settings = (*bench.settings).clone();
    settings = at_hand(&settings, &random::token(4));
    let plan = job.plan(&settings)?;
    sweep(&bench).await;
    let alive = Alive::say(&bench.settings, &settings).map_err(ByHandError::Folders)?;
    folders::private(&settings.data_dir).map_err(ByHandError::Folders)?;
    folders::private(&settings.socket_dir).map_err(ByHandError::Folders)?;
    bench.settings = Arc::new(settings);

    let switch = Switch::default();
    let report = {
        let run = run(job, &bench, plan, show, &switch);
        tokio::pin!(run);
        tokio::select! {
            report = &mut run => report,
            () = stop => {
                switch.pull(StopReason::StoppedByPerson);
                run.await
            }
        }
    };
    for folder in [&bench.settings.data_dir, &bench.settings.socket_dir] {
        if let Err(fault) = std::fs::remove_dir_all(folder) {
            tracing::warn!(%fault, folder = %folder.display(), "a folder of the job could not be removed");
        }
    }
    drop(alive);
    report
}

/// The settings of one job by hand: a deployment and folders of its own, all under one word.
fn at_hand(settings: &Settings, token: &str) -> Settings {
    let mut own = settings.clone();
    own.deployment = format!("{}{token}", prefix());
    own.data_dir = settings.data_dir.join(&own.deployment);
    own.socket_dir = settings.socket_dir.join(token);
    own
}

fn prefix() -> String {
    format!("{}-", texts::BY_HAND)
}

/// Says that a job by hand lives: a lock on a file beside its folder, which the kernel takes back when the process ends in whatever way.
struct Alive {
    file: PathBuf,
    _locked: File,
}

impl Alive {
    /// Made before the job's folder, so that a folder whose lock is free belongs to nobody.
    fn say(base: &Settings, own: &Settings) -> std::io::Result<Self> {
        folders::private(&base.data_dir)?;
        let file = lock_of(&own.data_dir);
        // Under its name only when it is locked: who looks in between takes nothing for dead.
        let unlocked = base.data_dir.join(format!("new-{}.lock", own.deployment));
        let locked = File::create(&unlocked)?;
        locked.lock()?;
        std::fs::rename(unlocked, &file)?;
        Ok(Self { file, _locked: locked })
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn lock_of(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// Removes what jobs by hand of this data folder have left whose process was killed: the container, then the folders.
/// What cannot be removed now is removed the next time.
pub(crate) async fn sweep(bench: &Bench) {
    for token in left_behind(&bench.settings) {
        let settings = at_hand(&bench.settings, &token);
        let lock = lock_of(&settings.data_dir);
        let folders = [settings.data_dir.clone(), settings.socket_dir.clone()];
        tracing::info!(deployment = %settings.deployment, "removing what a job by hand has left behind");
        let target = Target {
            job: 0,
            attempt: 1,
            claim: None,
        };
        let owner = job::owner(&settings, &target);
        let left = Bench {
            engine: bench.engine.clone(),
            catalog: Arc::clone(&bench.catalog),
            settings: Arc::new(settings),
        };
        job::clean_up(&left, &owner).await;
        if !matches!(
            bench.engine.inspect(&owner.name()).await,
            Err(EngineError::NoSuchContainer)
        ) {
            continue;
        }
        for folder in &folders {
            match std::fs::remove_dir_all(folder) {
                Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(%fault, folder = %folder.display(), "a folder of a job by hand could not be removed");
                }
                _ => {}
            }
        }
        // Last: while it is there, the rest is looked for again.
        let _ = std::fs::remove_file(lock);
    }
}

/// The words of jobs by hand that have a folder or a lock here and no process.
fn left_behind(settings: &Settings) -> BTreeSet<String> {
    let entries = std::fs::read_dir(&settings.data_dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let token = name.to_str()?.strip_prefix(&prefix())?;
            let token = token.strip_suffix(".lock").unwrap_or(token).to_owned();
            let lock = lock_of(&at_hand(settings, &token).data_dir);
            match File::open(lock) {
                Ok(file) => file.try_lock().is_ok().then_some(token),
                // Of a version that knew no locks, or removed by hand.
                Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Some(token),
                Err(_) => None,
            }
        })
        .collect()
}

async fn run(
    job: &JobByHand,
    bench: &Bench,
    plan: Plan,
    show: Show,
    switch: &Switch,
) -> Result<HandReport, ByHandError> {
    let ledger = Arc::new(Ledger::memory(Memory::new(show), switch.clone()));
    let ground = Ground::Hand {
        workspace: job.workspace.clone(),
        prompt: job.prompt.clone(),
    };
    let admitted = match gates::admit_by_hand(&bench.engine, &bench.catalog, &ledger, plan, ground).await {
        Ok(admitted) => admitted,
        Err(No::Refused { reason, detail } | No::Waits { reason, detail, .. }) => {
            let spend = Spend::default();
            return Ok(HandReport {
                outcome: Outcome::Refused,
                reason,
                detail,
                answers: Vec::new(),
                spend,
            });
        }
    };
    let target = Target {
        job: ledger.job(),
        attempt: ledger.attempt(),
        claim: None,
    };
    let owner: Owner = job::owner(&bench.settings, &target);
    let ran = job::in_the_box(bench, None, &ledger, &admitted, &target).await;
    if ran.is_err() {
        job::kill_until_dead(&bench.engine, &owner.name()).await;
    }
    job::clean_up(bench, &owner).await;
    let ran = ran?;

    let spend = ledger.spend().await.unwrap_or_default();
    let verdict = outcome::decide(&Ended {
        exit: ran.exit,
        cause: switch.cause(),
        told: &ran.told,
        expected: &ran.expected,
        forwarded: spend.requests > 0,
        attempts_left: false,
    });
    let (outcome, reason, detail) = match verdict {
        Verdict::Finish {
            outcome,
            reason,
            detail,
        } => (outcome, reason, detail),
        // There are no attempts by hand.
        Verdict::Again { reason, detail } => (Outcome::Failed, reason, detail),
    };
    let mut answers = ledger.comments().await.unwrap_or_default();
    if answers.is_empty() {
        answers.extend(
            ran.told
                .result
                .map(|result| result.reply)
                .filter(|reply| !reply.trim().is_empty()),
        );
    }
    Ok(HandReport {
        outcome,
        reason,
        detail: detail.unwrap_or_default(),
        answers,
        spend,
    })
}
