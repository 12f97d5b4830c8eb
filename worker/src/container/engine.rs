//! The few things that the worker says to Docker.

use std::{collections::HashMap, time::Duration};

use bollard::{
    Docker,
    container::LogOutput,
    models::{ContainerCreateBody, ContainerInspectResponse},
    query_parameters::{
        CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
        RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
    },
};
use contract::labels;
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;

use super::{Ask, Owner, compare::differences};

/// How long Docker may take for one answer that is not a stream.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why Docker did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It is away, slow or broken: wait and try again.
    #[error("docker does not answer: {0}")]
    Unavailable(String),
    /// There is no such container (any more).
    #[error("there is no such container")]
    NoSuchContainer,
    /// There is no such image: the job goes where it is, or is refused.
    #[error("there is no such image on this host")]
    NoSuchImage,
    /// It made another container than was asked for. That container was removed and never started.
    #[error("docker made another container than was asked for: {}", .0.join("; "))]
    Differs(Vec<String>),
    /// It said no.
    #[error("docker refused ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Docker's sentence.
        message: String,
    },
}

/// An image as the host has it.
#[derive(Debug, Clone, Default)]
pub struct SeenImage {
    /// Its id, which is what runs.
    pub id: String,
    /// Its labels.
    pub labels: HashMap<String, String>,
    /// Its environment, `NAME=value`.
    pub env: Vec<String>,
    /// Paths that it declares as volumes.
    pub volumes: Vec<String>,
}

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code of PID 1; 137 when it was killed.
    pub code: i64,
    /// The kernel took something of it for lack of memory.
    pub out_of_memory: bool,
}

/// A container of this deployment.
#[derive(Debug, Clone)]
pub struct Ours {
    /// Docker's id.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
}

/// The engine, reached through its socket.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(super) docker: Docker,
}

impl Engine {
    /// Wraps a connection.
    #[must_use]
    pub fn new(docker: Docker) -> Self {
        Self { docker }
    }

    /// Its version, asked over the wire: also the proof that it is there.
    pub async fn version(&self) -> Result<String, EngineError> {
        let version = patient(self.docker.version()).await?;
        Ok(version.version.unwrap_or_default())
    }

    /// Looks at an image by tag or id; never pulls. `None` when the host does not have it.
    pub async fn image(&self, name: &str) -> Result<Option<SeenImage>, EngineError> {
        let seen = match patient(self.docker.inspect_image(name)).await {
            Ok(seen) => seen,
            Err(EngineError::NoSuchContainer) => return Ok(None),
            Err(other) => return Err(other),
        };
        let config = seen.config.unwrap_or_default();
        Ok(Some(SeenImage {
            id: seen.id.unwrap_or_default(),
            labels: config.labels.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
            volumes: config.volumes.unwrap_or_default(),
        }))
    }

    /// Creates the container and compares it with what was asked. It is removed again when it differs.
    pub async fn create(&self, ask: &Ask) -> Result<String, EngineError> {
        let name = ask.owner.name();
        let id = match self.create_named(&name, ask).await {
            // Only the holder of (job, attempt) makes this name: what stands there is its own broken start.
            Err(EngineError::Refused { status: 409, .. }) => {
                self.remove(&name).await?;
                self.create_named(&name, ask).await?
            }
            other => other?,
        };
        let made = self.inspect(&id).await?;
        let differences = differences(ask, &made);
        if differences.is_empty() {
            return Ok(id);
        }
        self.remove(&id).await?;
        Err(EngineError::Differs(differences))
    }

