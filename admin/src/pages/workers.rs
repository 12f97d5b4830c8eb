//! `/workers`: who runs jobs, with which images, and what troubles them.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use queue::WorkerRow;

use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// A worker that said nothing for so long is shown as missed.
const SILENT: f64 = 60.0;

struct Line {
    name: String,
    lives: bool,
    version: String,
    busy: i32,
    slots: i32,
    images: Vec<String>,
    trouble: String,
    seen: String,
}

#[derive(Template)]
#[template(path = "workers.html")]
struct Page {
    shell: Shell,
    lines: Vec<Line>,
}

/// `GET /workers`.
pub async fn html(State(admin): State<Admin>, who: SignedIn) -> Result<Response, PageError> {
    let lines = admin.queue.workers().await?.into_iter().map(|worker| Line {
        name: worker.worker.to_string(),
        lives: worker.silent_seconds < SILENT,
        version: worker.version,
        busy: worker.busy,
        slots: worker.slots,
        images: worker.images.keys().map(|name| show::plain(name)).collect(),
        trouble: show::plain(worker.trouble.as_deref().unwrap_or("")),
        seen: format!("{:.0} s ago", worker.silent_seconds),
    });
    let lines = lines.collect();
    page(&Page {
        shell: Shell::new(&admin, &who, "workers", "Workers").await?,
        lines,
    })
}

/// `GET /api/workers`.
pub async fn json(State(admin): State<Admin>, _who: SignedIn) -> Result<Json<Vec<WorkerRow>>, PageError> {
    Ok(Json(admin.queue.workers().await?))
}
