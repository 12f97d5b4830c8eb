//! Comments: written, edited, listed, read back by id; and reactions to them.

use super::issues::{NewReaction, answer_reaction, check_reaction};
use super::{Answer, Call, Refusal, list};
use crate::forge::shapes;
use crate::forge::world::{Access, Comment, Scope, World};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Since {
    since: Option<DateTime<Utc>>,
    before: Option<DateTime<Utc>>,
    page: Option<usize>,
    limit: Option<usize>,
}

impl Since {
    fn fits(&self, comment: &Comment) -> bool {
        self.since.is_none_or(|since| comment.updated >= since)
            && self.before.is_none_or(|before| comment.updated <= before)
    }
}

/// `GET …/issues/{n}/comments?since=`: all of them; `limit` is ignored here, as Forgejo does.
pub(super) async fn of_issue(
    call: Call,
    Path((owner, name, number)): Path<(String, String, i64)>,
    since: Query<Since>,
) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    world.issue(repo, number).ok_or(Refusal::NotFound)?;
    let all = world
        .comments_of(repo, Some(number))
        .filter(|comment| since.fits(comment));
    let all: Vec<Value> = all.map(|comment| shapes::comment(&world, comment)).collect();
    let total = all.len();
    Ok(list(all, total))
}

/// `GET …/issues/comments?since=`: of the whole repository, in pages.
pub(super) async fn of_repository(
    call: Call,
    Path((owner, name)): Path<(String, String)>,
    since: Query<Since>,
) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let all: Vec<&Comment> = world
        .comments_of(repo, None)
        .filter(|comment| since.fits(comment))
        .collect();
    let limit = since.limit.unwrap_or(30).clamp(1, 50);
    let from = since.page.unwrap_or(1).max(1).saturating_sub(1) * limit;
    let page = all
        .iter()
        .skip(from)
        .take(limit)
        .map(|comment| shapes::comment(&world, comment))
        .collect();
    Ok(list(page, all.len()))
}

#[derive(Deserialize)]
pub(super) struct Body {
    #[serde(default)]
    body: String,
}

/// `POST …/issues/{n}/comments`: 201. The forge then sends the comment to every hook, our own included.
pub(super) async fn write(
    call: Call,
    Path((owner, name, number)): Path<(String, String, i64)>,
    new: Json<Body>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    let (at, _) = world.issue(repo, number).ok_or(Refusal::NotFound)?;
    if at.archived {
        return Err(Refusal::Archived);
    }
    if new.body.trim().is_empty() {
        return Err(Refusal::Invalid("[Body]: Required"));
    }
    let id = world.add_comment(repo, number, me, &new.body);
    Ok((StatusCode::CREATED, Json(shapes::comment(&world, &world.comments[&id]))).into_response())
}

/// `GET …/issues/comments/{id}`: 404 also when it belongs to another repository.
pub(super) async fn one(call: Call, Path((owner, name, id)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    Ok(Json(shapes::comment(&world, comment_of(&world, repo, id)?)).into_response())
}

/// `PATCH …/issues/comments/{id}`: the author's right, and every writer's.
pub(super) async fn edit(call: Call, Path((owner, name, id)): Path<(String, String, i64)>, new: Json<Body>) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    may_change(&world, comment_of(&world, repo, id)?, me)?;
    if new.body.trim().is_empty() {
        return Err(Refusal::Invalid("[Body]: Required"));
    }
    world.change_comment(id, me, &new.body);
    Ok(Json(shapes::comment(&world, comment_of(&world, repo, id)?)).into_response())
}

/// `DELETE …/issues/comments/{id}`.
pub(super) async fn remove(call: Call, Path((owner, name, id)): Path<(String, String, i64)>) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    may_change(&world, comment_of(&world, repo, id)?, me)?;
    world.remove_comment(id, me);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET …/issues/comments/{id}/reactions`.
pub(super) async fn reactions(call: Call, Path((owner, name, id)): Path<(String, String, i64)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), viewer)?;
    let comment = comment_of(&world, repo, id)?;
    let all: Vec<Value> = comment
        .reactions
        .iter()
        .map(|reaction| shapes::reaction(&world, reaction, comment.updated))
        .collect();
    let total = all.len();
    Ok(list(all, total))
}

/// `POST …/issues/comments/{id}/reactions`: 201, and 200 when it was there; an unknown word is 403.
pub(super) async fn react(
    call: Call,
    Path((owner, name, id)): Path<(String, String, i64)>,
    reaction: Json<NewReaction>,
) -> Answer {
    let me = call.account(Scope::WriteIssue)?;
    let mut world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    comment_of(&world, repo, id)?;
    check_reaction(&reaction)?;
    let comment = world.comments.get_mut(&id).ok_or(Refusal::NotFound)?;
    let new = World::react(&mut comment.reactions, me, &reaction.content);
    let at = comment.updated;
    answer_reaction(&world, me, &reaction.content, at, new)
}

fn comment_of(world: &World, repo: i64, id: i64) -> Result<&Comment, Refusal> {
    world
        .comments
        .get(&id)
        .filter(|comment| comment.repo == repo)
        .ok_or(Refusal::NotFound)
}

fn may_change(world: &World, comment: &Comment, me: i64) -> Result<(), Refusal> {
    let repo = &world.repos[&comment.repo];
    if repo.archived {
        return Err(Refusal::Archived);
    }
    if comment.author != me && world.access(repo, Some(me)) < Access::Write {
        return Err(Refusal::Forbidden(
            "user should be the author, or have write permission",
        ));
    }
    Ok(())
}
