//! Repositories, their branches, labels and hooks.

use super::{Answer, Call, Refusal, list};
use crate::forge::git;
use crate::forge::hooks::{Hook, Of};
use crate::forge::shapes;
use crate::forge::world::{Access, Scope, World};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

/// `GET /repositories/{id}`: where a repository is now, whatever it was called.
pub(super) async fn by_id(call: Call, Path(id): Path<i64>) -> Answer {
    let viewer = call.viewer(Scope::ReadRepository)?;
    let world = call.world();
    let repo = world
        .repos
        .get(&id)
        .filter(|repo| world.access(repo, viewer) >= Access::Read);
    let repo = repo.ok_or(Refusal::NotFound)?;
    Ok(Json(shapes::repo(&world, repo, viewer)).into_response())
}

/// `GET /repos/{owner}/{repo}`.
pub(super) async fn by_path(call: Call, Path((owner, name)): Path<(String, String)>) -> Answer {
    let viewer = call.viewer(Scope::ReadRepository)?;
    let world = call.world();
    let id = call.repo(&world, (&owner, &name), viewer)?;
    Ok(Json(shapes::repo(&world, &world.repos[&id], viewer)).into_response())
}

/// `GET …/branches/{name}`.
pub(super) async fn branch(call: Call, Path((owner, name, branch)): Path<(String, String, String)>) -> Answer {
    let viewer = call.viewer(Scope::ReadRepository)?;
    let world = call.world();
    let repo = &world.repos[&call.repo(&world, (&owner, &name), viewer)?];
    let commit = git::commit_of(&repo.dir, &format!("refs/heads/{branch}")).ok_or(Refusal::NotFound)?;
    let may_push = world.access(repo, viewer) >= Access::Write && !repo.archived;
    let url = format!("{}/{}/commit/{commit}", world.base, world.full_name(repo));
    let body = json!({
        "name": branch, "commit": { "id": commit, "message": "", "url": url, "added": null, "removed": null,
        "modified": null }, "protected": false, "required_approvals": 0, "enable_status_check": false,
        "status_check_contexts": [], "user_can_push": may_push, "user_can_merge": may_push,
        "effective_branch_protection_name": "",
    });
    Ok(Json(body).into_response())
}

/// `GET …/labels`.
pub(super) async fn labels(call: Call, Path((owner, name)): Path<(String, String)>) -> Answer {
    let viewer = call.viewer(Scope::ReadIssue)?;
    let world = call.world();
    let repo = &world.repos[&call.repo(&world, (&owner, &name), viewer)?];
    let all: Vec<Value> = repo
        .labels
        .iter()
        .map(|label| shapes::label(&world, repo, label))
        .collect();
    let total = all.len();
    Ok(list(all, total))
}

/// `GET …/hooks`: repository administrators only; the secret is never given back.
pub(super) async fn hooks(call: Call, Path((owner, name)): Path<(String, String)>) -> Answer {
    let me = call.account(Scope::ReadRepository)?;
    let world = call.world();
    let repo = administered(&call, &world, (&owner, &name), me)?;
    let all: Vec<Value> = world
        .hooks
        .values()
        .filter(|hook| hook.of == Of::Repository(repo))
        .map(shape)
        .collect();
    let total = all.len();
    Ok(list(all, total))
}

#[derive(Deserialize)]
pub(super) struct NewHook {
    #[serde(default)]
    active: bool,
    config: HookConfig,
}

#[derive(Deserialize)]
struct HookConfig {
    url: String,
    #[serde(default)]
    secret: String,
}

/// `POST …/hooks`.
pub(super) async fn add_hook(call: Call, Path((owner, name)): Path<(String, String)>, hook: Json<NewHook>) -> Answer {
    let me = call.account(Scope::WriteRepository)?;
    let mut world = call.world();
    let repo = administered(&call, &world, (&owner, &name), me)?;
    let id = world.add_hook(Of::Repository(repo), &hook.config.url, &hook.config.secret);
    let made = world.hooks.get_mut(&id).ok_or(Refusal::NotFound)?;
    made.active = hook.active;
    Ok((StatusCode::CREATED, Json(shape(made))).into_response())
}

/// `POST …/hooks/{id}/tests`.
pub(super) async fn test_hook(call: Call, Path((owner, name, id)): Path<(String, String, i64)>) -> Answer {
    let me = call.account(Scope::WriteRepository)?;
    let mut world = call.world();
    let repo = administered(&call, &world, (&owner, &name), me)?;
    if world.hooks.get(&id).is_none_or(|hook| hook.of != Of::Repository(repo)) {
        return Err(Refusal::NotFound);
    }
    world.test_hook(id);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn administered(call: &Call, world: &World, path: (&str, &str), me: i64) -> Result<i64, Refusal> {
    let id = call.repo(world, path, Some(me))?;
    if world.access(&world.repos[&id], Some(me)) < Access::Admin {
        return Err(Refusal::Forbidden(
            "user should be an owner or a collaborator with admin write of a repository",
        ));
    }
    Ok(id)
}

fn shape(hook: &Hook) -> Value {
    json!({
        "id": hook.id, "type": "forgejo", "active": hook.active, "branch_filter": "", "events": [],
        "authorization_header": "", "config": { "content_type": "json", "url": hook.url }, "url": hook.url,
    })
}
