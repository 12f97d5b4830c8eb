//! `/runs`: the list, filtered, newest first, paged by the last row's number.

use askama::Template;
use axum::Json;
use axum::extract::{Query, State};
use axum::response::Response;
use queue::read::{JobFilter, JobRow};
use queue::{JobId, JobStatus, Outcome, TriggerId};
use serde::{Deserialize, Serialize};

use super::{ROWS, RunLine, run_line};
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// What may be asked for. A word that is no state and no outcome is an error, not an empty list.
#[derive(Deserialize, Default)]
pub struct Wish {
    state: Option<String>,
    trigger: Option<String>,
    repository: Option<String>,
    before: Option<i64>,
}

impl Wish {
    fn filter(&self) -> Result<JobFilter, PageError> {
        let word = self.state.as_deref().filter(|word| !word.is_empty());
        let (status, outcome) = match word {
            None => (None, None),
            Some(word) => match (JobStatus::from_word(word), Outcome::from_word(word)) {
                (None, None) => return Err(PageError::Unreadable("no state has that name".to_owned())),
                found => found,
            },
        };
        let text = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
        Ok(JobFilter {
            status,
            outcome,
            trigger: text(&self.trigger).map(TriggerId::from),
            repository: text(&self.repository),
            forge: None,
            before: self.before.map(JobId),
            limit: ROWS,
        })
    }

    fn next(&self, rows: &[JobRow]) -> Option<String> {
        let last = rows.last().filter(|_| i64::try_from(rows.len()) == Ok(ROWS))?;
        let mut query = format!("/runs?before={}", last.job);
        for (name, value) in [
            ("state", &self.state),
            ("trigger", &self.trigger),
            ("repository", &self.repository),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                query.push_str(&format!("&{name}={}", show::query(value)));
            }
        }
        Some(query)
    }
}

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    runs: Vec<JobRow>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Page {
    shell: Shell,
    runs: Vec<RunLine>,
    states: Vec<(&'static str, bool)>,
    trigger: String,
    repository: String,
    next: Option<String>,
}

/// `GET /runs`.
pub async fn html(State(admin): State<Admin>, who: SignedIn, Query(wish): Query<Wish>) -> Result<Response, PageError> {
    let rows = admin.queue.jobs(&wish.filter()?).await?;
    let chosen = wish.state.clone().unwrap_or_default();
    let states = ["queued", "held", "running"]
        .into_iter()
        .chain(Outcome::ALL.iter().map(|outcome| outcome.word()))
        .map(|word| (word, word == chosen))
        .collect();
    let shell = Shell::new(&admin, &who, "runs", "Runs").await?;
    page(&Page {
        shell,
        next: wish.next(&rows),
        runs: rows.iter().map(run_line).collect(),
        states,
        trigger: wish.trigger.unwrap_or_default(),
        repository: wish.repository.unwrap_or_default(),
    })
}

/// `GET /api/runs`.
pub async fn json(
    State(admin): State<Admin>,
    _who: SignedIn,
    Query(wish): Query<Wish>,
) -> Result<Json<View>, PageError> {
    Ok(Json(View {
        runs: admin.queue.jobs(&wish.filter()?).await?,
    }))
}
