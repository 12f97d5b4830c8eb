//! `/runs/{job}`: who asked, what it could use and could not (and who saw it gone), which road it took, what it said and cost.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use contract::Tool;
use queue::read::{JobDetail, LogRow, ModelRequestRow};
use queue::{GateVerdict, JobId, JobStatus, LogId, OutputKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::triggers::{excluded, starts};
use super::{RunLine, run_line};
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// Lines of a log that a page shows at once; the rest is a link away.
const LOG_LINES: i64 = 200;

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    run: JobDetail,
    model_requests: Vec<ModelRequestRow>,
}

async fn load(admin: &Admin, job: JobId) -> Result<View, PageError> {
    let run = admin
        .queue
        .job(job)
        .await?
        .ok_or_else(|| PageError::NotFound(format!("run {job}")))?;
    let model_requests = admin.queue.model_requests(job).await?;
    Ok(View { run, model_requests })
}

/// Where to begin in the log.
#[derive(Deserialize)]
pub struct After {
    after: Option<i64>,
}

struct Gate {
    number: i16,
    name: String,
    verdict: &'static str,
    good: bool,
    why: String,
    took: String,
}

struct ToolShown {
    name: String,
    class: &'static str,
    hint: &'static str,
}

struct Output {
    kind: &'static str,
    status: &'static str,
    body: String,
    url: Option<String>,
    why: String,
}

struct Asked {
    actor: String,
    text: String,
    url: Option<String>,
    allowed_by: String,
    delivery: Option<i64>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct Page {
    shell: Shell,
    line: RunLine,
    forge: String,
    url: Option<String>,
    trigger: String,
    trigger_link: String,
    starts: String,
    detail: String,
    fix: &'static str,
    excluded: String,
    image: String,
    attempt: i32,
    worker: String,
    turns: String,
    tokens: i64,
    requests: usize,
    cap: String,
    tools: Vec<ToolShown>,
    proofs: Vec<(bool, String)>,
    gates: Vec<Gate>,
    asked: Vec<Asked>,
    outputs: Vec<Output>,
    reply: Option<String>,
    log: Vec<LogLine>,
    last: i64,
    more: bool,
    running: bool,
    stop_by: Option<String>,
    can_stop: bool,
}

/// A line of the log, ready to be shown.
#[derive(Template)]
#[template(path = "log-line.html")]
pub struct LogLine {
    id: i64,
    at: String,
    source: &'static str,
    kind: String,
    words: String,
    mark: bool,
}

/// The same as HTML, for the live log.
pub fn line_html(row: &LogRow) -> Result<String, askama::Error> {
    // A server-sent event's data is one line each: HTML does not mind.
    log_line(row).render().map(|html| html.replace('\n', " "))
}

fn log_line(row: &LogRow) -> LogLine {
    LogLine {
        id: row.id.0,
        at: row.at.format("%H:%M:%S%.3f").to_string(),
        source: row.source.word(),
        kind: show::plain(&row.kind),
        words: show::fields(&row.data),
        mark: row.kind == "tools_excluded",
    }
}

fn strings<'a>(line: &'a Value, field: &str) -> Vec<&'a str> {
    line[field]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The tools as chips: what was active, what was only registered, what was gone.
fn tools(run: &JobDetail) -> Vec<ToolShown> {
    let exclusions = &run.data.trigger.run.exclude_tools;
    let start = run.tools_excluded.iter().find(|line| line["phase"] == "start");
    let (active, registered) = match start {
        Some(line) => (strings(line, "active"), strings(line, "registered")),
        None => (Vec::new(), Vec::new()),
    };
    let mut tools: Vec<ToolShown> = Vec::new();
    for name in &active {
        let ours = Tool::from_name(name).is_none();
        let (class, hint) = if ours {
            ("ours", "proposes; the worker carries it out")
        } else {
            ("", "active")
        };
        tools.push(ToolShown {
            name: show::plain(name),
            class,
            hint,
        });
    }
    for name in registered.iter().filter(|name| !active.contains(name)) {
        tools.push(ToolShown {
            name: show::plain(name),
            class: "idle",
            hint: "registered, not active",
        });
    }
    for tool in exclusions {
        tools.push(ToolShown {
            name: tool.name().to_owned(),
            class: "gone",
            hint: "taken away",
        });
    }
    tools
}

/// Who saw the excluded tools gone.
fn proofs(run: &JobDetail, requests: usize) -> Vec<(bool, String)> {
    if run.data.trigger.run.exclude_tools.is_empty() {
        return Vec::new();
    }
    let asked: Vec<&str> = run
        .data
        .trigger
        .run
        .exclude_tools
        .iter()
        .map(|tool| tool.name())
        .collect();
    let mut proofs: Vec<(bool, String)> = ["start", "end"]
        .into_iter()
        .filter_map(|phase| {
            let line = run.tools_excluded.iter().find(|line| line["phase"] == phase)?;
            let told = strings(line, "excluded");
            let absent = asked.iter().all(|name| {
                !strings(line, "active").contains(name)
                    && !strings(line, "registered").contains(name)
                    && told.contains(name)
            });
            let words = if absent {
                "absent from the session at its"
            } else {
                "not proven absent at its"
            };
            let inside = if line["fromInside"] == true {
                " (said from inside the box)"
            } else {
                ""
            };
            Some((absent, format!("{words} {phase}{inside}")))
        })
        .collect();
    if requests > 0 {
        proofs.push((
            true,
            format!("offered in none of {requests} model requests (the gateway stops a job that does)"),
        ));
    }
    proofs
}

