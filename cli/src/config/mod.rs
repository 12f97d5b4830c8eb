//! The configuration: `pi-dispatch.toml`, then the environment, then the defaults; read once, checked whole.
//!
//! Sizes are bytes, money is micro-dollars. Every value remembers where it came from ([`Origin`]), and
//! `pi-dispatch config` prints that. Secrets are places ([`secret::SecretPlace`]) until the one service that needs them opens them.
//!
//! Fails with [`Faults`]: all of them at once, each with its line and what is allowed.
//!
//! Source: `docs/configuration.md`.

mod build;
mod fault;
pub mod keys;
mod read;
pub mod secret;
mod show;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use fault::{Fault, Faults};
use secret::SecretPlace;
pub use show::Shown;
use url::Url;
use worker::trusted_path;

use crate::environment::Environment;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file.
    File {
        /// Counted from one.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// Nobody said anything.
    Default,
}

/// Everything that was configured.
#[derive(Debug)]
pub struct Config {
    /// The file that was read, `None` when there is none.
    pub file: Option<PathBuf>,
    /// Where pi-dispatch keeps what is its own; absolute.
    pub data_dir: PathBuf,
    /// Address of the panel as people reach it.
    pub public_url: Option<Url>,
    /// URL of PostgreSQL from the environment; `None`: a private one under `data_dir`.
    pub database_url: Option<secrecy::SecretString>,
    /// The HTTP edge.
    pub receiver: ReceiverConfig,
    /// Address of the panel.
    pub admin_listen: SocketAddr,
    /// The worker.
    pub worker: WorkerConfig,
    /// The forges, in the order of the file.
    pub forges: Vec<ForgeConfig>,
    /// Caps.
    pub limits: Limits,
    /// Model providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Every value in force, for `pi-dispatch config`.
    pub shown: Vec<Shown>,
}

/// `[receiver]`.
#[derive(Debug)]
pub struct ReceiverConfig {
    /// Address of the hooks.
    pub listen: SocketAddr,
    /// Largest body in bytes.
    pub max_body: u64,
}

/// `[worker]`.
#[derive(Debug)]
pub struct WorkerConfig {
    /// Name in rows and labels; `None`: the host's name.
    pub name: Option<String>,
    /// Jobs at the same time.
    pub slots: u32,
    /// The triggers file; absolute.
    pub triggers: PathBuf,
    /// Job image for triggers that name none.
    pub image: String,
    /// The operator's overlay; absolute.
    pub overlay: Option<PathBuf>,
    /// Provider for triggers that name none.
    pub provider: Option<String>,
    /// Model for triggers that name none.
    pub model: Option<String>,
    /// Docker's socket.
    pub docker: String,
    /// User id inside the container.
    pub job_uid: u32,
    /// Bytes of memory of a job.
    pub memory: u64,
    /// Processors of a job, in thousandths.
    pub millicpus: u32,
    /// Processes of a job.
    pub pids: u32,
    /// Largest workspace in bytes.
    pub workspace: u64,
    /// Floor of free disk in bytes.
    pub free_disk: u64,
    /// OCI runtime.
    pub runtime: Option<String>,
}

/// One `[[forges]]`.
#[derive(Debug)]
pub struct ForgeConfig {
    /// Name; its hook is `/hooks/NAME`.
    pub name: String,
    /// Which program it is.
    pub kind: forges::ForgeKind,
    /// Base address.
    pub url: Url,
    /// Globs on `owner/name`.
    pub repositories: Vec<String>,
    /// Numeric id of our own account.
    pub account_id: Option<i64>,
    /// Token of our own account.
    pub token: Option<SecretPlace>,
    /// Token that may ask who may write.
    pub permission_token: Option<SecretPlace>,
    /// Ids that may start jobs without being looked up.
    pub allow_users: Vec<i64>,
    /// Secrets of the hook.
    pub webhook_secrets: Vec<SecretPlace>,
}

/// `[limits]`. `None` is no cap of that kind.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Turns of a run.
    pub run_turns: u32,
    /// Tokens of a run.
    pub run_tokens: u64,
    /// Micro-dollars of a run.
    pub run_cost_micros: i64,
    /// Minutes of a run.
    pub run_minutes: u32,
    /// Tokens of a UTC day.
    pub day_tokens: Option<u64>,
    /// Micro-dollars of a UTC day.
    pub day_cost_micros: Option<i64>,
}

/// One `[providers.NAME]`.
#[derive(Debug)]
pub struct ProviderConfig {
    /// Its key.
    pub key: Option<SecretPlace>,
    /// API shape; absent for providers that pi knows.
    pub api: Option<String>,
    /// Endpoint.
    pub base_url: Option<Url>,
    /// Models as JSON, for `gateway::providers`.
    pub models: Vec<serde_json::Value>,
}

/// Reads the file (it may be absent), the environment and the defaults.
pub fn load(file: &Path, environment: &Environment) -> Result<Config, Faults> {
    let text = match std::fs::read(file) {
        Ok(bytes) => {
            trusted_path::check(file, contract::JOB_USER).map_err(|reason| Faults::one(file, reason.to_string()))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                let line = error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
                Faults::one(file, format!("line {line} is not UTF-8 text"))
            })?;
            Some(text)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Faults::one(file, format!("it cannot be read: {error}"))),
    };
    let (values, mut faults) = read::values(text.as_deref().unwrap_or(""), environment);
    let folder = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).map_err(|error| Faults::one(file, format!("its folder: {error}")))?;
    let config = build::build(
        values,
        &folder,
        text.is_some().then(|| file.to_path_buf()),
        environment,
        &mut faults,
    );
    match config {
        Some(config) if faults.is_empty() => {
            // The file itself may name another user for jobs; whoever that is must not own the file either.
            if text.is_some() {
                trusted_path::check(file, config.worker.job_uid)
                    .map_err(|reason| Faults::one(file, reason.to_string()))?;
            }
            Ok(config)
        }
        _ => Err(Faults::new(file, faults)),
    }
}

#[cfg(test)]
mod tests;
