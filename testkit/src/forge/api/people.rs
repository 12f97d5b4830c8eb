//! Who somebody is, and what they may do.

use super::{Answer, Call, Refusal};
use crate::forge::shapes;
use crate::forge::world::{Access, Scope};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;

/// `GET /version`: needs no token.
pub(super) async fn version() -> Answer {
    Ok(Json(json!({ "version": "12.0.0-dev-stub+gitea-1.22.0" })).into_response())
}

/// `GET /user`: 403 for a token without `read:user`.
pub(super) async fn myself(call: Call) -> Answer {
    let me = call.account(Scope::ReadUser)?;
    Ok(Json(shapes::user(&call.world(), me)).into_response())
}

/// `GET /users/{name}`: a renamed person's old name is 404.
pub(super) async fn somebody(call: Call, Path(name): Path<String>) -> Answer {
    call.viewer(Scope::ReadUser)?;
    let world = call.world();
    let id = world.user_named(&name).ok_or(Refusal::NotFound)?.id;
    Ok(Json(shapes::user(&world, id)).into_response())
}

/// `GET …/collaborators/{user}`: 204 or 404. It knows neither levels nor owners.
pub(super) async fn collaborator(call: Call, Path((owner, name, user)): Path<(String, String, String)>) -> Answer {
    let me = call.account(Scope::ReadRepository)?;
    let world = call.world();
    let repo = call.repo(&world, (&owner, &name), Some(me))?;
    let user = world.user_named(&user).ok_or(Refusal::NotFound)?;
    if world.repos[&repo].collaborators.contains_key(&user.id) {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(Refusal::NotFound)
    }
}

/// `GET …/collaborators/{user}/permission`: only an administrator of the site or of the repository may ask about
/// others; everybody may ask about themselves.
pub(super) async fn permission(call: Call, Path((owner, name, user)): Path<(String, String, String)>) -> Answer {
    let me = call.account(Scope::ReadRepository)?;
    let world = call.world();
    let repo = &world.repos[&call.repo(&world, (&owner, &name), Some(me))?];
    let about_me = world.login(me).eq_ignore_ascii_case(&user);
    if !about_me && world.access(repo, Some(me)) < Access::Admin {
        return Err(Refusal::Forbidden(
            "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own",
        ));
    }
    let user = world.user_named(&user).ok_or(Refusal::NotFound)?;
    let word = world.access(repo, Some(user.id)).word();
    let body = json!({ "permission": word, "role_name": word, "user": shapes::user(&world, user.id) });
    Ok(Json(body).into_response())
}