/// `GET /runs/{job}`.
pub async fn html(
    State(admin): State<Admin>,
    who: SignedIn,
    Path(job): Path<i64>,
    Query(after): Query<After>,
) -> Result<Response, PageError> {
    let job = JobId(job);
    let view = load(&admin, job).await?;
    let begin = after.after.unwrap_or(0);
    let rows = admin.queue.job_log(job, LogId(begin), LOG_LINES).await?;
    let shell = Shell::new(
        &admin,
        &who,
        "runs",
        format!("{} on {}", view.run.row.flow, view.run.row.repository),
    )
    .await?;
    page(&prepare(&view, &rows, begin, shell))
}

fn prepare(view: &View, rows: &[LogRow], begin: i64, shell: Shell) -> Page {
    let run = &view.run;
    let status = run.row.state.status();
    let trigger = &run.data.trigger;
    let more = i64::try_from(rows.len()) == Ok(LOG_LINES);
    let attempt = run.attempts.last();
    let gates = run.gates.iter().map(|gate| Gate {
        number: gate.number,
        name: show::plain(&gate.name),
        verdict: gate.verdict.word(),
        good: gate.verdict == GateVerdict::Passed,
        why: [
            gate.reason.map_or("", queue::Reason::word).to_owned(),
            show::plain(&gate.detail),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(": "),
        took: show::micros(gate.micros),
    });
    let outputs = run.outputs.iter().map(|output| Output {
        kind: output.kind.word(),
        status: output.status.word(),
        body: if output.kind == OutputKind::Reaction {
            String::new()
        } else {
            show::plain(&output.body)
        },
        url: output.url.as_deref().and_then(show::link).map(str::to_owned),
        why: output.reason.map_or(String::new(), |reason| {
            format!("{reason}: {}", show::plain(&output.detail))
        }),
    });
    let asked = run.asked.iter().map(|asked| Asked {
        actor: show::plain(&asked.asked.actor.login),
        text: show::plain(&asked.asked.text),
        url: asked.asked.url.as_deref().and_then(show::link).map(str::to_owned),
        allowed_by: show::plain(&asked.asked.allowed_by),
        delivery: asked.delivery.map(|delivery| delivery.0),
    });
    Page {
        line: run_line(&run.row),
        forge: show::plain(&run.row.forge),
        url: run
            .data
            .subject
            .as_ref()
            .and_then(|subject| show::link(subject.url.as_deref()?))
            .map(str::to_owned),
        trigger: trigger.id.clone(),
        trigger_link: show::query(&trigger.id).replace('/', "%2F"),
        starts: starts(&trigger.on),
        detail: show::plain(&run.detail),
        fix: show::state_reason(&run.row.state).map_or("", |reason| reason.fix()),
        excluded: excluded(trigger),
        image: show::plain(&run.data.image),
        attempt: run.row.attempt,
        worker: attempt.map_or_else(|| "–".to_owned(), |attempt| attempt.worker.to_string()),
        turns: run.row.turns.map_or_else(|| "–".to_owned(), |turns| turns.to_string()),
        tokens: run.row.tokens,
        requests: view.model_requests.len(),
        cap: run
            .data
            .limits
            .cost
            .map_or(String::new(), |cost| format!(" of {}", show::money(cost))),
        tools: tools(run),
        proofs: proofs(run, view.model_requests.len()),
        gates: gates.collect(),
        asked: asked.collect(),
        outputs: outputs.collect(),
        reply: run.reply.as_deref().map(show::plain),
        last: rows.last().map_or(begin, |row| row.id.0),
        log: rows.iter().map(log_line).collect(),
        more,
        running: status == JobStatus::Running && !more,
        stop_by: run.stop_by.as_deref().map(show::plain),
        can_stop: shell.operator && status != JobStatus::Finished && run.stop_by.is_none(),
        shell,
    }
}

/// `GET /api/runs/{job}`.
pub async fn json(State(admin): State<Admin>, _who: SignedIn, Path(job): Path<i64>) -> Result<Json<View>, PageError> {
    Ok(Json(load(&admin, JobId(job)).await?))
}

/// `GET /api/runs/{job}/log?after=`.
pub async fn log(
    State(admin): State<Admin>,
    _who: SignedIn,
    Path(job): Path<i64>,
    Query(after): Query<After>,
) -> Result<Json<Vec<LogRow>>, PageError> {
    let job = JobId(job);
    if admin.queue.is_finished(job).await?.is_none() {
        return Err(PageError::NotFound(format!("run {job}")));
    }
    Ok(Json(
        admin
            .queue
            .job_log(job, LogId(after.after.unwrap_or(0)), LOG_LINES)
            .await?,
    ))
}
