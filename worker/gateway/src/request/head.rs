//! Method, path, query and headers of a model request.

use contract::ApiShape;
use http::{HeaderMap, Method, Request, Uri, Version, header};

use super::Refusal;

/// Headers that pi and the SDKs under it send. None of them is forwarded as it is: the door builds its own.
const HEADERS: [&str; 26] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "http-referer",
    "sec-fetch-mode",
    "session_id",
    "user-agent",
    "x-api-key",
    "x-billing-invoke-origin",
    "x-client-request-id",
    "x-opencode-client",
    "x-opencode-session",
    "x-openrouter-categories",
    "x-openrouter-title",
    "x-session-affinity",
    "x-session-id",
    "cache-control",
    "pragma",
];

/// The SDKs describe themselves under this prefix (language, runtime, retry count, time-out).
const SDK_PREFIX: &str = "x-stainless-";

/// Features of Anthropic's API that change how the model thinks or streams. Not among them: threads (stored state), fallbacks (other models),
/// inline tools, everything that runs at the provider.
const BETAS: [&str; 4] = [
    "fine-grained-tool-streaming-2025-05-14",
    "interleaved-thinking-2025-05-14",
    "mid-conversation-output-config-2026-07-01",
    "thinking-binding-controls-2026-08-01",
];

/// What of the head is taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// `?beta=true`.
    pub(crate) beta_query: bool,
    /// Allowed features, each from our own list.
    pub(crate) betas: Vec<&'static str>,
}

/// Checks everything but the body.
pub(crate) fn check<B>(api: ApiShape, request: &Request<B>) -> Result<Head, Refusal> {
    if request.version() != Version::HTTP_11 {
        return Err(Refusal::new("version", ""));
    }
    check_connection(request.headers())?;
    if request.method() != Method::POST {
        return Err(Refusal::new("method", request.method()));
    }
    let beta_query = check_target(api, request.uri())?;
    let betas = check_headers(api, request.headers())?;
    Ok(Head { beta_query, betas })
}

fn check_connection(headers: &HeaderMap) -> Result<(), Refusal> {
    let asks_for_more = headers.contains_key(header::UPGRADE)
        || headers.contains_key("http2-settings")
        || headers.keys().any(|name| name.as_str().starts_with("sec-websocket"))
        || headers.get_all(header::CONNECTION).iter().any(|value| {
            let plain = value.to_str().unwrap_or_default().trim().to_ascii_lowercase();
            plain != "keep-alive" && plain != "close"
        });
    if asks_for_more {
        Err(Refusal::new("upgrade", ""))
    } else {
        Ok(())
    }
}

/// The path is compared as it was sent: a percent sign, a dot segment or a doubled slash makes it another path.
fn check_target(api: ApiShape, uri: &Uri) -> Result<bool, Refusal> {
    let path = match api {
        ApiShape::OpenaiCompletions => "/v1/chat/completions",
        ApiShape::AnthropicMessages => "/v1/messages",
    };
    if uri.scheme().is_some() || uri.authority().is_some() || uri.path() != path {
        return Err(Refusal::new("path", uri.path()));
    }
    match (api, uri.query()) {
        (_, None) => Ok(false),
        (ApiShape::AnthropicMessages, Some("beta=true")) => Ok(true),
        (_, Some(query)) => Err(Refusal::new("query", query)),
    }
}

fn check_headers(api: ApiShape, headers: &HeaderMap) -> Result<Vec<&'static str>, Refusal> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::new("content-encoding", ""));
    }
    if let Some(name) = headers.keys().find(|name| !is_known(name.as_str())) {
        return Err(Refusal::new("header", name));
    }
    let kinds: Vec<_> = headers.get_all(header::CONTENT_TYPE).iter().collect();
    let is_json = |kind: &http::HeaderValue| {
        let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase().replace(' ', "");
        kind == "application/json" || kind == "application/json;charset=utf-8"
    };
    if kinds.len() != 1 || !is_json(kinds[0]) {
        return Err(Refusal::new("content-type", ""));
    }
    let mut betas = Vec::new();
    for value in headers.get_all("anthropic-beta") {
        let value = value.to_str().unwrap_or("?");
        for asked in value.split(',').map(str::trim) {
            match BETAS.iter().find(|known| **known == asked) {
                Some(known) if api == ApiShape::AnthropicMessages && !betas.contains(known) => betas.push(*known),
                Some(_) if api == ApiShape::AnthropicMessages => {}
                _ => return Err(Refusal::new("beta", asked)),
            }
        }
    }
    Ok(betas)
}

fn is_known(name: &str) -> bool {
    HEADERS.contains(&name) || name.starts_with(SDK_PREFIX)
}
