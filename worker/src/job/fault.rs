//! What keeps a job from its end, and what becomes of it then.

use contract::StopReason;
use queue::{Outcome, Reason};

use crate::{container::EngineError, jobdir::JobDirError, repo::GitError, stop::StopCause};

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
    pub(super) fn refuses(&self) -> Option<Reason> {
        match self {
            Self::Engine(EngineError::Differs(_)) => Some(Reason::ContainerDiffers),
            Self::JobDir(JobDirError::TooLarge { .. }) | Self::Git(GitError::TooLarge(_)) => Some(Reason::JobTooLarge),
            _ => None,
        }
    }

    /// How the job ends when it is not tried again.
    pub(super) fn outcome(&self) -> (Outcome, Reason) {
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
