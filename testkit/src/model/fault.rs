//! What can go wrong with a model, and the answer that comes of a step.

use super::conversation::Conversation;
use super::script::Step;
use super::{ModelRequest, speak};
use crate::server::Cut;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use std::time::Duration;

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers this status, and an error that repeats the key it was given, as careless endpoints do.
    Status(u16),
    /// Takes the request and never answers.
    Hang,
    /// Begins to answer, then falls silent.
    FallSilent,
    /// Begins to answer, then the connection is cut.
    Cut,
    /// Closes the connection before it answers.
    Close,
    /// Waits this long before it answers.
    Slow(Duration),
    /// Repeats every header of the request in its own headers, under its name and under `x-echo-…`.
    EchoHeaders,
    /// Repeats every header of the request in its words.
    EchoInWords,
    /// Sends the client elsewhere.
    Redirect(String),
    /// Answers with this many bytes of words.
    Flood(usize),
    /// Answers with this body, whatever it is, as server-sent events.
    Raw(String),
}

pub(super) async fn answer(
    request: &ModelRequest,
    conversation: &Conversation,
    mut step: Step,
    number: usize,
) -> Response {
    let fault = step.fault.take().map(|(fault, _)| fault);
    let pieces = |step: &Step| speak::pieces(conversation, step, number);
    match fault {
        None => whole(conversation, pieces(&step)),
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let key = request
                .header("authorization")
                .or(request.header("x-api-key"))
                .unwrap_or("(no key)");
            refusal(status, &format!("a fault that was asked for; the key was {key}"))
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::FallSilent) => {
            let begun = stream::iter(half(pieces(&step)).into_iter().map(Ok::<_, Cut>));
            streamed(Body::from_stream(begun.chain(stream::pending())))
        }
        Some(Fault::Cut) => {
            let begun = half(pieces(&step)).into_iter().map(Ok).chain([Err(Cut)]);
            // Between two pieces the connection must have had the time to send the first.
            let paced = stream::iter(begun).then(async |piece| {
                tokio::time::sleep(Duration::from_millis(2)).await;
                piece
            });
            streamed(Body::from_stream(paced))
        }
        Some(Fault::Close) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            response.extensions_mut().insert(Cut);
            response
        }
        Some(Fault::Slow(by)) => {
            tokio::time::sleep(by).await;
            whole(conversation, pieces(&step))
        }
        Some(Fault::EchoHeaders) => {
            let mut response = whole(conversation, pieces(&step));
            for (name, value) in &request.headers {
                let hop = matches!(
                    name.as_str(),
                    "content-length" | "transfer-encoding" | "connection" | "content-type"
                );
                let value = HeaderValue::from_str(value);
                for name in [name.clone(), format!("x-echo-{name}")]
                    .into_iter()
                    .skip(usize::from(hop))
                {
                    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), &value) {
                        response.headers_mut().append(name, value.clone());
                    }
                }
            }
            response
        }
        Some(Fault::EchoInWords) => {
            let lines = request.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
            step.text.extend(lines);
            whole(conversation, pieces(&step))
        }
        Some(Fault::Redirect(to)) => {
            let location = HeaderValue::from_str(&to).unwrap_or(HeaderValue::from_static("/"));
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response()
        }
        Some(Fault::Flood(bytes)) => {
            step.text = "flood ".repeat(bytes / 6 + 1);
            whole(conversation, pieces(&step))
        }
        Some(Fault::Raw(body)) => streamed(Body::from(body)),
    }
}

/// An error in the shape that both languages can read.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "type": "error", "error": { "type": "scripted", "message": message, "code": status.as_u16() } });
    (status, axum::Json(body)).into_response()
}

fn whole(conversation: &Conversation, pieces: Vec<Bytes>) -> Response {
    if conversation.stream {
        return streamed(Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Cut>))));
    }
    ([(header::CONTENT_TYPE, "application/json")], pieces.concat()).into_response()
}

fn streamed(body: Body) -> Response {
    (
        [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        body,
    )
        .into_response()
}

fn half(mut pieces: Vec<Bytes>) -> Vec<Bytes> {
    pieces.truncate(pieces.len().div_ceil(2));
    pieces
}
