//! `pi-dispatch explain DELIVERY`: why it started a job, or did not.

use std::process::ExitCode;

use clap::Args;
use queue::read::{DecisionRow, DeliveryDetail, DeliveryFilter, Verdict};

use crate::open::Database;
use crate::{Context, terminal};

/// Arguments of `explain`.
#[derive(Args)]
pub struct Explain {
    /// The delivery: its number here, or the forge's own id. Without it the newest deliveries are listed.
    delivery: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Exit code 1 when there is no such delivery.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        let code = match &self.delivery {
            Some(word) => self.one(&database, word).await?,
            None => self.list(&database).await?,
        };
        database.close().await?;
        Ok(code)
    }

    async fn one(&self, database: &Database, word: &str) -> anyhow::Result<ExitCode> {
        let explained = database.queue.explain(word).await?;
        if self.json {
            out!("{}", serde_json::to_string_pretty(&explained)?);
        } else {
            for delivery in &explained.deliveries {
                print(delivery);
            }
        }
        if explained.deliveries.is_empty() {
            eprintln!(
                "there is no delivery {}; `pi-dispatch explain` lists the newest",
                terminal::line(word, 60)
            );
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn list(&self, database: &Database) -> anyhow::Result<ExitCode> {
        let rows = database
            .queue
            .deliveries(&DeliveryFilter {
                limit: 30,
                ..DeliveryFilter::default()
            })
            .await?;
        if self.json {
            out!("{}", serde_json::to_string_pretty(&rows)?);
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            out!("no delivery has come yet");
            return Ok(ExitCode::SUCCESS);
        }
        let rows = rows.into_iter().map(|row| {
            let jobs: Vec<String> = row.jobs.iter().map(|job| format!("job {job}")).collect();
            let why = row
                .reason
                .or(row.no)
                .map_or(String::new(), |reason| reason.word().to_owned());
            [
                row.id.to_string(),
                row.received_at.format("%F %T").to_string(),
                row.forge,
                row.event_type,
                row.status.word().to_owned(),
                if jobs.is_empty() { why } else { jobs.join(", ") },
            ]
        });
        out!(
            "{}",
            terminal::table(
                ["delivery", "came (UTC)", "forge", "event", "state", "what came of it"],
                rows
            )
        );
        Ok(ExitCode::SUCCESS)
    }
}

fn print(delivery: &DeliveryDetail) {
    let row = &delivery.row;
    out!(
        "delivery {} ({} on {}), {} bytes, came {} UTC",
        row.id,
        terminal::line(&row.delivery, 60),
        terminal::line(&row.forge, 40),
        row.bytes,
        row.received_at.format("%F %T")
    );
    let kind = match &row.event_type {
        kind if kind.is_empty() || *kind == row.event => String::new(),
        kind => format!(" ({})", terminal::line(kind, 60)),
    };
    out!("  event: {}{kind}", terminal::line(&row.event, 60));
    match (row.reason, row.not_before) {
        (Some(reason), Some(next)) => {
            out!(
                "  {}: {reason}, looked at again {} UTC (tries so far: {})",
                row.status,
                next.format("%F %T"),
                row.tries
            );
            out!("  {}", reason.fix());
        }
        (Some(reason), None) => out!("  {}: {reason}: {}", row.status, reason.meaning()),
        (None, _) => out!("  {}", row.status),
    }
    if !row.detail.is_empty() {
        out!("  {}", terminal::line(&row.detail, 400));
    }
    for event in &delivery.events {
        let place = event
            .repository
            .as_deref()
            .filter(|name| !name.is_empty())
            .map_or(String::new(), |name| format!(" in {}", terminal::line(name, 80)));
        let subject = event.subject.map_or(String::new(), |number| format!("#{number}"));
        let actor = event
            .actor
            .as_deref()
            .map_or(String::new(), |name| format!(" by {}", terminal::line(name, 40)));
        out!("  {}{actor}{place}{subject}", event.kind);
        if let Some(first) = event.duplicate_of {
            let arrived = event
                .duplicate_of_delivery
                .map_or(String::new(), |id| format!(", which came with delivery {id}"));
            out!("    no: the same thing is event {first}{arrived}");
        }
        for decision in &event.decisions {
            out!("    {}", words(decision));
        }
    }
}

fn words(decision: &DecisionRow) -> String {
    let trigger = decision
        .trigger
        .as_ref()
        .map_or("every trigger".to_owned(), |id| format!("trigger {id}"));
    let job = decision.job.map_or(String::new(), |job| format!(" job {job}"));
    let why = decision
        .reason
        .map_or(String::new(), |reason| format!(" {reason}: {}", reason.meaning()));
    let detail = if decision.detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", terminal::line(&decision.detail, 300))
    };
    match decision.verdict {
        Verdict::Fired => format!("{trigger}: fired{job}{detail}"),
        Verdict::Joined => format!("{trigger}: joined{job}, which had not begun{detail}"),
        Verdict::No => format!("{trigger}: no:{why}{detail}"),
    }
}
