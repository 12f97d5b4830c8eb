//! The HTTP edge: verifies a delivery, stores it, answers.
//!
//! It knows nothing of triggers and asks nobody but PostgreSQL. No 2xx leaves before the commit; what cannot be made
//! durable is answered with 503 and `Retry-After`. It opens the secrets of its hooks and nothing else, and it logs
//! neither a payload nor a header's value.
//!
//! Fails with [`SetupError`] before it listens. What a sender does wrong is an answer (`hook`), not a failure.
//!
//! Sizes are bytes. Source of the answers: `facts/forges.md`, "Delivery".

mod body;
mod health;
mod hook;
mod serve;
mod texts;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{any, get};
use forges::ForgeKind;
use queue::Queue;
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

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
    /// How long a sender may take for one whole body.
    pub body_timeout: Duration,
    /// How long PostgreSQL may take to store a delivery before the answer is 503.
    pub store_timeout: Duration,
    /// How many bytes of large bodies may be in flight at once, over all connections.
    pub large_in_flight: usize,
    /// How many connections are open at most; further ones wait in the kernel's queue.
    pub connections: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_body: 25 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            store_timeout: Duration::from_secs(3),
            large_in_flight: 64 * 1024 * 1024,
            connections: 1024,
        }
    }
}

/// Why the receiver does not start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
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
    #[error("a webhook secret of forge `{0}` is empty: the receiver does not start")]
    EmptySecret(String),
    /// Two forges of one name.
    #[error("two forges are named `{0}`")]
    SameName(String),
}

/// The receiving service. A clone shares everything.
#[derive(Debug, Clone)]
pub struct Receiver {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    doors: HashMap<String, HookDoor>,
    settings: Settings,
    /// One permit per KiB of a large body.
    large: Arc<Semaphore>,
}

impl Receiver {
    /// Checks the hooks. Connects to nothing.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(queue: Queue, doors: Vec<HookDoor>, settings: Settings) -> Result<Self, SetupError> {
        if doors.is_empty() {
            return Err(SetupError::NoForge);
        }
        let mut by_name = HashMap::new();
        for door in doors {
            if door.secrets.is_empty() {
                return Err(SetupError::NoSecret(door.name));
            }
            if door
                .secrets
                .iter()
                .any(|secret| secret.expose_secret().trim().is_empty())
            {
                return Err(SetupError::EmptySecret(door.name));
            }
            if let Some(twin) = by_name.insert(door.name.clone(), door) {
                return Err(SetupError::SameName(twin.name));
            }
        }
        let large = Arc::new(Semaphore::new(body::permits(
            settings.large_in_flight.max(settings.max_body),
        )));
        Ok(Self {
            inner: Arc::new(Inner {
                queue,
                doors: by_name,
                settings,
                large,
            }),
        })
    }

    /// The routes `/hooks/{name}`, `/health`, `/ready`.
    pub fn router(&self) -> Router {
        // `any`: an unknown forge is 404 whatever the method, so the method is looked at by the handler.
        Router::new()
            .route("/hooks/{name}", any(hook::receive))
            .route("/health", get(health::health))
            .route("/ready", get(health::ready))
            .fallback(hook::nothing_here)
            .with_state(self.clone())
    }

    /// Serves until `shutdown` is ready, then lets open requests end, for at most ten seconds.
    ///
    /// # Errors
    /// Only when the listener itself fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let connections = self.inner.settings.connections;
        serve::serve(self.router(), listener, connections, shutdown).await
    }
}
