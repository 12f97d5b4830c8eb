//! What can go wrong with a forge, on demand, and the log of who called what.

use super::Shared;
use super::api::who_asks;
use crate::server::Cut;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// One call of the API or of git as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCall {
    /// The method.
    pub method: String,
    /// The path after the host, query included.
    pub path: String,
    /// Whose token it carried, if a known one.
    pub who: Option<String>,
    /// The body as text; empty for git's.
    pub body: String,
    /// What was answered; `None` when nothing was.
    pub status: Option<u16>,
}

/// Something that goes wrong: what, on which calls, and how often.
///
/// ```
/// use testkit::forge::Fault;
/// let lost = Fault::lose_the_answer().on("POST", "/comments").times(1);
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    what: What,
    method: Option<Method>,
    path: String,
    left: Option<u32>,
}

#[derive(Debug, Clone)]
enum What {
    Status(StatusCode),
    Page(StatusCode),
    Hang,
    Slow(Duration),
    CutBefore,
    CutAfter,
}

impl Fault {
    /// Answers this status with an error's JSON; nothing is performed.
    pub fn status(status: u16) -> Self {
        Self::new(What::Status(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        ))
    }

    /// Answers this status with an HTML page, as a proxy in front of a forge does; nothing is performed.
    pub fn page(status: u16) -> Self {
        Self::new(What::Page(
            StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
        ))
    }

    /// 403 to everybody.
    pub fn forbidden() -> Self {
        Self::status(403)
    }

    /// Takes the request and never answers; nothing is performed.
    pub fn hang() -> Self {
        Self::new(What::Hang)
    }

    /// Performs and answers, only later.
    pub fn slow(by: Duration) -> Self {
        Self::new(What::Slow(by))
    }

    /// Closes the connection before anything is performed.
    pub fn cut() -> Self {
        Self::new(What::CutBefore)
    }

    /// Performs the request, then closes the connection without an answer: what a caller sees who dies during a POST.
    pub fn lose_the_answer() -> Self {
        Self::new(What::CutAfter)
    }

    fn new(what: What) -> Self {
        Self {
            what,
            method: None,
            path: String::new(),
            left: None,
        }
    }

    /// Only on calls with this method whose path contains this text.
    #[must_use]
    pub fn on(mut self, method: &str, path: &str) -> Self {
        self.method = method.parse().ok();
        path.clone_into(&mut self.path);
        self
    }

    /// Only on calls whose path contains this text.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Only so many times; then it is as if it had never been.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.left = Some(times);
        self
    }

    fn applies(&self, method: &Method, path: &str) -> bool {
        self.left != Some(0) && self.method.as_ref().is_none_or(|wanted| wanted == method) && path.contains(&self.path)
    }
}

/// Writes each call down and does to it what the faults say.
pub(super) async fn watch(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let asked = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |uri| &uri.0);
    let (method, path) = (parts.method.clone(), asked.to_string());
    let Ok(body) = to_bytes(body, 64 << 20).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let (number, what) = {
        let mut world = shared.world();
        let who = who_asks(&world, &parts.headers)
            .ok()
            .flatten()
            .map(|asks| world.login(asks.user).to_owned());
        let text = if path.contains(".git/") {
            String::new()
        } else {
            String::from_utf8_lossy(&body).into_owned()
        };
        world.calls.push(ApiCall {
            method: method.to_string(),
            path: path.clone(),
            who,
            body: text,
            status: None,
        });
        let what = world
            .faults
            .iter_mut()
            .find(|fault| fault.applies(&method, &path))
            .map(|fault| {
                fault.left = fault.left.map(|left| left - 1);
                fault.what.clone()
            });
        (world.calls.len(), what)
    };
    shared.changed();
    let perform = async || next.run(Request::from_parts(parts, Body::from(body))).await;
    let response = match what {
        None => perform().await,
        Some(What::Status(status)) => super::api::message(status, "a fault that was asked for"),
        Some(What::Page(status)) => (
            status,
            [(header::CONTENT_TYPE, "text/html")],
            "<html><body><h1>Error</h1></body></html>",
        )
            .into_response(),
        Some(What::Hang) => std::future::pending().await,
        Some(What::Slow(by)) => {
            tokio::time::sleep(by).await;
            perform().await
        }
        Some(What::CutBefore) => cut(),
        Some(What::CutAfter) => {
            perform().await;
            cut()
        }
    };
    let sent = response.extensions().get::<Cut>().is_none();
    // The log may have been emptied meanwhile: then this call is none of the reader's business any more.
    if let Some(call) = shared
        .world()
        .calls
        .get_mut(number - 1)
        .filter(|call| call.path == path)
    {
        call.status = sent.then(|| response.status().as_u16());
    }
    shared.changed();
    response
}

fn cut() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.extensions_mut().insert(Cut);
    response
}
