//! `/triggers/{id}`: every field as it stands in the file, what it would do to a comment, what it looked at, its last runs.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use contract::Capability;
use queue::read::{DecisionRow, JobFilter, JobRow};
use queue::{DeliveryId, TriggerId, WorkerRow};
use serde::{Deserialize, Serialize};
use triggers::{Found, NoMatch, On, Trigger, find_phrase};

use super::triggers::{excluded, newest, starts};
use super::{RunLine, run_line};
use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;
use crate::shell::{Shell, page};
use crate::show;

/// What the page shows.
#[derive(Serialize)]
pub struct View {
    trigger: Trigger,
    image: String,
    decisions: Vec<(DeliveryId, DecisionRow)>,
    runs: Vec<JobRow>,
}

async fn load(admin: &Admin, id: &str) -> Result<(View, String), PageError> {
    let in_force = admin.queue.triggers_in_force().await?;
    let trigger = newest(&in_force)
        .into_iter()
        .find(|trigger| trigger.id == id)
        .ok_or_else(|| PageError::NotFound("trigger of that name in the file in force".to_owned()))?;
    let key = TriggerId::from(id);
    let decisions = admin.queue.decisions_of(&key, 20).await?;
    let runs = admin
        .queue
        .jobs(&JobFilter {
            trigger: Some(key),
            limit: 20,
            ..JobFilter::default()
        })
        .await?;
    let image = trigger
        .run
        .image
        .clone()
        .unwrap_or_else(|| admin.settings.default_image.clone());
    let file = in_force
        .iter()
        .max_by_key(|row| row.at)
        .map(|row| row.file.clone())
        .unwrap_or_default();
    Ok((
        View {
            trigger,
            image,
            decisions,
            runs,
        },
        file,
    ))
}

/// A comment to try.
#[derive(Deserialize)]
pub struct Try {
    comment: Option<String>,
}

struct Decision {
    delivery: i64,
    fired: bool,
    word: &'static str,
    job: Option<i64>,
    why: String,
    when: String,
}

#[derive(Template)]
#[template(path = "trigger.html")]
struct Page {
    shell: Shell,
    id: String,
    starts: String,
    flow: String,
    file: String,
    line: u32,
    fields: Vec<(String, String)>,
    image: String,
    image_is_default: bool,
    excluded: String,
    seen: String,
    tried: String,
    answer: Option<(bool, String)>,
    is_comment: bool,
    decisions: Vec<Decision>,
    runs: Vec<RunLine>,
}

/// Every field of the file but the two that have rows of their own.
fn fields(trigger: &Trigger) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (name, part) in [
        ("on", serde_json::to_value(&trigger.on)),
        ("run", serde_json::to_value(&trigger.run)),
    ] {
        show::flatten(name, &part.unwrap_or_default(), &mut rows);
    }
    // JSON keeps no order: what it starts on comes first.
    rows.sort_by_key(|(name, _)| name != "on.type");
    rows.retain(|(name, _)| name != "run.image" && name != "run.excludeTools");
    rows
}

/// What the workers say of the image: whether it is there and can take tools away.
fn seen(image: &str, workers: &[WorkerRow], excludes: bool) -> String {
    if workers.is_empty() {
        return "No worker has said anything about the image.".to_owned();
    }
    let having: Vec<_> = workers.iter().filter_map(|worker| worker.images.get(image)).collect();
    if having.is_empty() {
        return format!("Missing: none of {} worker(s) has the image.", workers.len());
    }
    let able = having
        .iter()
        .filter(|seen| {
            seen.labels
                .get(contract::labels::CAPABILITIES)
                .is_some_and(|tokens| Capability::ExcludeTools.is_in(tokens))
        })
        .count();
    match (excludes, able == having.len()) {
        (false, _) => format!("The image is on {} of {} worker(s).", having.len(), workers.len()),
        (true, true) => format!("The image can take tools away: seen by {able} worker(s)."),
        (true, false) => "The image can not take tools away: jobs are refused until it is rebuilt.".to_owned(),
    }
}

/// What the trigger would say to a comment, wherever it looks.
fn answer(trigger: &Trigger, comment: &str) -> (bool, String) {
    let phrase = match &trigger.on {
        On::Comment(on) => &on.phrase,
        On::Manual => return (false, "it starts by hand only".to_owned()),
    };
    let no = |why: NoMatch| (false, why.sentence().to_owned());
    match find_phrase(comment, phrase) {
        Found::Token { control: None } => (
            true,
            "it would fire, if somebody with write access wrote this".to_owned(),
        ),
        Found::Token { control: Some(_) } => (
            false,
            "a control word stands after the phrase: it starts no job".to_owned(),
        ),
        Found::Absent => no(NoMatch::PhraseAbsent),
        Found::InCode => no(NoMatch::PhraseInCode),
        Found::InQuote => no(NoMatch::PhraseInQuote),
        Found::InUrl => no(NoMatch::PhraseInUrl),
        Found::InAddress => no(NoMatch::PhraseInAddress),
        Found::InHtml => no(NoMatch::PhraseInHtml),
        Found::InWord => no(NoMatch::PhraseInWord),
    }
}

/// `GET /triggers/{id}`.
pub async fn html(
    State(admin): State<Admin>,
    who: SignedIn,
    Path(id): Path<String>,
    Query(wish): Query<Try>,
) -> Result<Response, PageError> {
    let (view, file) = load(&admin, &id).await?;
    let workers = admin.queue.workers().await?;
    let trigger = &view.trigger;
    let comment = wish.comment.filter(|text| !text.trim().is_empty());
    let shell = Shell::new(
        &admin,
        &who,
        "triggers",
        format!("{} → {}", starts(&trigger.on), trigger.run.flow),
    )
    .await?;
    let decisions = view
        .decisions
        .iter()
        .map(|(delivery, decision)| Decision {
            delivery: delivery.0,
            fired: decision.job.is_some(),
            word: decision.verdict.word(),
            job: decision.job.map(|job| job.0),
            why: decision
                .reason
                .map_or(String::new(), |reason| format!("{reason}: {}", reason.meaning())),
            when: show::moment(&decision.at),
        })
        .collect();
    page(&Page {
        id: trigger.id.clone(),
        starts: starts(&trigger.on),
        flow: trigger.run.flow.clone(),
        file: show::plain(&file),
        line: trigger.line,
        fields: fields(trigger),
        image: show::plain(&view.image),
        image_is_default: trigger.run.image.is_none(),
        excluded: excluded(trigger),
        seen: seen(&view.image, &workers, !trigger.run.exclude_tools.is_empty()),
        answer: comment.as_deref().map(|comment| answer(trigger, comment)),
        tried: comment.unwrap_or_default(),
        is_comment: matches!(trigger.on, On::Comment(_)),
        decisions,
        runs: view.runs.iter().map(run_line).collect(),
        shell,
    })
}

/// `GET /api/triggers/{id}`.
pub async fn json(State(admin): State<Admin>, _who: SignedIn, Path(id): Path<String>) -> Result<Json<View>, PageError> {
    Ok(Json(load(&admin, &id).await?.0))
}
