//! The web panel and its JSON API over the queue.
//!
//! It reads rows and writes wishes (a stop, a pause, a replay) as rows; it changes nothing that a job may do, opens no token
//! and talks to nobody but PostgreSQL.

pub mod password;

use std::future::Future;

use axum::Router;
use queue::Queue;
use tokio::net::TcpListener;

/// What the panel is told.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Its address as people reach it, without a slash at the end. Cookies are `Secure` when it is https.
    pub public_url: Option<String>,
    /// The image of triggers that name none.
    pub default_image: String,
}

/// The panel.
#[derive(Debug, Clone)]
pub struct Admin {
    queue: Queue,
    settings: Settings,
}

impl Admin {
    /// The panel over that queue.
    #[must_use]
    pub fn new(queue: Queue, settings: Settings) -> Self {
        Self { queue, settings }
    }

    /// All its routes.
    pub fn router(&self) -> Router {
        let _ = (&self.queue, &self.settings);
        todo!()
    }

    /// Serves until `shutdown` is ready.
    ///
    /// # Errors
    /// Only when the listener itself fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        axum::serve(listener, self.router()).with_graceful_shutdown(shutdown).await
    }
}
