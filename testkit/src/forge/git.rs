//! Real bare repositories on disk, and git's smart HTTP over them through `git http-backend`.
//!
//! Commits are made with `git fast-import`: no work tree, dates that do not depend on the clock.

use super::Shared;
use super::api::{Asks, Refusal, message, redirect, who_asks};
use super::world::{Access, Found};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path as UrlPath, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// One path of a commit.
#[derive(Debug, Clone)]
pub struct File {
    path: String,
    mode: &'static str,
    content: Vec<u8>,
}

impl File {
    /// An ordinary file.
    pub fn text(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.to_owned(),
            mode: "100644",
            content: content.into(),
        }
    }

    /// An executable file.
    pub fn program(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.to_owned(),
            mode: "100755",
            content: content.into(),
        }
    }

    /// A symbolic link.
    pub fn link(path: &str, to: &str) -> Self {
        Self {
            path: path.to_owned(),
            mode: "120000",
            content: to.as_bytes().to_vec(),
        }
    }

    /// Takes the path away.
    pub fn removed(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            mode: "",
            content: Vec::new(),
        }
    }
}

/// A git command of our own: no configuration of the machine or of a user.
fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(dir)
        .env_remove("GIT_DIR")
        .envs(ENVIRONMENT)
        .stdin(Stdio::null());
    git
}

const ENVIRONMENT: [(&str, &str); 11] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    ("GIT_CONFIG_KEY_1", "uploadpack.allowAnySHA1InWant"),
    ("GIT_CONFIG_VALUE_1", "true"),
    ("GIT_CONFIG_KEY_2", "uploadpack.allowFilter"),
    ("GIT_CONFIG_VALUE_2", "true"),
    ("GIT_HTTP_EXPORT_ALL", "1"),
];

/// When the first commit of a repository was made, in seconds; each later one is a minute younger.
const FIRST_COMMIT: i64 = 1_764_500_000;

fn run(command: &mut Command, what: &str) -> String {
    let run = command
        .output()
        .unwrap_or_else(|error| panic!("{what}: git cannot be started: {error}"));
    assert!(run.status.success(), "{what}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).trim().to_owned()
}

pub(crate) fn init(dir: &Path, branch: &str) {
    std::fs::create_dir_all(dir).unwrap_or_else(|error| panic!("{} cannot be made: {error}", dir.display()));
    run(
        git(dir).args(["init", "-q", "--bare", "--initial-branch", branch, "."]),
        "git init",
    );
    run(git(dir).args(["config", "http.receivepack", "true"]), "git config");
}

/// The commit that a branch, or anything else that git reads as one, stands for.
pub(crate) fn commit_of(dir: &Path, name: &str) -> Option<String> {
    let found = git(dir)
        .args(["rev-parse", "-q", "--verify", &format!("{name}^{{commit}}")])
        .output()
        .ok()?;
    found
        .status
        .success()
        .then(|| String::from_utf8_lossy(&found.stdout).trim().to_owned())
}

/// Adds a commit to a branch, which is made from `from` when it is new. Gives the commit's id.
pub(crate) fn commit(dir: &Path, branch: &str, from: &str, files: &[File], message: &str) -> String {
    let reference = format!("refs/heads/{branch}");
    let parent = commit_of(dir, &reference).or_else(|| commit_of(dir, &format!("refs/heads/{from}")));
    let before = parent.as_ref().map(|parent| {
        run(git(dir).args(["show", "-s", "--format=%ct", parent]), "git show")
            .parse::<i64>()
            .unwrap_or(FIRST_COMMIT)
    });
    let date = before.map_or(FIRST_COMMIT, |before| before + 60);
    let mut stream = format!(
        "commit {reference}\ncommitter Mira <mira@example.org> {date} +0000\ndata {}\n{message}\n",
        message.len()
    )
    .into_bytes();
    if let Some(parent) = parent {
        stream.extend(format!("from {parent}\n").bytes());
    }
    for File { path, mode, content } in files {
        if mode.is_empty() {
            stream.extend(format!("D {path}\n").bytes());
        } else {
            stream.extend(format!("M {mode} inline {path}\ndata {}\n", content.len()).bytes());
            stream.extend(content);
            stream.push(b'\n');
        }
    }
    let mut import = git(dir)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("git fast-import cannot be started: {error}"));
    let fed = import
        .stdin
        .take()
        .is_some_and(|mut pipe| pipe.write_all(&stream).is_ok());
    let ended = import.wait().is_ok_and(|status| status.success());
    assert!(fed && ended, "git fast-import refused the commit `{message}`");
    commit_of(dir, &reference).unwrap_or_else(|| panic!("the commit `{message}` is not there"))
}

