//! The container of a job: what is asked of Docker, and whether Docker made exactly that.
//!
//! Every flag comes from [`Ask`], which the worker fills; an image, a trigger and a repository have no say. Docker
//! merges an image's environment, labels, volumes and stop signal into a container, so what it made is inspected and
//! compared field by field before it starts ([`differences`]); anything unexpected means that it never starts.
//!
//! Sizes are bytes. Fails with [`EngineError`], whose variants are what a caller does about it.
//!
//! Source of the facts: Docker's Engine API 1.41, tried against 20.10 (`docs/job-image.md`, "The container").

mod compare;
mod engine;
mod hands;

use std::{collections::HashMap, path::PathBuf};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountType, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use contract::{labels, paths};

pub use self::{
    compare::differences,
    engine::{Engine, EngineError, Exit, Ours, SeenImage},
};
use crate::settings::ContainerSettings;

/// The environment of every job, `PI_EXCLUDE_TOOLS` aside. An image may name these, since ours win, and no others.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", paths::HOME),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
];

/// Everything that decides what a job's container is.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The image that the gates looked at: its id (not its tag) is what runs.
    pub image: SeenImage,
    /// Whose container this is.
    pub owner: Owner,
    /// Names of excluded tools in the file's order; empty when none.
    pub excluded: Vec<String>,
    /// The four folders of the host.
    pub folders: Folders,
    /// What it may use.
    pub settings: ContainerSettings,
    /// Bytes of log that Docker may keep.
    pub log_size: u64,
}

/// Whose container this is: its labels, and by them its adoption after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The deployment's name.
    pub deployment: String,
    /// The worker's name.
    pub worker: String,
    /// The job's number.
    pub job: i64,
    /// The attempt's number.
    pub attempt: i32,
}

/// Folders of the host that the container sees.
#[derive(Debug, Clone)]
pub struct Folders {
    /// `/job`, read only.
    pub job: PathBuf,
    /// `/workspace`.
    pub workspace: PathBuf,
    /// `/session`.
    pub session: PathBuf,
    /// `/run/pi-dispatch`, read only: the directory with the sockets, so that a new socket is seen after a restart.
    pub sockets: PathBuf,
}

impl Owner {
    /// The container's name: ours to choose, never from payload text.
    #[must_use]
    pub fn name(&self) -> String {
        format!("pi-{}-{}-{}", self.deployment, self.job, self.attempt)
    }

    /// The labels that say whose it is.
    #[must_use]
    pub fn labels(&self) -> HashMap<String, String> {
        HashMap::from([
            (labels::DEPLOYMENT.to_owned(), self.deployment.clone()),
            (labels::WORKER.to_owned(), self.worker.clone()),
            (labels::JOB.to_owned(), self.job.to_string()),
            (labels::ATTEMPT.to_owned(), self.attempt.to_string()),
        ])
    }

    /// Reads [`Owner::labels`] back; `None` when they are not all there or not numbers.
    #[must_use]
    pub fn of(found: &HashMap<String, String>) -> Option<Self> {
        Some(Self {
            deployment: found.get(labels::DEPLOYMENT)?.clone(),
            worker: found.get(labels::WORKER)?.clone(),
            job: found.get(labels::JOB)?.parse().ok()?,
            attempt: found.get(labels::ATTEMPT)?.parse().ok()?,
        })
    }
}

impl Ask {
    /// The labels that the container will have: Docker merges the image's in, and ours win. The gates have refused an
    /// image that carries one of ours.
    #[must_use]
    pub fn labels(&self) -> HashMap<String, String> {
        let mut labels = self.image.labels.clone();
        labels.extend(self.owner.labels());
        labels
    }

    /// The environment, whole: what an image adds to it makes the comparison fail.
    #[must_use]
    pub fn env(&self) -> Vec<String> {
        let mut env: Vec<String> = ENVIRONMENT
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !self.excluded.is_empty() {
            env.push(format!(
                "{}={}",
                contract::EXCLUDE_TOOLS_VARIABLE,
                self.excluded.join(",")
            ));
        }
        env
    }

    /// The request that Docker gets.
    #[must_use]
    pub fn body(&self) -> ContainerCreateBody {
        let user = format!("{0}:{0}", self.settings.uid);
        ContainerCreateBody {
            hostname: Some("job".to_owned()),
            user: Some(user),
            attach_stdin: Some(false),
            attach_stdout: Some(false),
            attach_stderr: Some(false),
            tty: Some(false),
            open_stdin: Some(false),
            env: Some(self.env()),
            cmd: Some(Vec::new()),
            entrypoint: Some(vec![paths::RUNNER.to_owned()]),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            image: Some(self.image.id.clone()),
            working_dir: Some(paths::WORKSPACE.to_owned()),
            network_disabled: Some(true),
            labels: Some(self.owner.labels()),
            stop_signal: Some("SIGTERM".to_owned()),
            host_config: Some(self.host()),
            ..ContainerCreateBody::default()
        }
    }

    fn host(&self) -> HostConfig {
        let limits = &self.settings;
        HostConfig {
            network_mode: Some("none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(Vec::new()),
            // No seccomp entry: the engine's default profile is then in force.
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            privileged: Some(false),
            readonly_rootfs: Some(true),
            tmpfs: Some(self.tmpfs()),
            mounts: Some(self.mounts()),
            memory: Some(as_i64(limits.memory)),
            // The sum of memory and swap: equal means no swap.
            memory_swap: Some(as_i64(limits.memory)),
            oom_kill_disable: Some(false),
            nano_cpus: Some(as_i64(limits.nano_cpus)),
            pids_limit: Some(i64::from(limits.pids)),
            ulimits: Some(vec![
                ulimit("core", 0),
                ulimit("fsize", as_i64(limits.file_size)),
                ulimit("nofile", i64::from(limits.open_files)),
            ]),
            ipc_mode: Some("none".to_owned()),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(HashMap::from([
                    ("max-size".to_owned(), self.log_size.to_string()),
                    ("max-file".to_owned(), "1".to_owned()),
                    ("compress".to_owned(), "false".to_owned()),
                ])),
            }),
            auto_remove: Some(false),
            init: Some(false),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: Some(0),
            }),
            runtime: limits.runtime.clone(),
            publish_all_ports: Some(false),
            ..HostConfig::default()
        }
    }

    fn tmpfs(&self) -> HashMap<String, String> {
        let limits = &self.settings;
        let of = |size: u64, mode: &str| {
            format!(
                "rw,nosuid,nodev,size={size},mode={mode},uid={uid},gid={uid},nr_inodes=20000",
                uid = limits.uid
            )
        };
        HashMap::from([
            (paths::TMP.to_owned(), of(limits.tmp, "1777")),
            (paths::HOME.to_owned(), of(limits.home, "0700")),
            (paths::AGENT_DIR.to_owned(), of(limits.agent_dir, "0700")),
        ])
    }

    fn mounts(&self) -> Vec<Mount> {
        let bind = |from: &PathBuf, to: &str, read_only: bool| Mount {
            target: Some(to.to_owned()),
            source: Some(from.display().to_string()),
            typ: Some(MountType::BIND),
            read_only: Some(read_only),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..MountBindOptions::default()
            }),
            ..Mount::default()
        };
        vec![
            bind(&self.folders.job, paths::JOB, true),
            bind(&self.folders.workspace, paths::WORKSPACE, false),
            bind(&self.folders.session, paths::SESSION, false),
            bind(&self.folders.sockets, paths::SOCKETS, true),
        ]
    }
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

/// Docker's figures are signed; ours never reach the sign bit.
fn as_i64(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}