    async fn create_named(&self, name: &str, ask: &Ask) -> Result<String, EngineError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        match patient(self.docker.create_container(Some(options), ask.body())).await {
            Ok(made) => Ok(made.id),
            Err(EngineError::NoSuchContainer) => Err(EngineError::NoSuchImage),
            Err(other) => Err(other),
        }
    }

    /// Creates, starts and waits for a container of our own; gives its exit code. Removing it is the caller's.
    pub(super) async fn run_once(&self, name: &str, body: ContainerCreateBody) -> Result<i64, EngineError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        patient(self.docker.create_container(Some(options), body)).await?;
        patient(self.docker.start_container(name, None)).await?;
        Ok(self.wait(name).await?.code)
    }

    /// Starts it and says the process id of its PID 1 on the host.
    pub async fn start(&self, id: &str) -> Result<i32, EngineError> {
        patient(self.docker.start_container(id, None)).await?;
        self.pid(id).await
    }

    /// The process id of its PID 1 on the host; 0 when it does not run.
    pub async fn pid(&self, id: &str) -> Result<i32, EngineError> {
        let state = self.inspect(id).await?.state.unwrap_or_default();
        Ok(state.pid.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0))
    }

    /// All that Docker says of it.
    pub async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, EngineError> {
        patient(self.docker.inspect_container(id, None)).await
    }

    /// Its output from the first line on, each piece with Docker's time stamp, until it ends.
    pub fn logs(&self, id: &str) -> impl Stream<Item = Result<LogOutput, EngineError>> + Send + use<> {
        let options = LogsOptionsBuilder::default()
            .follow(true)
            .stdout(true)
            .stderr(true)
            .timestamps(true)
            .build();
        self.docker
            .logs(id, Some(options))
            .map(|piece| piece.map_err(|fault| EngineError::from(&fault)))
    }

    /// Waits for its end, however long that takes; an engine that went away meanwhile is an error to be repeated.
    pub async fn wait(&self, id: &str) -> Result<Exit, EngineError> {
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        let mut ends = Box::pin(self.docker.wait_container(id, Some(options)));
        match ends.next().await {
            Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. })) => {}
            Some(Err(fault)) => return Err(EngineError::from(&fault)),
            None => return Err(EngineError::Unavailable("the wait ended without an answer".to_owned())),
        }
        let state = self.inspect(id).await?.state.unwrap_or_default();
        Ok(Exit {
            code: state.exit_code.unwrap_or(-1),
            out_of_memory: state.oom_killed.unwrap_or_default(),
        })
    }

    /// Kills it. One that does not run or is not there is what was wanted.
    pub async fn kill(&self, id: &str) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
        match patient(self.docker.kill_container(id, Some(options))).await {
            Ok(()) | Err(EngineError::NoSuchContainer | EngineError::Refused { status: 409, .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Removes it with whatever still runs in it, and looks that it is gone.
    pub async fn remove(&self, id: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match patient(self.docker.remove_container(id, Some(options))).await {
            // 409: a removal is under way already.
            Ok(()) | Err(EngineError::NoSuchContainer | EngineError::Refused { status: 409, .. }) => {}
            Err(other) => return Err(other),
        }
        for _ in 0..50 {
            match self.inspect(id).await {
                Err(EngineError::NoSuchContainer) => return Ok(()),
                Err(other) => return Err(other),
                Ok(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        Err(EngineError::Unavailable(
            "a removed container is still there".to_owned(),
        ))
    }

    /// All containers of a deployment, those included that were created and never started.
    pub async fn ours(&self, deployment: &str) -> Result<Vec<Ours>, EngineError> {
        let filters = HashMap::from([("label", vec![format!("{}={deployment}", labels::DEPLOYMENT)])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let found = patient(self.docker.list_containers(Some(options))).await?;
        Ok(found
            .into_iter()
            .filter_map(|one| {
                Some(Ours {
                    id: one.id?,
                    owner: Owner::of(&one.labels.unwrap_or_default())?,
                })
            })
            .collect())
    }
}

pub(super) async fn patient<T>(
    asked: impl Future<Output = Result<T, bollard::errors::Error>>,
) -> Result<T, EngineError> {
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|fault| EngineError::from(&fault)),
        Err(_) => Err(EngineError::Unavailable("no answer in time".to_owned())),
    }
}

impl From<&bollard::errors::Error> for EngineError {
    fn from(fault: &bollard::errors::Error) -> Self {
        match fault {
            bollard::errors::Error::DockerResponseServerError { status_code: 404, .. } => Self::NoSuchContainer,
            bollard::errors::Error::DockerResponseServerError { status_code, message } if *status_code < 500 => {
                Self::Refused {
                    status: *status_code,
                    message: message.clone(),
                }
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}