pub(crate) fn set_ref(dir: &Path, reference: &str, commit: &str) {
    run(git(dir).args(["update-ref", reference, commit]), "git update-ref");
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/{owner}/{name}/{*rest}", get(serve).post(serve))
}

/// `GET` and `POST` below `/{owner}/{name}.git/`, checked as Forgejo checks, then handed to git's own program.
async fn serve(
    State(shared): State<Arc<Shared>>,
    OriginalUri(uri): OriginalUri,
    UrlPath((owner, name, rest)): UrlPath<(String, String, String)>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().unwrap_or("");
    let pushes = rest == "git-receive-pack" || query.contains("service=git-receive-pack");
    let dir = match admit(&shared, &owner, &name, &headers, pushes) {
        Ok(dir) => dir,
        Err(refusal) => return refusal.answer(&shared, &uri, &name),
    };
    match backend(&dir, &method, &rest, query, &headers, &body).await {
        Ok(response) => response,
        Err(error) => message(StatusCode::INTERNAL_SERVER_ERROR, &format!("git http-backend: {error}")),
    }
}

enum Refused {
    AskForAName,
    /// It is called `owner/name` now.
    Moved(String),
    Plain(Refusal),
}

impl Refused {
    fn answer(self, shared: &Shared, uri: &axum::http::Uri, name: &str) -> Response {
        match self {
            Self::AskForAName => {
                let mut response = message(StatusCode::UNAUTHORIZED, "sign in first");
                let realm = HeaderValue::from_static("Basic realm=\"Gitea\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
                response
            }
            Self::Moved(now) => {
                let rest = uri.to_string();
                let rest = rest
                    .find(&format!("/{name}/"))
                    .map_or("", |at| &rest[at + name.len() + 1..]);
                redirect(&format!("{}/{now}.git{rest}", shared.world().base))
            }
            Self::Plain(refusal) => refusal.into_response(),
        }
    }
}

fn admit(
    shared: &Shared,
    owner: &str,
    name: &str,
    headers: &HeaderMap,
    pushes: bool,
) -> Result<std::path::PathBuf, Refused> {
    let world = shared.world();
    let asks: Option<Asks> = who_asks(&world, headers).map_err(|_| Refused::AskForAName)?;
    let repo = match world.find(owner, name.strip_suffix(".git").unwrap_or(name)) {
        Found::Here(id) => &world.repos[&id],
        Found::Moved(now) => return Err(Refused::Moved(now)),
        // Who may not know is asked for a name, so that a private repository and none at all look the same.
        Found::Nowhere if asks.is_none() => return Err(Refused::AskForAName),
        Found::Nowhere => return Err(Refused::Plain(Refusal::NotFound)),
    };
    let access = world.access(repo, asks.as_ref().map(|asks| asks.user));
    let wanted = if pushes { Access::Write } else { Access::Read };
    match asks {
        None if pushes || access < wanted => Err(Refused::AskForAName),
        Some(_) if access < Access::Read => Err(Refused::Plain(Refusal::NotFound)),
        Some(_) if access < wanted => Err(Refused::Plain(Refusal::Forbidden("you may not push here"))),
        Some(_) if pushes && repo.archived => Err(Refused::Plain(Refusal::Forbidden("the repository is archived"))),
        None | Some(_) => Ok(repo.dir.clone()),
    }
}

async fn backend(
    dir: &Path,
    method: &Method,
    rest: &str,
    query: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> std::io::Result<Response> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_owned()
    };
    let mut git = tokio::process::Command::new("git");
    git.arg("http-backend")
        .envs(ENVIRONMENT)
        .env("GIT_PROJECT_ROOT", dir)
        .env("PATH_INFO", format!("/{rest}"))
        .env("REQUEST_METHOD", method.as_str())
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", text("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
        .env("GIT_PROTOCOL", text("git-protocol"))
        .env("REMOTE_USER", "stub")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = git.spawn()?;
    let mut pipe = child.stdin.take();
    let feed = async {
        if let Some(pipe) = &mut pipe {
            // Git may have heard enough before the end.
            let _ = pipe.write_all(body).await;
        }
        drop(pipe.take());
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    Ok(from_cgi(output?.stdout))
}

/// A CGI answer: headers, an empty line, the body. A missing `Status` is 200.
fn from_cgi(answer: Vec<u8>) -> Response {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return message(StatusCode::INTERNAL_SERVER_ERROR, "git http-backend answered nothing");
    };
    let mut response = Response::new(Body::from(answer[end + 4..].to_vec()));
    for line in String::from_utf8_lossy(&answer[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok());
            *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        } else if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
