//! `/deliveries`: what came, and what came of it.

use askama::Template;
use axum::Json;
use axum::extract::{Query, State};
use axum::response::Response;
use queue::read::{DeliveryFilter, DeliveryRow};
use queue::{DeliveryId, DeliveryStatus};
use serde::{Deserialize, Serialize};

use super::ROWS;
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// What may be asked for.
#[derive(Deserialize)]
pub struct Wish {
    state: Option<String>,
    before: Option<i64>,
}

impl Wish {
    fn filter(&self) -> Result<DeliveryFilter, PageError> {
        let status = match self.state.as_deref().filter(|word| !word.is_empty()) {
            None => None,
            Some(word) => {
                let unknown = || PageError::Unreadable("no state of a delivery has that name".to_owned());
                Some(DeliveryStatus::from_word(word).ok_or_else(unknown)?)
            }
        };
        Ok(DeliveryFilter {
            status,
            forge: None,
            before: self.before.map(DeliveryId),
            limit: ROWS,
        })
    }
}

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    deliveries: Vec<DeliveryRow>,
}

/// A delivery in a list, ready to be shown.
pub struct Line {
    /// Its number.
    pub id: i64,
    /// Glyph and word.
    pub state: &'static str,
    /// The forge's name.
    pub forge: String,
    /// The event, as the header says.
    pub event: String,
    /// The jobs that it made or joined.
    pub jobs: Vec<i64>,
    /// Why none, in words.
    pub why: String,
    /// When it came.
    pub when: String,
    /// The same, machine-readable.
    pub stamp: String,
}

/// Prepares a delivery for a list.
pub fn line(row: &DeliveryRow) -> Line {
    let state = match row.status {
        DeliveryStatus::Received => "queued",
        DeliveryStatus::Waiting => "held",
        DeliveryStatus::Decided if row.jobs.is_empty() => "refused",
        DeliveryStatus::Decided => "completed",
        DeliveryStatus::Abandoned => "failed",
    };
    let reason = row.reason.or(row.no);
    let event = if row.event_type.is_empty() {
        &row.event
    } else {
        &row.event_type
    };
    Line {
        id: row.id.0,
        state,
        forge: show::plain(&row.forge),
        event: show::plain(event),
        jobs: row.jobs.iter().map(|job| job.0).collect(),
        why: reason.map_or(String::new(), |reason| format!("{reason}: {}", reason.meaning())),
        when: show::moment(&row.received_at),
        stamp: show::stamp(&row.received_at),
    }
}

/// What a state of a delivery is called beside its glyph.
pub fn word(line: &Line) -> &'static str {
    match line.state {
        "queued" => "received",
        "held" => "waits",
        "refused" => "no",
        "completed" => "fired",
        _ => "given up",
    }
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct Page {
    shell: Shell,
    lines: Vec<Line>,
    states: Vec<(&'static str, bool)>,
    next: Option<String>,
}

/// `GET /deliveries`.
pub async fn html(State(admin): State<Admin>, who: SignedIn, Query(wish): Query<Wish>) -> Result<Response, PageError> {
    let rows = admin.queue.deliveries(&wish.filter()?).await?;
    let chosen = wish.state.clone().unwrap_or_default();
    let full = i64::try_from(rows.len()) == Ok(ROWS);
    let next = rows
        .last()
        .filter(|_| full)
        .map(|last| format!("/deliveries?before={}&state={}", last.id, show::query(&chosen)));
    let shell = Shell::new(&admin, &who, "deliveries", "Deliveries").await?;
    page(&Page {
        shell,
        lines: rows.iter().map(line).collect(),
        states: DeliveryStatus::ALL
            .iter()
            .map(|status| (status.word(), status.word() == chosen))
            .collect(),
        next,
    })
}

/// `GET /api/deliveries`.
pub async fn json(
    State(admin): State<Admin>,
    _who: SignedIn,
    Query(wish): Query<Wish>,
) -> Result<Json<View>, PageError> {
    Ok(Json(View {
        deliveries: admin.queue.deliveries(&wish.filter()?).await?,
    }))
}
