//! `/`: how much waits, runs and was spent; what needs a person stands on top.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use queue::read::{JobFilter, JobRow, Overview};
use serde::Serialize;

use super::{RunLine, run_line};
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    overview: Overview,
    latest: Vec<JobRow>,
}

async fn load(admin: &Admin) -> Result<View, PageError> {
    let overview = admin.queue.overview().await?;
    let latest = admin
        .queue
        .jobs(&JobFilter {
            limit: 15,
            ..JobFilter::default()
        })
        .await?;
    Ok(View { overview, latest })
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    view: View,
    latest: Vec<RunLine>,
    notices: Vec<Notice>,
    slots: i64,
    spent: String,
}

/// Something that needs a person.
struct Notice {
    text: String,
    link: &'static str,
}

fn notices(overview: &Overview) -> Vec<Notice> {
    let mut notices = Vec::new();
    if let Some(pause) = &overview.pause {
        let text = format!(
            "Paused by {} since {}: no job starts.",
            show::plain(&pause.who),
            show::moment(&pause.since)
        );
        notices.push(Notice { text, link: "/workers" });
    }
    if overview.workers.is_empty() {
        notices.push(Notice {
            text: "No worker runs: deliveries are stored, nothing is decided.".to_owned(),
            link: "/workers",
        });
    }
    for worker in &overview.workers {
        if let Some(trouble) = &worker.trouble {
            notices.push(Notice {
                text: format!("Worker {}: {}", worker.worker, show::plain(trouble)),
                link: "/workers",
            });
        }
    }
    for (count, text, link) in [
        (overview.held, "job(s) are held", "/runs?state=held"),
        (
            overview.deliveries_waiting,
            "delivery(s) wait for an answer of the forge",
            "/deliveries?state=waiting",
        ),
        (
            overview.deliveries_abandoned,
            "delivery(s) were given up; a person may replay them",
            "/deliveries?state=abandoned",
        ),
        (overview.outputs_failed, "answer(s) could not be posted", "/runs"),
    ] {
        if count > 0 {
            notices.push(Notice {
                text: format!("{count} {text}."),
                link,
            });
        }
    }
    notices
}

/// `GET /`.
pub async fn html(State(admin): State<Admin>, who: SignedIn) -> Result<Response, PageError> {
    let view = load(&admin).await?;
    let shell = Shell::new(&admin, &who, "overview", "Overview").await?;
    page(&Page {
        shell,
        latest: view.latest.iter().map(run_line).collect(),
        notices: notices(&view.overview),
        slots: view.overview.workers.iter().map(|worker| i64::from(worker.slots)).sum(),
        spent: show::money(view.overview.day.cost),
        view,
    })
}

/// `GET /api/overview`.
pub async fn json(State(admin): State<Admin>, _who: SignedIn) -> Result<Json<View>, PageError> {
    Ok(Json(load(&admin).await?))
}
