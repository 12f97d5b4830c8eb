//! Issues, pull requests, their labels and reactions.

use super::{Answer, Call, Refusal, list};
use crate::forge::shapes;
use crate::forge::world::{Access, Repo, Scope, World};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::Value;

/// The words that Forgejo knows as reactions.
const REACTIONS: [&str; 8] = ["+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"];

#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    page: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    state: Option<String>,
}

impl Page {
    pub(super) fn cut(&self, all: Vec<Value>) -> axum::response::Response {
        let total = all.len();
        let limit = self.limit.unwrap_or(30).clamp(1, 50);
        let from = self.page.unwrap_or(1).max(1).saturating_sub(1) * limit;
        list(all.into_iter().skip(from).take(limit).collect(), total)
    }
}

/// `GET …/issues`: newest first; `state` is `open` (default), `closed` or `all`.
pub(super) async fn all(call: Call, Path((owner, name)): Path<(String, String)>, page: Query<Page>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = &world.repos[&call.repo(&world, (&owner, &name), viewer)?];
    let wanted = page.state.as_deref().unwrap_or("open");
    let fits = |closed: bool| wanted == "all" || (wanted == "closed") == closed;
    let issues = repo.issues.values().rev().filter(|issue| fits(issue.closed.is_some()));
    Ok(page.cut(issues.map(|issue| shapes::issue(&world, repo, issue)).collect()))
}

/// `GET …/pulls`.
pub(super) async fn all_pulls(call: Call, Path((owner, name)): Path<(String, String)>, page: Query<Page>) -> Answer {
    let viewer = call.viewer(Scope::ReadRepository)?;
    let world = call.world();
    let repo = &world.repos[&call.repo(&world, (&owner, &name), viewer)?];
    let pulls = repo.issues.values().rev().filter(|issue| issue.closed.is_none());
    let pulls = pulls.filter_map(|issue| Some(shapes::pull(&world, repo, issue, issue.pull.as_ref()?, viewer)));
    Ok(page.cut(pulls.collect()))
}

