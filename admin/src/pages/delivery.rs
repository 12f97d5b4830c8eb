//! `/deliveries/{id}`: what it held, which triggers were asked, what each said.

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use queue::DeliveryId;
use queue::read::DeliveryDetail;

use super::deliveries::{Line, line, word};
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

struct Decision {
    trigger: Option<(String, String)>,
    fired: bool,
    word: &'static str,
    job: Option<i64>,
    why: String,
    detail: String,
}

struct Event {
    kind: String,
    place: String,
    actor: String,
    key: String,
    duplicate: Option<String>,
    decisions: Vec<Decision>,
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct Page {
    shell: Shell,
    line: Line,
    word: &'static str,
    forge_id: String,
    bytes: i32,
    tries: i32,
    next: Option<String>,
    detail: String,
    fix: &'static str,
    events: Vec<Event>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    can_replay: bool,
}

async fn load(admin: &Admin, id: i64) -> Result<DeliveryDetail, PageError> {
    admin
        .queue
        .delivery(DeliveryId(id))
        .await?
        .ok_or_else(|| PageError::NotFound(format!("delivery {id}")))
}

/// `GET /deliveries/{id}`. The body is a stranger's: only operators see it.
pub async fn html(State(admin): State<Admin>, who: SignedIn, Path(id): Path<i64>) -> Result<Response, PageError> {
    let detail = load(&admin, id).await?;
    let shell = Shell::new(&admin, &who, "deliveries", format!("Delivery {id}")).await?;
    let row = &detail.row;
    let events = detail.events.iter().map(|event| Event {
        kind: show::plain(&event.kind),
        place: show::plain(&show::place(event.repository.as_deref().unwrap_or(""), event.subject)),
        actor: show::plain(event.actor.as_deref().unwrap_or("")),
        key: show::plain(&event.key),
        duplicate: event.duplicate_of.map(|first| match event.duplicate_of_delivery {
            Some(delivery) => format!("the same thing came already, with delivery {delivery}"),
            None => format!("the same thing came already, as event {first}"),
        }),
        decisions: event
            .decisions
            .iter()
            .map(|decision| Decision {
                trigger: decision
                    .trigger
                    .as_ref()
                    .map(|id| (id.to_string(), show::query(id.as_str()).replace('/', "%2F"))),
                fired: decision.job.is_some(),
                word: decision.verdict.word(),
                job: decision.job.map(|job| job.0),
                why: decision
                    .reason
                    .map_or(String::new(), |reason| format!("{reason}: {}", reason.meaning())),
                detail: show::plain(&decision.detail),
            })
            .collect(),
    });
    let mut headers = Vec::new();
    show::flatten("", &detail.headers, &mut headers);
    let line = line(row);
    page(&Page {
        word: word(&line),
        line,
        forge_id: show::plain(&row.delivery),
        bytes: row.bytes,
        tries: row.tries,
        next: row.not_before.as_ref().map(show::moment),
        detail: show::plain(&row.detail),
        fix: row.reason.or(row.no).map_or("", |reason| reason.fix()),
        events: events.collect(),
        headers,
        body: detail.body.as_deref().filter(|_| shell.operator).map(show::plain),
        can_replay: shell.operator && row.status == queue::DeliveryStatus::Abandoned,
        shell,
    })
}

/// `GET /api/deliveries/{id}`.
pub async fn json(
    State(admin): State<Admin>,
    who: SignedIn,
    Path(id): Path<i64>,
) -> Result<Json<DeliveryDetail>, PageError> {
    let mut detail = load(&admin, id).await?;
    if who.role != queue::Role::Operator {
        detail.body = None;
    }
    Ok(Json(detail))
}
