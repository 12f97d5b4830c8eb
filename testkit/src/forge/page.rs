//! Pages for a browser: repositories, issues, one thread, and a form to write the next comment as one of the people.
//!
//! Everything works without JavaScript; a few lines of it put new comments into an open page. Whatever people wrote is
//! Markdown rendered without raw HTML and without images, under a policy that loads nothing from elsewhere. A page of
//! another site can neither read these (the `Host` must be this machine's) nor post the form.

use super::Shared;
mod text;

use super::world::{Comment, Found, Issue, Reaction, Repo, World};
use axum::extract::{Form, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use text::{emoji, escape, markdown, when};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/live.js");
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The people that the form offers, those who are there: login, and what they are here.
const SPEAKERS: [(&str, &str); 4] = [
    ("mira", "may write"),
    ("olga", "owner"),
    ("ravi", "may only read"),
    ("sol", "a stranger"),
];

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(repositories))
        .route(
            "/-/page.css",
            get(async || ([(header::CONTENT_TYPE, "text/css")], STYLE)),
        )
        .route(
            "/-/live.js",
            get(async || ([(header::CONTENT_TYPE, "text/javascript")], SCRIPT)),
        )
        .route("/{owner}/{name}", get(issues))
        .route("/{owner}/{name}/issues", get(issues))
        .route("/{owner}/{name}/issues/{number}", get(thread))
        .route("/{owner}/{name}/pulls/{number}", get(thread))
        .route("/{owner}/{name}/issues/{number}/comment", axum::routing::post(write))
        .route("/demo/comment", axum::routing::post(write_by_program))
        .layer(middleware::from_fn(guard))
}

