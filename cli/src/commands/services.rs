//! `receiver`, `worker`, `admin`: the three services, each in a process of its own.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

use super::serve::stop_signal;
use crate::open::{self, Database};
use crate::{Context, environment::Environment};

/// Arguments of `worker`.
#[derive(Args)]
pub struct Worker {}

/// Log lines to standard error: words for a terminal, JSON for everything else.
fn start_log(environment: &Environment) -> anyhow::Result<()> {
    use std::io::IsTerminal as _;
    let words = environment.get("PI_DISPATCH_LOG").unwrap_or("info");
    let filter = EnvFilter::try_new(format!("warn,{}", ours(words)))
        .with_context(|| format!("PI_DISPATCH_LOG: `{words}` is not a log level or filter"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        log.with_target(false).init();
    } else {
        log.json().flatten_event(true).init();
    }
    Ok(())
}

/// A single level speaks of our own crates; anything else is a filter in tracing's language.
fn ours(words: &str) -> String {
    if !["error", "warn", "info", "debug", "trace"].contains(&words) {
        return words.to_owned();
    }
    [
        "pi_dispatch",
        "receiver",
        "worker",
        "gateway",
        "admin",
        "queue",
        "forges",
        "triggers",
    ]
    .map(|name| format!("{name}={words}"))
    .join(",")
}

/// Runs the receiver until it is told to end.
pub async fn receiver(context: &Context) -> anyhow::Result<ExitCode> {
    start_log(&context.environment)?;
    let config = context.config()?;
    let hooks = open::hooks(&config, context)?;
    let database = Database::open_current(&config, "receiver").await?;
    let settings = receiver::Settings {
        max_body: usize::try_from(config.receiver.max_body).unwrap_or(usize::MAX),
        ..receiver::Settings::default()
    };
    let receiver = receiver::Receiver::new(database.queue.clone(), hooks, settings)?;
    let listener = listen(config.receiver.listen, "receiver.listen").await?;
    tracing::info!(address = %config.receiver.listen, forges = config.forges.len(), "receiver is ready");
    receiver.serve(listener, stop_signal()).await?;
    database.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the panel until it is told to end.
pub async fn admin(context: &Context) -> anyhow::Result<ExitCode> {
    start_log(&context.environment)?;
    let config = context.config()?;
    let database = Database::open_current(&config, "admin").await?;
    let settings = admin::Settings {
        public_url: config
            .public_url
            .as_ref()
            .map(|url| url.as_str().trim_end_matches('/').to_owned()),
        default_image: config.worker.image.clone(),
    };
    let listener = listen(config.admin_listen, "admin.listen").await?;
    tracing::info!(address = %config.admin_listen, "panel is ready");
    admin::Admin::new(database.queue.clone(), settings)
        .serve(listener, stop_signal())
        .await?;
    database.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn listen(address: std::net::SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{key} = \"{address}\" cannot be listened on"))
}

impl Worker {
    /// Runs a worker until it is told to end.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        start_log(&context.environment)?;
        let config = context.config()?;
        open::make_data_dir(&config.data_dir)?;
        let database = Database::open_current(&config, "worker").await?;
        let deps = open::worker(&config, context, database.queue.clone())?;
        worker::run(deps, stop_signal()).await?;
        database.close().await?;
        Ok(ExitCode::SUCCESS)
    }
}
