//! `/triggers`: what is in force on the workers, and what is wrong with a newer edit.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use queue::read::TriggerActivity;
use queue::{TriggerId, TriggersInForce};
use serde::Serialize;
use triggers::{On, Trigger};

use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    in_force: Vec<TriggersInForce>,
    activity: Vec<TriggerActivity>,
}

/// The triggers of the newest file in force. Unreadable rows are of another version and left out.
pub fn newest(in_force: &[TriggersInForce]) -> Vec<Trigger> {
    in_force
        .iter()
        .max_by_key(|row| row.at)
        .and_then(|row| serde_json::from_value(row.triggers.clone()).ok())
        .unwrap_or_default()
}

/// What starts it, in a few words: `comment @pi`.
pub fn starts(on: &On) -> String {
    match on {
        On::Comment(comment) => format!("comment {}", show::plain(&comment.phrase)),
        On::Manual => "by hand".to_owned(),
    }
}

/// What a trigger takes away, in words.
pub fn excluded(trigger: &Trigger) -> String {
    if trigger.run.exclude_tools.is_empty() {
        return "full pinned tool set".to_owned();
    }
    trigger
        .run
        .exclude_tools
        .iter()
        .map(|tool| tool.name())
        .collect::<Vec<_>>()
        .join(" ")
}

async fn load(admin: &Admin) -> Result<View, PageError> {
    let in_force = admin.queue.triggers_in_force().await?;
    let ids: Vec<TriggerId> = newest(&in_force)
        .iter()
        .map(|trigger| TriggerId::from(trigger.id.as_str()))
        .collect();
    let activity = admin.queue.trigger_activity(&ids).await?;
    Ok(View { in_force, activity })
}

struct Line {
    id: String,
    link: String,
    line: u32,
    starts: String,
    flow: String,
    excluded: String,
    last: Option<(i64, String)>,
    day: i64,
}

#[derive(Template)]
#[template(path = "triggers.html")]
struct Page {
    shell: Shell,
    lines: Vec<Line>,
    file: Option<String>,
    faults: Vec<String>,
    remarks: Vec<String>,
    differ: bool,
}

/// The sentences of faults or remarks, as the worker wrote them.
fn sentences(row: &TriggersInForce, list: &serde_json::Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|fault| {
            let message = fault["message"].as_str().unwrap_or("unreadable");
            format!("{}:{}: {}", show::plain(&row.file), fault["line"], show::plain(message))
        })
        .collect()
}

/// `GET /triggers`.
pub async fn html(State(admin): State<Admin>, who: SignedIn) -> Result<Response, PageError> {
    let view = load(&admin).await?;
    let triggers = newest(&view.in_force);
    let lines = triggers
        .iter()
        .map(|trigger| {
            let activity = view
                .activity
                .iter()
                .find(|activity| activity.trigger.as_str() == trigger.id);
            Line {
                id: trigger.id.clone(),
                link: show::query(&trigger.id).replace('/', "%2F"),
                line: trigger.line,
                starts: starts(&trigger.on),
                flow: trigger.run.flow.clone(),
                excluded: excluded(trigger),
                last: activity.and_then(|activity| Some((activity.last_job?.0, show::moment(&activity.last_at?)))),
                day: activity.map_or(0, |activity| activity.jobs_day),
            }
        })
        .collect();
    let newest = view.in_force.iter().max_by_key(|row| row.at);
    let shell = Shell::new(&admin, &who, "triggers", "Triggers").await?;
    page(&Page {
        shell,
        lines,
        file: newest.map(|row| show::plain(&row.file)),
        faults: view
            .in_force
            .iter()
            .flat_map(|row| sentences(row, &row.faults))
            .collect(),
        remarks: newest.map(|row| sentences(row, &row.remarks)).unwrap_or_default(),
        differ: view
            .in_force
            .iter()
            .any(|row| Some(&row.sha256) != newest.map(|row| &row.sha256)),
    })
}

/// `GET /api/triggers`.
pub async fn json(State(admin): State<Admin>, _who: SignedIn) -> Result<Json<View>, PageError> {
    Ok(Json(load(&admin).await?))
}
