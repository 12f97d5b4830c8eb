//! The API, base `/api/v1`: who asks, what is refused and how. The calls themselves are in the files below.
//!
//! An error's body is `{"message", "url"}`. A wrong token is 401 wherever it is used; no token is nobody in particular,
//! who may read what is public.

mod comments;
mod issues;
mod people;
mod repos;

use super::Shared;
use super::world::{Access, Found, Scope, World};
use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard};

/// Who asks: an account, and what its token may be used for.
#[derive(Debug, Clone)]
pub(crate) struct Asks {
    pub(crate) user: i64,
    scopes: Vec<Scope>,
}

/// A token that nobody has.
#[derive(Debug)]
pub(crate) struct BadToken;

/// What the API turns away, by status.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 401: no token where one is needed, or a wrong one.
    Unauthorized,
    /// 403.
    Forbidden(&'static str),
    /// 403: the token is not for this.
    Scope(Scope),
    /// 404.
    NotFound,
    /// 301 to this address, under the present name. A client that follows it turns a POST into a GET.
    Moved(String),
    /// 422.
    Invalid(&'static str),
    /// 423.
    Archived,
}

pub(crate) type Answer = Result<Response, Refusal>;

/// One call: the forge, who asks, and the address for a redirect.
pub(crate) struct Call {
    shared: Arc<Shared>,
    asks: Result<Option<Asks>, BadToken>,
    uri: Uri,
}

impl FromRequestParts<Arc<Shared>> for Call {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Infallible> {
        let asks = who_asks(&shared.world(), &parts.headers);
        let uri = parts
            .extensions
            .get::<OriginalUri>()
            .map_or_else(|| parts.uri.clone(), |uri| uri.0.clone());
        Ok(Self {
            shared: Arc::clone(shared),
            asks,
            uri,
        })
    }
}

impl Call {
    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    /// Who asks, who may be nobody in particular; the token, when there is one, must be for `scope`.
    fn viewer(&self, scope: Scope) -> Result<Option<i64>, Refusal> {
        match &self.asks {
            Err(BadToken) => Err(Refusal::Unauthorized),
            Ok(None) => Ok(None),
            Ok(Some(asks)) if asks.scopes.iter().any(|has| has.covers(scope)) => Ok(Some(asks.user)),
            Ok(Some(_)) => Err(Refusal::Scope(scope)),
        }
    }

    /// As [`Self::viewer`], for what nobody in particular may not do.
    fn account(&self, scope: Scope) -> Result<i64, Refusal> {
        self.viewer(scope)?.ok_or(Refusal::Unauthorized)
    }

    /// The repository of a path, if it is there for `viewer`.
    fn repo(&self, world: &World, path: (&str, &str), viewer: Option<i64>) -> Result<i64, Refusal> {
        match world.find(path.0, path.1) {
            Found::Here(id) if world.access(&world.repos[&id], viewer) >= Access::Read => Ok(id),
            Found::Here(_) | Found::Nowhere => Err(Refusal::NotFound),
            Found::Moved(now) => {
                let full = self.uri.to_string();
                let rest = full.split_once("/repos/").map_or("", |(_, path)| path);
                let rest = rest
                    .splitn(3, '/')
                    .nth(2)
                    .map(|rest| format!("/{rest}"))
                    .unwrap_or_default();
                Err(Refusal::Moved(format!("{}/api/v1/repos/{now}{rest}", world.base)))
            }
        }
    }
}

/// Whose token a request carries: `token …`, `Bearer …`, or Basic with the token as the password (or as the name).
pub(crate) fn who_asks(world: &World, headers: &HeaderMap) -> Result<Option<Asks>, BadToken> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let (kind, rest) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or(BadToken)?;
    let known = |token: &str| {
        let found = world.tokens.get(token)?;
        Some(Asks {
            user: found.user,
            scopes: found.scopes.clone(),
        })
    };
    let found = match kind.to_ascii_lowercase().as_str() {
        "token" | "bearer" => known(rest.trim()),
        "basic" => {
            let pair = STANDARD
                .decode(rest.trim())
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            pair.and_then(|pair| {
                let (name, password) = pair.split_once(':')?;
                known(password).or_else(|| known(name))
            })
        }
        _ => None,
    };
    found.map(Some).ok_or(BadToken)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthorized => message(StatusCode::UNAUTHORIZED, "invalid username, password or token"),
            Self::Forbidden(why) => message(StatusCode::FORBIDDEN, why),
            Self::Scope(scope) => {
                let why = format!(
                    "token does not have at least one of required scope(s): [{}]",
                    scope.word()
                );
                message(StatusCode::FORBIDDEN, &why)
            }
            Self::NotFound => message(StatusCode::NOT_FOUND, "The target couldn't be found."),
            Self::Moved(now) => redirect(&now),
            Self::Invalid(why) => message(StatusCode::UNPROCESSABLE_ENTITY, why),
            Self::Archived => message(StatusCode::LOCKED, "This repo is archived"),
        }
    }
}

