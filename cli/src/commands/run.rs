//! `pi-dispatch run`: a job by hand.
//!
//! With a trigger it is a wish, written as a delivery of its own: a worker decides on it like on any other. With `--job` it is
//! one job from a file, here and now, with the real container and without any database.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use queue::{Outcome, RunRequest, TriggerId};
use worker::{JobByHand, run_job_file};

use super::control::who;
use super::serve::stop_signal;
use crate::open::{self, Database};
use crate::{Context, terminal};

/// Arguments of `run`.
#[derive(Args)]
pub struct Run {
    /// The trigger's id, as `pi-dispatch check` prints it
    #[arg(required_unless_present = "job", requires_all = ["forge", "repository"])]
    trigger: Option<String>,
    /// The forge's name in the configuration
    #[arg(long)]
    forge: Option<String>,
    /// owner/name
    #[arg(long)]
    repository: Option<String>,
    /// The issue or pull request to answer under
    #[arg(long, value_name = "N")]
    subject: Option<i64>,
    /// Run one job from a file, without a database: see docs/run-by-hand.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trigger", "forge", "repository", "subject"])]
    job: Option<PathBuf>,
}

impl Run {
    /// Asks for the run, or runs the file.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        match (self.job, self.trigger, self.forge, self.repository) {
            (Some(file), ..) => by_file(&file, context).await,
            (None, Some(trigger), Some(forge), Some(repository)) => {
                let request = RunRequest {
                    trigger: TriggerId::from(trigger),
                    forge,
                    repository,
                    subject: self.subject,
                    subject_kind: None,
                    who: who(),
                };
                ask(&request, context).await
            }
            // clap has made sure that all three are there.
            _ => anyhow::bail!("name a trigger with --forge and --repository, or a file with --job"),
        }
    }
}

async fn ask(request: &RunRequest, context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.config()?;
    if !config.forges.iter().any(|forge| forge.name == request.forge) {
        let names: Vec<&str> = config.forges.iter().map(|forge| forge.name.as_str()).collect();
        anyhow::bail!(
            "no forge is named {}; configured: {}",
            terminal::line(&request.forge, 60),
            names.join(", ")
        );
    }
    if !matches!(request.repository.split_once('/'), Some((owner, name)) if !owner.is_empty() && !name.is_empty() && !name.contains('/'))
    {
        anyhow::bail!(
            "a repository is written owner/name, not {}",
            terminal::line(&request.repository, 60)
        );
    }
    let database = Database::open_current(&config, "cli").await?;
    let delivery = database.queue.request_run(request).await?;
    out!("asked as delivery {delivery}; `pi-dispatch explain {delivery}` shows what came of it");
    database.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// Exit codes: 0 the agent came to its end, 1 it failed or was stopped, 2 a gate refused it.
async fn by_file(file: &Path, context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.config()?;
    let job = JobByHand::read(file).with_context(|| file.display().to_string())?;
    open::make_data_dir(&config.data_dir)?;
    let bench = open::bench(&config, context)?;
    // The runner's lines go to standard output as they come, one JSON object each.
    let show = Box::new(|line: &str| out!("{}", terminal::safe(line)));
    let report = run_job_file(&job, bench, show, stop_signal()).await?;
    eprintln!("\n{}: {} ({})", report.outcome, report.reason, report.reason.meaning());
    if !report.detail.is_empty() {
        eprintln!("{}", terminal::line(&report.detail, 400));
    }
    eprintln!(
        "spent ${} in {} model requests",
        report.spend.cost, report.spend.requests
    );
    for answer in &report.answers {
        eprintln!(
            "\n────── it would have posted ──────\n{}",
            terminal::safe(answer.trim())
        );
    }
    Ok(match report.outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Refused => ExitCode::from(2),
        Outcome::Stopped | Outcome::Failed | Outcome::Cancelled | Outcome::Expired => ExitCode::FAILURE,
    })
}
