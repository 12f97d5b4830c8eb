//! The HTTP edge: verifies a delivery, stores it, answers.
//!
//! It knows nothing of triggers and asks nobody but PostgreSQL. No 2xx leaves before the commit; what cannot be made
//! durable is answered with 503. It opens the secrets of its hooks and nothing else.
//!
//! Fails with [`SetupError`] before it listens; what a sender does wrong is an answer (`hook`), not a failure.

use std::future::Future;
use std::time::Duration;

use axum::Router;
use forges::ForgeKind;
use queue::Queue;
use secrecy::SecretString;
use tokio::net::TcpListener;

/// One hook: the forge of that name, and who may sign for it.
#[derive(Debug, Clone)]
pub struct HookDoor {
    /// The forge's name in the configuration; the hook is `/hooks/NAME`.
    pub name: String,
    /// Its software.
    pub kind: ForgeKind,
    /// The webhook secrets, at least one; several while one is being changed.
    pub secrets: Vec<SecretString>,
}

/// Limits of the edge.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The largest body that is taken, in bytes.
    pub max_body: usize,
    /// How long a sender may take for one whole request.
    pub body_timeout: Duration,
    /// How long PostgreSQL may take to store a delivery before the answer is 503.
    pub store_timeout: Duration,
    /// How many bytes of large bodies may be in flight at once, over all connections.
    pub large_in_flight: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_body: 25 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            store_timeout: Duration::from_secs(3),
            large_in_flight: 64 * 1024 * 1024,
        }
    }
}

/// Why the receiver does not start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No forge at all.
    #[error("no forge is configured: there is nobody to receive from")]
    NoForge,
    /// A hook that could not tell a forgery from a delivery.
    #[error(
        "forge `{0}` has no webhook secret: without one anybody could send deliveries, so the receiver does not start"
    )]
    NoSecret(String),
    /// A secret that is an empty file or variable.
    #[error("forge `{0}` has an empty webhook secret: the receiver does not start")]
    EmptySecret(String),
    /// Two forges of one name.
    #[error("two forges are named `{0}`")]
    SameName(String),
}

/// The receiving service.
#[derive(Debug, Clone)]
pub struct Receiver {}

impl Receiver {
    /// Checks the hooks. Connects to nothing.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(_queue: Queue, _doors: Vec<HookDoor>, _settings: Settings) -> Result<Self, SetupError> {
        todo!()
    }

    /// The routes `/hooks/{name}`, `/health`, `/ready`.
    pub fn router(&self) -> Router {
        todo!()
    }

    /// Serves until `shutdown` is ready, then lets open requests end.
    ///
    /// # Errors
    /// Only when the listener itself fails.
    pub async fn serve(
        self,
        _listener: TcpListener,
        _shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        todo!()
    }
}