/// Keeps other sites out: this is a forge of one machine.
async fn guard(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let host = text("host").rsplit_once(':').map_or(text("host"), |(host, _)| host);
    let foreign = matches!(text("sec-fetch-site"), "cross-site" | "same-site") && request.method() != "GET";
    if !matches!(host, "127.0.0.1" | "localhost" | "[::1]") || foreign {
        return (StatusCode::FORBIDDEN, "this stub forge answers to its own machine only").into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        header::HeaderValue::from_static(POLICY),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

async fn repositories(State(shared): State<Arc<Shared>>) -> Response {
    let world = shared.world();
    let mut main = String::from("<h1>Repositories</h1><ul class=list>");
    for repo in world.repos.values().filter(|repo| !repo.private) {
        let full = escape(&world.full_name(repo));
        let open = repo.issues.values().filter(|issue| issue.closed.is_none()).count();
        let about = escape(&repo.description);
        let _ = write!(
            main,
            "<li><a href=\"/{full}/issues\"><b>{full}</b></a><p>{about}</p><small>{open} open</small></li>"
        );
    }
    main.push_str("</ul>");
    page("Repositories", "", &main)
}

async fn issues(State(shared): State<Arc<Shared>>, Path((owner, name)): Path<(String, String)>) -> Response {
    let world = shared.world();
    let Some(repo) = public(&world, &owner, &name) else {
        return nothing();
    };
    let full = escape(&world.full_name(repo));
    let mut main = format!(
        "<h1>{full}</h1><p class=about>{}</p><ul class=list>",
        escape(&repo.description)
    );
    for issue in repo.issues.values().rev() {
        let comments = world.comments_of(repo.id, Some(issue.number)).count();
        let _ = write!(
            main,
            "<li>{}<a href=\"/{full}/issues/{n}\"><b>{}</b></a><small>#{n} by {} · {} · {comments} comment{}</small></li>",
            badge(issue),
            escape(&issue.title),
            escape(world.login(issue.author)),
            when(issue.created),
            if comments == 1 { "" } else { "s" },
            n = issue.number,
        );
    }
    main.push_str("</ul>");
    page(&full, &format!("<a href=\"/\">Repositories</a> / {full}"), &main)
}

#[derive(Deserialize)]
struct Speaker {
    #[serde(default, rename = "as")]
    login: String,
}

async fn thread(
    State(shared): State<Arc<Shared>>,
    Path((owner, name, number)): Path<(String, String, i64)>,
    speaker: Query<Speaker>,
) -> Response {
    let world = shared.world();
    let Some(repo) = public(&world, &owner, &name) else {
        return nothing();
    };
    let Some(issue) = repo.issues.get(&number) else {
        return nothing();
    };
    let full = escape(&world.full_name(repo));
    let mut main = format!(
        "<h1>{} <span class=number>#{number}</span></h1><p class=about>{} <b>{}</b> opened this {}</p><section id=thread>",
        escape(&issue.title),
        badge(issue),
        escape(world.login(issue.author)),
        when(issue.created),
    );
    let opening = Entry {
        author: issue.author,
        at: issue.created,
        body: &issue.body,
        reactions: &issue.reactions,
    };
    main.push_str(&entry(&world, repo, "", &opening, false));
    for comment in world.comments_of(repo.id, Some(number)) {
        let Comment {
            id,
            author,
            created,
            updated,
            body,
            reactions,
            ..
        } = comment;
        let shown = Entry {
            author: *author,
            at: *created,
            body,
            reactions,
        };
        main.push_str(&entry(
            &world,
            repo,
            &format!("issuecomment-{id}"),
            &shown,
            updated > created,
        ));
    }
    main.push_str("</section>");
    main.push_str(&form(
        &world,
        &format!("/{full}/issues/{number}/comment"),
        &speaker.login,
    ));
    let crumbs = format!("<a href=\"/\">Repositories</a> / <a href=\"/{full}/issues\">{full}</a> / #{number}");
    page(&format!("{} · #{number}", escape(&issue.title)), &crumbs, &main)
}

struct Entry<'a> {
    author: i64,
    at: chrono::DateTime<chrono::Utc>,
    body: &'a str,
    reactions: &'a [Reaction],
}

fn entry(world: &World, repo: &Repo, id: &str, shown: &Entry<'_>, edited: bool) -> String {
    let login = escape(world.login(shown.author));
    let initial = login.chars().next().unwrap_or('?').to_uppercase();
    let role = world.access(repo, Some(shown.author)).word();
    let mut html = format!(
        "<article id=\"{id}\"><header><span class=face data-who=\"{}\">{initial}</span><b>{login}</b><span class=role>{role}</span>\
         <small>{}{}</small></header><div class=text>{}</div>",
        shown.author % 6,
        when(shown.at),
        if edited { " · edited" } else { "" },
        markdown(shown.body),
    );
    if !shown.reactions.is_empty() {
        html.push_str("<footer>");
        for reaction in shown.reactions {
            let who = escape(world.login(reaction.user));
            let _ = write!(
                html,
                "<span class=reaction title=\"{who}\">{} {who}</span>",
                emoji(&reaction.content)
            );
        }
        html.push_str("</footer>");
    }
    html.push_str("</article>");
    html
}

fn form(world: &World, action: &str, speaker: &str) -> String {
    let mut html = format!("<form method=post action=\"{action}\"><h2>Write a comment</h2><div class=who>");
    let there: Vec<_> = SPEAKERS
        .iter()
        .filter(|(login, _)| world.user_named(login).is_some())
        .collect();
    let chosen = there
        .iter()
        .find(|(login, _)| *login == speaker)
        .or(there.first())
        .map(|(login, _)| *login);
    for (login, role) in there {
        let checked = if Some(*login) == chosen { " checked" } else { "" };
        let _ = write!(
            html,
            "<label><input type=radio name=as value={login}{checked}> as <b>{login}</b> <small>({role})</small></label>"
        );
    }
    html.push_str(
        "</div><textarea name=body rows=4 required aria-label=\"Comment\" placeholder=\"@pi triage\"></textarea>\
         <p><button>Comment</button> <small>New comments appear by themselves.</small>\
         <noscript><small>Without JavaScript: load the page again to see what is new.</small></noscript></p></form>",
    );
    html
}

#[derive(Deserialize)]
struct Written {
    #[serde(rename = "as")]
    login: String,
    body: String,
}

async fn write(
    State(shared): State<Arc<Shared>>,
    Path((owner, name, number)): Path<(String, String, i64)>,
    written: Form<Written>,
) -> Response {
    match add(&shared, (&owner, &name), number, &written.login, &written.body) {
        Ok(id) => {
            let to = format!("/{owner}/{name}/issues/{number}?as={}#issuecomment-{id}", written.login);
            Redirect::to(&to).into_response()
        }
        Err(not_written) => not_written.into_response(),
    }
}

#[derive(Deserialize)]
struct ByProgram {
    #[serde(rename = "as")]
    login: String,
    issue: i64,
    body: String,
}

/// `POST /demo/comment` with `{"as", "issue", "body"}`: the form for programs, on the sample repository.
async fn write_by_program(State(shared): State<Arc<Shared>>, written: Json<ByProgram>) -> Response {
    let ByProgram { login, issue, body } = &*written;
    match add(&shared, ("lab", "widgets"), *issue, login, body) {
        Ok(id) => {
            let url = format!("{}/lab/widgets/issues/{issue}#issuecomment-{id}", shared.world().base);
            (StatusCode::CREATED, Json(json!({ "id": id, "url": url }))).into_response()
        }
        Err(not_written) => not_written.into_response(),
    }
}

/// Why a comment was not written.
enum NotWritten {
    NoSuchThread,
    NoSuchPerson,
    Empty,
}

impl IntoResponse for NotWritten {
    fn into_response(self) -> Response {
        let why = match self {
            Self::NoSuchThread => return nothing(),
            Self::NoSuchPerson => "nobody of that name may write here",
            Self::Empty => "an empty comment says nothing",
        };
        (StatusCode::UNPROCESSABLE_ENTITY, why).into_response()
    }
}

/// Writes a comment as one of the people.
fn add(shared: &Shared, path: (&str, &str), number: i64, login: &str, body: &str) -> Result<i64, NotWritten> {
    let mut world = shared.world();
    let repo = public(&world, path.0, path.1)
        .filter(|repo| repo.issues.contains_key(&number))
        .map(|repo| repo.id);
    let repo = repo.ok_or(NotWritten::NoSuchThread)?;
    let speaker = SPEAKERS.iter().find(|(speaker, _)| *speaker == login);
    let author = speaker
        .and_then(|(speaker, _)| world.user_named(speaker))
        .map(|user| user.id);
    let author = author.ok_or(NotWritten::NoSuchPerson)?;
    if body.trim().is_empty() {
        return Err(NotWritten::Empty);
    }
    let id = world.add_comment(repo, number, author, &body.replace("\r\n", "\n"));
    drop(world);
    shared.changed();
    Ok(id)
}

fn public<'a>(world: &'a World, owner: &str, name: &str) -> Option<&'a Repo> {
    match world.find(owner, name) {
        Found::Here(id) => world.repos.get(&id).filter(|repo| !repo.private),
        Found::Moved(_) | Found::Nowhere => None,
    }
}

fn page(title: &str, crumbs: &str, main: &str) -> Response {
    Html(format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><link rel=stylesheet href=\"/-/page.css\"><script src=\"/-/live.js\" defer></script></head>\
         <body><nav><b class=brand>stub forge</b><span>{crumbs}</span></nav><main>{main}</main></body></html>"
    ))
    .into_response()
}

fn nothing() -> Response {
    (
        StatusCode::NOT_FOUND,
        page(
            "Not found",
            "<a href=\"/\">Repositories</a>",
            "<h1>There is nothing here</h1>",
        ),
    )
        .into_response()
}

fn badge(issue: &Issue) -> &'static str {
    match (&issue.closed, &issue.pull) {
        (None, None) => "<span class=\"badge open\">open</span>",
        (Some(_), None) => "<span class=\"badge closed\">closed</span>",
        (None, Some(_)) => "<span class=\"badge open\">pull request</span>",
        (Some(_), Some(_)) => "<span class=\"badge closed\">closed pull request</span>",
    }
}
