//! `pi-dispatch serve`: the three services as three processes of this same program.
//!
//! Each gets the same configuration file and opens only the secrets that are its own. When one ends, the others are
//! stopped and the program ends with an error: a service manager starts the whole again, and nobody limps.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::{Context, open};

/// The services, in the order in which they start and end.
const NAMES: [&str; 3] = ["receiver", "worker", "admin"];
/// How long a service may take to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// Arguments of `serve`.
#[derive(Args)]
pub struct Serve {}

/// The three services, running.
pub struct Services(Vec<(&'static str, Child)>);

impl Serve {
    /// Runs until Ctrl-C, SIGTERM, or the end of one of the three.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        // Read once here so that a mistake is told once and not by three processes.
        open::addresses_are_free(&context.config()?)?;
        let mut services = Services::start(context, None)?;
        let ended = tokio::select! {
            () = stop_signal() => None,
            name = services.first_end() => Some(name),
        };
        services.stop().await;
        match ended {
            None => Ok(ExitCode::SUCCESS),
            Some(name) => anyhow::bail!("the {name} ended by itself; the other services were stopped"),
        }
    }
}

/// Ends when somebody wants the program to end.
pub async fn stop_signal() {
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            eprintln!("SIGTERM cannot be listened to ({error}); Ctrl-C still works");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

impl Services {
    /// Starts the three services as processes of this program. Their log goes to a file, or to our standard error.
    pub fn start(context: &Context, log: Option<&Path>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program's own path")?;
        let mut services = Self(Vec::new());
        for name in NAMES {
            let log = match log {
                Some(path) => Stdio::from(OpenOptions::new().create(true).append(true).open(path)?),
                None => Stdio::inherit(),
            };
            let child = Command::new(&program)
                .arg("--config")
                .arg(&context.config_file)
                .arg("--ends-with")
                .arg(std::process::id().to_string())
                .arg(name)
                .stdin(Stdio::null())
                .stderr(log)
                // A group of its own: Ctrl-C reaches us alone, and we end the three in order.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .with_context(|| format!("the {name} could not be started"))?;
            services.0.push((name, child));
        }
        Ok(services)
    }

    /// The name of the first service that ends.
    pub async fn first_end(&mut self) -> &'static str {
        let ends = self.0.iter_mut().map(|(name, child)| {
            Box::pin(async move {
                let _ = child.wait().await;
                *name
            })
        });
        futures_util::future::select_all(ends).await.0
    }

    /// Asks each to end, receiver first so that nothing new comes in; kills what does not.
    pub async fn stop(mut self) {
        for (_, child) in &self.0 {
            if let Some(pid) = child
                .id()
                .and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
        for (name, child) in &mut self.0 {
            if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                eprintln!("the {name} did not end within {} s and is killed", GRACE.as_secs());
                let _ = child.kill().await;
            }
        }
    }
}