pub(crate) fn message(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "message": text, "url": "/api/swagger" }))).into_response()
}

pub(crate) fn redirect(to: &str) -> Response {
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, location)]).into_response()
}

/// A list, with its whole length in the header that Forgejo has for it.
fn list(items: Vec<Value>, total: usize) -> Response {
    (
        [(HeaderName::from_static("x-total-count"), HeaderValue::from(total))],
        Json(items),
    )
        .into_response()
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    let comments = "/repos/{owner}/{repo}/issues/{number}/comments";
    let comment = "/repos/{owner}/{repo}/issues/comments/{id}";
    let issue = "/repos/{owner}/{repo}/issues/{number}";
    Router::new()
        .route("/version", get(people::version))
        .route("/user", get(people::myself))
        .route("/users/{name}", get(people::somebody))
        .route("/repositories/{id}", get(repos::by_id))
        .route("/repos/{owner}/{repo}", get(repos::by_path))
        .route("/repos/{owner}/{repo}/branches/{*branch}", get(repos::branch))
        .route("/repos/{owner}/{repo}/collaborators/{user}", get(people::collaborator))
        .route(
            "/repos/{owner}/{repo}/collaborators/{user}/permission",
            get(people::permission),
        )
        .route("/repos/{owner}/{repo}/hooks", get(repos::hooks).post(repos::add_hook))
        .route("/repos/{owner}/{repo}/hooks/{id}/tests", post(repos::test_hook))
        .route("/repos/{owner}/{repo}/labels", get(repos::labels))
        .route("/repos/{owner}/{repo}/issues", get(issues::all).post(issues::open))
        .route(issue, get(issues::one).patch(issues::change))
        .route("/repos/{owner}/{repo}/issues/{number}/timeline", get(issues::timeline))
        .route(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            get(issues::labels)
                .post(issues::add_labels)
                .delete(issues::clear_labels),
        )
        .route(
            "/repos/{owner}/{repo}/issues/{number}/labels/{id}",
            axum::routing::delete(issues::remove_label),
        )
        .route(
            "/repos/{owner}/{repo}/issues/{number}/reactions",
            get(issues::reactions).post(issues::react),
        )
        .route("/repos/{owner}/{repo}/pulls", get(issues::all_pulls))
        .route("/repos/{owner}/{repo}/pulls/{number}", get(issues::pull))
        .route(comments, get(comments::of_issue).post(comments::write))
        .route("/repos/{owner}/{repo}/issues/comments", get(comments::of_repository))
        .route(
            comment,
            patch(comments::edit).get(comments::one).delete(comments::remove),
        )
        .route(
            &format!("{comment}/reactions"),
            get(comments::reactions).post(comments::react),
        )
        .fallback(async || Refusal::NotFound)
}
