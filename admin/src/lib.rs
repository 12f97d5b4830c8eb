//! The web panel and its JSON API over the queue.
//!
//! It reads rows and writes wishes (a stop, a pause, a replay) as rows; it changes nothing that a job may do, opens no token
//! and talks to nobody but PostgreSQL. Each page is one loader with two faces: HTML at its address, JSON at the same address
//! below `/api`. Everything that a stranger wrote is shown as plain text with its hidden characters made visible.
//!
//! What goes wrong is a `error::PageError` with its status code beside it.

mod error;
mod live;
mod pages;
pub mod password;
mod people;
mod shell;
mod show;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use queue::Queue;
use tokio::net::TcpListener;
use tower_http::csrf::CsrfLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

use crate::people::Attempts;

/// Nothing but our own files: no inline script, no inline style, no frame, no other host.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// A page that takes longer is given up; live logs are not pages.
const PATIENCE: Duration = Duration::from_secs(15);

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
    pub(crate) queue: Queue,
    pub(crate) settings: Arc<Settings>,
    pub(crate) attempts: Attempts,
    pub(crate) streams: Arc<tokio::sync::Semaphore>,
}

impl Admin {
    /// The panel over that queue.
    #[must_use]
    pub fn new(queue: Queue, settings: Settings) -> Self {
        let streams = Arc::new(tokio::sync::Semaphore::new(live::STREAMS));
        Self {
            queue,
            settings: Arc::new(settings),
            attempts: Attempts::default(),
            streams,
        }
    }

    /// All its routes.
    pub fn router(&self) -> Router {
        let pages = Router::new()
            .route("/", get(pages::overview::html))
            .route("/api/overview", get(pages::overview::json))
            .route("/triggers", get(pages::triggers::html))
            .route("/api/triggers", get(pages::triggers::json))
            .route("/triggers/{id}", get(pages::trigger::html))
            .route("/api/triggers/{id}", get(pages::trigger::json))
            .route("/runs", get(pages::runs::html))
            .route("/api/runs", get(pages::runs::json))
            .route("/runs/{job}", get(pages::run::html))
            .route("/api/runs/{job}", get(pages::run::json))
            .route("/api/runs/{job}/log", get(pages::run::log))
            .route("/runs/{job}/stop", post(pages::actions::stop))
            .route("/deliveries", get(pages::deliveries::html))
            .route("/api/deliveries", get(pages::deliveries::json))
            .route("/deliveries/{id}", get(pages::delivery::html))
            .route("/api/deliveries/{id}", get(pages::delivery::json))
            .route("/deliveries/{id}/replay", post(pages::actions::replay))
            .route("/workers", get(pages::workers::html))
            .route("/api/workers", get(pages::workers::json))
            .route("/pause", post(pages::actions::pause))
            .route("/resume", post(pages::actions::resume))
            .route("/sign-in", get(people::form).post(people::sign_in))
            .route("/sign-out", post(people::sign_out))
            .route("/panel.css", get(shell::css))
            .route("/live.js", get(shell::script))
            .layer(TimeoutLayer::with_status_code(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                PATIENCE,
            ));
        pages
            .route("/health", get(async || "ok\n"))
            .route("/runs/{job}/live", get(live::log))
            .fallback(async || error::PageError::NoPage.into_response())
            .layer(DefaultBodyLimit::max(64 * 1024))
            .layer(CsrfLayer::new())
            .layer(header(CONTENT_SECURITY_POLICY, POLICY))
            .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .layer(header(X_FRAME_OPTIONS, "DENY"))
            .layer(header(REFERRER_POLICY, "same-origin"))
            .layer(header(CACHE_CONTROL, "no-store"))
            .with_state(self.clone())
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
        // Live logs would hold a graceful end open for ever: they are closed first.
        let streams = self.streams.clone();
        let shutdown = async move {
            shutdown.await;
            streams.close();
        };
        axum::serve(listener, self.router())
            .with_graceful_shutdown(shutdown)
            .await
    }
}

/// Sets a header unless the answer has its own.
fn header(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}