/// `GET …/issues/{n}`; a pull request is an issue too.
pub(super) async fn one(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let (repo, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    Ok(Json(shapes::issue(&world, repo, issue)).into_response())
}

/// `GET …/pulls/{n}`.
pub(super) async fn pull(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadRepository)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let (repo, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    let pull = issue.pull.as_ref().ok_or(Refusal::NotFound)?;
    Ok(Json(shapes::pull(&world, repo, issue, pull, viewer)).into_response())
}

#[derive(Deserialize)]
pub(super) struct NewIssue {
    #[serde(default)]
    title: String,
    #[serde(default)]
    body: String,
}

/// `POST …/issues`: 422 without a title.
pub(super) async fn open(call: Call, Path((owner, name)): Path<(String, String)>, new: Json<NewIssue>) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    if world.repos[&repo].archived {
        return Err(Refusal::Archived);
    }
    if new.title.trim().is_empty() {
        return Err(Refusal::Invalid("[Title]: Required"));
    }
    let number = world.open(repo, me, &new.title, &new.body, None);
    let (repo, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    Ok((StatusCode::CREATED, Json(shapes::issue(&world, repo, issue))).into_response())
}

#[derive(Deserialize)]
pub(super) struct Change {
    state: Option<String>,
}

/// `PATCH …/issues/{n}` with a `state`: its author's and a writer's right.
pub(super) async fn change(
    call: Call,
    Path((owner, name, number)): Path<(String, String, i64)>,
    change: Json<Change>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    let (at, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    if issue.author != me && world.access(at, Some(me)) < Access::Write {
        return Err(Refusal::Forbidden("user should have permission to edit the issue"));
    }
    if at.archived {
        return Err(Refusal::Archived);
    }
    if let Some(state) = &change.state {
        world.set_closed(repo, number, me, state == "closed");
    }
    let (repo, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    Ok((StatusCode::CREATED, Json(shapes::issue(&world, repo, issue))).into_response())
}

/// `GET …/issues/{n}/timeline`: label changes only; the only place that names the label and who did it.
pub(super) async fn timeline(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let (repo, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    let all: Vec<Value> = issue
        .timeline
        .iter()
        .map(|change| shapes::label_change(&world, repo, change))
        .collect();
    let total = all.len();
    Ok(list(all, total))
}

/// `GET …/issues/{n}/labels`.
pub(super) async fn labels(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    answer_labels(&world, repo, number)
}

#[derive(Deserialize)]
pub(super) struct Labels {
    labels: Vec<Value>,
}

/// `POST …/issues/{n}/labels` by id or by name: unknown ones are ignored in silence, with a 200.
pub(super) async fn add_labels(
    call: Call,
    Path((owner, name, number)): Path<(String, String, i64)>,
    wanted: Json<Labels>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = labelled(&call, &world, (&owner, &name), number, me)?;
    let meant = |value: &Value| {
        let known = &world.repos[&repo].labels;
        let found = known
            .iter()
            .find(|label| value.as_i64() == Some(label.id) || value.as_str() == Some(&label.name));
        found.map(|label| label.id)
    };
    let ids: Vec<i64> = wanted.labels.iter().filter_map(meant).collect();
    world.change_labels(repo, number, me, &ids, true);
    answer_labels(&world, repo, number)
}

/// `DELETE …/issues/{n}/labels/{id}`.
pub(super) async fn remove_label(
    call: Call,
    Path((owner, name, number, id)): Path<(String, String, i64, i64)>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = labelled(&call, &world, (&owner, &name), number, me)?;
    world.change_labels(repo, number, me, &[id], false);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `DELETE …/issues/{n}/labels`.
pub(super) async fn clear_labels(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = labelled(&call, &world, (&owner, &name), number, me)?;
    world.clear_labels(repo, number, me);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn labelled(call: &Call, world: &World, path: (&str, &str), number: i64, me: i64) -> Result<i64, Refusal> {
    let repo = call.repo(world, path, Some(me))?;
    let (at, _) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    if world.access(at, Some(me)) < Access::Write {
        return Err(Refusal::Forbidden("write permission is required"));
    }
    if at.archived { Err(Refusal::Archived) } else { Ok(repo) }
}

fn answer_labels(world: &World, repo: i64, number: i64) -> Answer {
    let (repo, issue): (&Repo, _) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    Ok(Json(shapes::labels(world, repo, &issue.labels)).into_response())
}

#[derive(Deserialize)]
pub(super) struct NewReaction {
    pub(super) content: String,
}

/// `GET …/issues/{n}/reactions`.
pub(super) async fn reactions(call: Call, Path((owner, name, number)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let (_, issue) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    let all: Vec<Value> = issue
        .reactions
        .iter()
        .map(|reaction| shapes::reaction(&world, reaction, issue.updated))
        .collect();
    let total = all.len();
    Ok(list(all, total))
}

/// `POST …/issues/{n}/reactions`: 201, and 200 when it was there; an unknown word is 403. It sends no delivery.
pub(super) async fn react(
    call: Call,
    Path((owner, name, number)): Path<(String, String, i64)>,
    reaction: Json<NewReaction>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    check_reaction(&reaction)?;
    let issue = world
        .repos
        .get_mut(&repo)
        .and_then(|repo| repo.issues.get_mut(&number))
        .ok_or(Refusal::NotFound)?;
    let new = World::react(&mut issue.reactions, me, &reaction.content);
    let at = issue.updated;
    answer_reaction(&world, me, &reaction.content, at, new)
}

pub(super) fn check_reaction(reaction: &NewReaction) -> Result<(), Refusal> {
    if REACTIONS.contains(&reaction.content.as_str()) {
        Ok(())
    } else {
        Err(Refusal::Forbidden("reaction is not allowed"))
    }
}

pub(super) fn answer_reaction(
    world: &World,
    user: i64,
    content: &str,
    at: chrono::DateTime<chrono::Utc>,
    new: bool,
) -> Answer {
    let reaction = crate::forge::Reaction {
        user,
        content: content.to_owned(),
    };
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shapes::reaction(world, &reaction, at))).into_response())
}
