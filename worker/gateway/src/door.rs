//! The door of one job: makes the directory and its two sockets, and serves them until it is closed.

use std::{
    collections::BTreeSet,
    fmt, io,
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::Duration,
};

use contract::{
    StopReason,
    paths::{CONTROL_SOCKET_NAME, MODEL_SOCKET_NAME},
};
use tokio::{
    net::UnixListener,
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::sleep,
};
use tokio_util::sync::DropGuard;

use crate::{Host, ModelGrant, Socket, control, dir::SocketDir, model, shared::Shared, upstream::Upstream};

/// What a door must know about its job.
#[derive(Debug, Clone)]
pub struct DoorSpec {
    /// The job's directory; it becomes `/run/pi-dispatch` in the container. Its parent must exist, belong to this process's user and be closed
    /// to everybody else (0700). The directory is made when it is not there; an existing one must be a directory of ours, never a link.
    pub dir: PathBuf,
    /// The job's id.
    pub job: i64,
    /// The attempt.
    pub attempt: i32,
    /// The model, its prices and where it is reached.
    pub grant: ModelGrant,
    /// Every name that a request may offer: the active tools of this job, the bridge's included.
    pub allowed_tools: BTreeSet<String>,
    /// The excluded names. One of them in a request is a breach, not just a refusal.
    pub excluded: BTreeSet<String>,
    /// Sizes and counts.
    pub caps: Caps,
    /// How long is waited.
    pub timeouts: Timeouts,
}

/// What the door counts itself. Money and tokens are counted by [`Host::reserve`].
#[derive(Debug, Clone)]
pub struct Caps {
    /// Model requests that may be let through in all, whatever became of them.
    pub requests: u64,
    /// Model requests at the same time; further ones are answered 429, which pi tries again.
    pub parallel: usize,
    /// Bytes of one request's body.
    pub body_bytes: usize,
    /// Bytes of one response.
    pub response_bytes: usize,
    /// The most output tokens that one request may ask for; the model's own limit when that is smaller.
    pub output_tokens: u64,
    /// Bytes of one line on the control socket.
    pub control_line_bytes: usize,
    /// Connections at the same time, both sockets together.
    pub connections: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            requests: 1_000,
            parallel: 8,
            body_bytes: 32 * 1024 * 1024,
            response_bytes: 32 * 1024 * 1024,
            output_tokens: 64_000,
            control_line_bytes: contract::limits::CONTROL_LINE,
            connections: 64,
        }
    }
}

/// How long the door waits.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// For [`Door::expect_pid`], counted from the connection.
    pub pid: Duration,
    /// For the control connection, when a model request comes before it (after an adoption).
    pub control: Duration,
    /// Without a line from the runner, before [`crate::DoorEvent::ControlSilent`].
    pub heartbeat: Duration,
    /// For a whole request to arrive.
    pub request: Duration,
    /// For the connection to the provider.
    pub connect: Duration,
    /// For the provider's first byte.
    pub first_byte: Duration,
    /// Between two pieces of the provider's answer.
    pub silence: Duration,
    /// For one answer of the provider in all.
    pub response: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            pid: Duration::from_secs(15),
            control: Duration::from_secs(15),
            heartbeat: Duration::from_secs(45),
            request: Duration::from_secs(60),
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(120),
            response: Duration::from_secs(1_800),
        }
    }
}

/// Why a door could not be made. Nothing is served then.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The parent is missing, not ours, or open to others.
    #[error("the folder above the job's sockets is not private: {0}")]
    ParentNotPrivate(String),
    /// Something that is not a folder of ours stands where the directory should be.
    #[error("the job's socket folder cannot be used: {0}")]
    Directory(String),
    /// The system refused.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The HTTP client could not be made (no usable TLS roots, a provider address that is neither `https` nor loopback).
    #[error("the provider cannot be reached safely: {0}")]
    Upstream(String),
}

