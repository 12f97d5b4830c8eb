//! `pi-dispatch jobs` and `pi-dispatch job N`.

use std::process::ExitCode;

use clap::Args;
use queue::read::{JobDetail, JobFilter, JobRow, LogRow};
use queue::{JobId, JobState, JobStatus, LogId, TriggerId};

use crate::open::Database;
use crate::{Context, terminal};

/// Arguments of `jobs`.
#[derive(Args)]
pub struct Jobs {
    /// Only jobs in this state
    #[arg(long, value_parser = ["queued", "held", "running", "finished"])]
    state: Option<String>,
    /// Only jobs of this trigger
    #[arg(long)]
    trigger: Option<String>,
    /// Only jobs in this repository (owner/name)
    #[arg(long)]
    repository: Option<String>,
    /// Jobs older than this one
    #[arg(long, value_name = "JOB")]
    before: Option<i64>,
    /// How many
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Arguments of `job`.
#[derive(Args)]
pub struct Job {
    /// The job's number
    job: i64,
    /// Its log, line by line
    #[arg(long)]
    log: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// A state with its reason, in words.
fn state(state: &JobState) -> String {
    match state {
        JobState::Queued {
            waits_for: Some(reason),
            ..
        } => format!("queued ({reason})"),
        JobState::Queued { waits_for: None, .. } => "queued".to_owned(),
        JobState::Held { reason, .. } => format!("held: {reason}"),
        JobState::Running { worker, .. } => format!("running on {worker}"),
        JobState::Finished { outcome, reason, .. } => format!("{outcome}: {reason}"),
    }
}

fn place(row: &JobRow) -> String {
    let subject = row.subject.map_or(String::new(), |number| format!("#{number}"));
    format!("{}{subject}", row.repository)
}

impl Jobs {
    /// Newest first.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        let filter = JobFilter {
            status: self.state.as_deref().and_then(JobStatus::from_word),
            trigger: self.trigger.map(TriggerId::from),
            repository: self.repository,
            before: self.before.map(JobId),
            limit: self.limit,
            ..JobFilter::default()
        };
        let rows = database.queue.jobs(&filter).await?;
        if self.json {
            out!("{}", serde_json::to_string_pretty(&rows)?);
        } else if rows.is_empty() {
            out!("no jobs");
        } else {
            let rows = rows.iter().map(|row| {
                [
                    row.job.to_string(),
                    state(&row.state),
                    row.flow.clone(),
                    place(row),
                    row.actor.clone().unwrap_or_default(),
                    row.turns.map_or(String::new(), |turns| turns.to_string()),
                    format!("${}", row.cost),
                    row.created_at.format("%F %T").to_string(),
                ]
            });
            let head = [
                "job",
                "state",
                "flow",
                "where",
                "asked by",
                "turns",
                "cost",
                "made (UTC)",
            ];
            out!("{}", terminal::table(head, rows));
        }
        database.close().await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Job {
    /// Exit code 1 when there is no such job.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        let Some(job) = database.queue.job(JobId(self.job)).await? else {
            eprintln!("there is no job {}; `pi-dispatch jobs` lists them", self.job);
            database.close().await?;
            return Ok(ExitCode::FAILURE);
        };
        if self.log {
            print_log(&database, JobId(self.job), self.json).await?;
        } else if self.json {
            out!("{}", serde_json::to_string_pretty(&job)?);
        } else {
            print_job(&job);
        }
        database.close().await?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print_job(job: &JobDetail) {
    let row = &job.row;
    out!("job {}: {} on {} ({})", row.job, row.flow, place(row), row.forge);
    out!("  {}", state(&row.state));
    if !job.detail.is_empty() {
        out!("  {}", terminal::line(&job.detail, 400));
    }
    if let JobState::Finished { reason, .. } = &row.state {
        out!("  {} {}", reason.meaning(), reason.fix());
    }
    out!(
        "  trigger {}, image {}, attempt {}",
        row.trigger,
        terminal::safe(&job.data.image),
        row.attempt
    );
    out!("  spent ${} and {} tokens", row.cost, row.tokens);
    out!("\ngates");
    let gates = job.gates.iter().map(|gate| {
        [
            gate.number.to_string(),
            gate.name.clone(),
            gate.verdict.to_string(),
            gate.reason.map_or(String::new(), |reason| reason.word().to_owned()),
            terminal::line(&gate.detail, 100),
        ]
    });
    out!("{}", terminal::table(["#", "gate", "verdict", "reason", "saw"], gates));
    for line in &job.tools_excluded {
        out!("\ntools_excluded  {}", terminal::line(&line.to_string(), 400));
    }
    for output in &job.outputs {
        let at = output
            .url
            .as_deref()
            .or(output.reason.map(queue::Reason::word))
            .unwrap_or("");
        out!(
            "\noutput: {} {} {}",
            output.kind,
            output.status,
            terminal::line(at, 200)
        );
    }
    out!("\n`pi-dispatch job {} --log` shows its log", row.job);
}

async fn print_log(database: &Database, job: JobId, json: bool) -> anyhow::Result<()> {
    let mut after = LogId(0);
    loop {
        let rows = database.queue.job_log(job, after, 200).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.id;
        for row in &rows {
            if json {
                out!("{}", serde_json::to_string(row)?);
            } else {
                out!("{}", log_line(row));
            }
        }
    }
}

fn log_line(row: &LogRow) -> String {
    format!(
        "{} {:<7} {:<16} {}",
        row.at.format("%T%.3f"),
        row.source,
        row.kind,
        terminal::line(&row.data.to_string(), 2000)
    )
}
