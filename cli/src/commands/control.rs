//! `stop`, `pause`, `resume`, `migrate`: what an operator does to the whole.

use std::process::ExitCode;

use clap::Args;
use queue::{JobId, Stopped};

use crate::Context;
use crate::open::{self, Database};

/// Arguments of `stop`.
#[derive(Args)]
pub struct Stop {
    /// The job's number; or --all
    #[arg(required_unless_present = "all")]
    job: Option<i64>,
    /// Every job that runs or waits
    #[arg(long, conflicts_with = "job")]
    all: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Arguments of `pause`.
#[derive(Args)]
pub struct Pause {}

/// Who does it, for the audit.
pub fn who() -> String {
    format!("cli:uid-{}", rustix::process::getuid().as_raw())
}

impl Stop {
    /// Asks for the stop; the worker that has the job carries it out.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        let stopped = match self.job {
            Some(job) => vec![(JobId(job), database.queue.stop(JobId(job), &who()).await?)],
            None => database.queue.stop_all(&who()).await?,
        };
        if self.json {
            out!("{}", serde_json::to_string_pretty(&stopped)?);
        } else if stopped.is_empty() {
            out!("nothing runs or waits");
        }
        for (job, stopped) in stopped.iter().filter(|_| !self.json) {
            let words = match stopped {
                Stopped::Asked => "its worker was asked to stop it; `pi-dispatch job` shows when it has",
                Stopped::Cancelled => "cancelled before it ran",
                Stopped::WasOver => "was over already",
            };
            out!("job {job}: {words}");
        }
        database.close().await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Pause {
    /// No job is started from now on; those that run go on.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        database.queue.pause(&who()).await?;
        out!(
            "paused: no job starts until `pi-dispatch resume`; jobs that run go on (`pi-dispatch stop --all` ends them)"
        );
        database.close().await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Lets jobs start again.
pub async fn resume(context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.config()?;
    let database = Database::open_current(&config, "cli").await?;
    match database.queue.paused().await? {
        None => out!("it was not paused"),
        Some(pause) => {
            database.queue.resume(&who()).await?;
            out!(
                "resumed; it was paused by {} since {}",
                crate::terminal::safe(&pause.who),
                pause.since.format("%F %T UTC")
            );
        }
    }
    database.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// Brings the schema up to this program's.
pub async fn migrate(context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.config()?;
    open::make_data_dir(&config.data_dir)?;
    let database = Database::open(&config, "migrate").await?;
    let before = database.queue.schema_version().await?;
    database.queue.migrate().await?;
    let after = queue::Queue::schema_needed();
    match before {
        Some(before) if before == after => out!("the schema is at {after} already"),
        Some(before) => out!("the schema went from {before} to {after}"),
        None => out!("the schema was made, version {after}"),
    }
    database.close().await?;
    Ok(ExitCode::SUCCESS)
}