/// A running door. Dropping it shuts it at once; [`Door::close`] also waits until the last event was handed to the host.
pub struct Door {
    shared: Arc<Shared>,
    dir: SocketDir,
    events: JoinHandle<()>,
    closing: DropGuard,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door")
            .field("job", &self.shared.spec.job)
            .field("attempt", &self.shared.spec.attempt)
            .finish()
    }
}

impl Door {
    /// Makes the directory (0711) and the sockets (0666) and serves them. Connections wait for [`Door::expect_pid`].
    ///
    /// On a directory that already exists (the worker was restarted and adopts the container) stale sockets are removed and bound anew.
    pub async fn open(spec: DoorSpec, host: Arc<dyn Host>) -> Result<Self, DoorError> {
        let affinity = format!("pi-dispatch-{}-{}", spec.job, spec.attempt);
        let upstream = Upstream::new(&spec.grant, &spec.timeouts, &affinity).map_err(DoorError::Upstream)?;
        let dir = SocketDir::open(&spec.dir)?;
        let model = dir.bind(MODEL_SOCKET_NAME)?;
        let control = dir.bind(CONTROL_SOCKET_NAME)?;

        let (tell, mut told) = mpsc::channel(256);
        let events = tokio::spawn({
            let host = Arc::clone(&host);
            async move {
                while let Some(event) = told.recv().await {
                    host.event(event).await;
                }
            }
        });
        let shared = Shared::new(spec, host, upstream, tell);
        shared.tasks.spawn(accept(Arc::clone(&shared), Socket::Model, model));
        shared
            .tasks
            .spawn(accept(Arc::clone(&shared), Socket::Control, control));
        let closing = shared.closing.clone().drop_guard();
        Ok(Self {
            shared,
            dir,
            events,
            closing,
        })
    }

    /// Says which process on the host is the container's first: Docker's `State.Pid`. Everybody else is turned away.
    pub fn expect_pid(&self, pid: i32) {
        self.shared.pid.send_replace(Some(pid));
    }

    /// Tells the runner to stop, now or as soon as it connects; model requests are refused from here on. The first reason stays.
    pub fn stop(&self, reason: StopReason) {
        self.shared.stop(reason);
    }

    /// How long ago the runner's last line came; `None` while there is no control connection.
    pub fn heard(&self) -> Option<Duration> {
        self.shared
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .map(|when| when.elapsed())
    }

    /// Shuts both sockets, ends the requests in flight (their worst case stays charged), hands the last events over and removes the sockets.
    pub async fn close(self) {
        let Self {
            shared,
            dir,
            events,
            closing,
        } = self;
        drop(closing);
        shared.tasks.close();
        shared.tasks.wait().await;
        for name in [MODEL_SOCKET_NAME, CONTROL_SOCKET_NAME] {
            // A name that stays behind goes with the directory.
            _ = dir.remove(name);
        }
        // The last holder of the events' sending end: the reader below comes to its end.
        drop(shared);
        _ = events.await;
    }
}

/// Takes connections until the door closes. Only the container's first process is served.
async fn accept(shared: Arc<Shared>, socket: Socket, listener: UnixListener) {
    let living = Arc::new(Semaphore::new(1));
    loop {
        let accepted = tokio::select! {
            () = shared.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, perhaps: wait, so that the loop does not spin.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let Ok(place) = Arc::clone(&shared.connections).try_acquire_owned() else {
            shared.turned_away(socket, pid, "too-many-connections").await;
            continue;
        };
        let (shared, living) = (Arc::clone(&shared), Arc::clone(&living));
        shared.tasks.clone().spawn(async move {
            let _place = place;
            let expected = tokio::select! {
                () = shared.closing.cancelled() => return,
                expected = shared.expected_pid() => expected,
            };
            match (expected, pid) {
                (Some(expected), Some(pid)) if expected == pid => match socket {
                    Socket::Model => model::serve(&shared, stream).await,
                    Socket::Control => control::serve(&shared, &living, stream, pid).await,
                },
                (Some(_), _) => shared.turned_away(socket, pid, "not-the-runner").await,
                (None, _) => shared.turned_away(socket, pid, "runner-unknown").await,
            }
        });
    }
}
