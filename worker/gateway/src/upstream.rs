//! The only HTTP client of this crate: where it may go, what it sends, what it does not follow.
//!
//! Redirects are off, proxies of the environment are off, `http` goes to loopback alone. Every header is built here; nothing of the job's own
//! headers is passed on. The key is added in the API's style and is marked as sensitive, so that no debug output shows it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use contract::ApiShape;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::{Client, Response, redirect};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::{Host, Url};

use crate::{ModelGrant, Timeouts, request::Head};

/// Anthropic's API version that pi's SDK speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// How much of an error's body is looked at for its class.
const ERROR_BYTES: usize = 64 * 1024;

/// Where one job's requests go.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    client: Client,
    url: Url,
    headers: HeaderMap,
    api: ApiShape,
    first_byte: std::time::Duration,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Sent {
    /// The provider answers.
    Answer(Response),
    /// No connection was made: not a byte of the request left.
    Unreachable,
    /// The request left, wholly or in part, and nothing came back.
    Lost,
    /// The request left, and the provider said nothing for too long.
    Silent,
}

impl Upstream {
    pub(crate) fn new(grant: &ModelGrant, timeouts: &Timeouts, affinity: &str) -> Result<Self, String> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .user_agent(concat!("pi-dispatch/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timeouts.connect)
            // A name that means loopback must not be asked of a name server.
            .resolve("localhost", SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
            .build()
            .map_err(|_| "the HTTP client could not be made".to_owned())?;
        let url = endpoint(grant)?;
        let headers = headers(grant, affinity)?;
        Ok(Self {
            client,
            url,
            headers,
            api: grant.api,
            first_byte: timeouts.first_byte,
        })
    }

    /// Sends a body and waits for the provider's head.
    pub(crate) async fn send(&self, head: &Head, body: Vec<u8>) -> Sent {
        let mut url = self.url.clone();
        if head.beta_query {
            url.set_query(Some("beta=true"));
        }
        let mut headers = self.headers.clone();
        if self.api == ApiShape::AnthropicMessages && !head.betas.is_empty() {
            // Made of our own words: it is a valid header value.
            if let Ok(betas) = HeaderValue::from_str(&head.betas.join(",")) {
                headers.insert("anthropic-beta", betas);
            }
        }
        let request = self.client.post(url).headers(headers).body(body).send();
        match timeout(self.first_byte, request).await {
            Ok(Ok(response)) => Sent::Answer(response),
            Ok(Err(fault)) if fault.is_connect() => Sent::Unreachable,
            Ok(Err(_)) => Sent::Lost,
            Err(_) => Sent::Silent,
        }
    }
}

fn endpoint(grant: &ModelGrant) -> Result<Url, String> {
    let mut url = grant.base_url.clone();
    let path = match grant.api {
        ApiShape::OpenaiCompletions => "/chat/completions",
        ApiShape::AnthropicMessages => "/v1/messages",
    };
    let path = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn headers(grant: &ModelGrant, affinity: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    if grant.api == ApiShape::AnthropicMessages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &grant.key {
        let (name, text) = match grant.api {
            ApiShape::OpenaiCompletions => (header::AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
            ApiShape::AnthropicMessages => (
                header::HeaderName::from_static("x-api-key"),
                key.expose_secret().to_owned(),
            ),
        };
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| "the key has characters that no header takes".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    // Keeps one conversation on one replica, for the provider's prompt cache. The value is ours, not the job's.
    if grant.has("sendSessionAffinityHeaders") {
        let name = if grant.provider == "openrouter" {
            "x-session-id"
        } else {
            "x-session-affinity"
        };
        let value = HeaderValue::from_str(affinity).map_err(|_| "no session name".to_owned())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Reads a provider's address: `https`, or `http` on loopback; no credentials, query or fragment.
pub(crate) fn check_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| format!("base_url `{text}` is not a URL"))?;
    let plain =
        url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    if !plain {
        return Err("base_url has no user, password, query or fragment; the key has a place of its own".into());
    }
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => {
            Err("base_url is `http`, which is for this machine alone (127.0.0.1, ::1, localhost); use `https`".into())
        }
        _ => Err("base_url is `https`, or `http` on loopback".into()),
    }
}

/// Whether an address is on this machine, whatever any name server says.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// A key is one word of printable ASCII.
pub(crate) fn check_key(key: &SecretString) -> Result<(), String> {
    if key.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err("the key has characters that no header takes (a line end, perhaps)".into())
    }
}

/// What kind of error the provider answered. Its own words never go into the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The conversation is too long: pi shortens it and goes on.
    ContextOverflow,
    /// Too many strict tools: pi sends them again without `strict`.
    StrictTools,
    /// The account's quota or balance is used up: pi must not try again.
    Quota,
    /// The key was not taken.
    Unauthorized,
    /// Too many requests.
    RateLimit,
    /// Overloaded, for a while.
    Overloaded,
    /// The provider failed.
    Server,
    /// The request was not liked.
    Invalid,
    /// There is no such model or path.
    NotFound,
    /// A redirect; it is not followed.
    Redirect,
}

/// Words of known providers that pi acts upon.
const OVERFLOW: [&str; 16] = [
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "exceeds the context window",
    "maximum context length",
    "context window exceeded",
    "context window exceeds limit",
    "reduce the length of the messages",
    "exceeds the available context size",
    "greater than the context length",
    "exceeded model token limit",
    "context_length_exceeded",
    "context length exceeded",
    "longer than the model",
    "range of input length should be",
];
const STRICT: [&str; 3] = [
    "compiled grammar is too large",
    "too many strict tools",
    "too many parameters with union types",
];
const QUOTA: [&str; 6] = [
    "insufficient_quota",
    "quota exceeded",
    "out of budget",
    "billing",
    "credit balance",
    "usagelimiterror",
];

impl ErrorClass {
    /// Finds the class from the status and the error's own words.
    pub(crate) async fn of(response: &mut Response, timeouts: &Timeouts) -> Self {
        let status = response.status();
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout(timeouts.silence.min(timeouts.connect), response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BYTES {
                body.truncate(ERROR_BYTES);
                break;
            }
        }
        Self::from_words(status, &String::from_utf8_lossy(&body).to_ascii_lowercase())
    }

    fn from_words(status: StatusCode, words: &str) -> Self {
        let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
        match status.as_u16() {
            300..400 => Self::Redirect,
            413 => Self::ContextOverflow,
            402 => Self::Quota,
            400..500 if says(&QUOTA) => Self::Quota,
            429 => Self::RateLimit,
            400..500 if says(&OVERFLOW) => Self::ContextOverflow,
            400..500 if says(&STRICT) => Self::StrictTools,
            401 | 403 => Self::Unauthorized,
            404 => Self::NotFound,
            400..500 => Self::Invalid,
            503 | 529 => Self::Overloaded,
            _ => Self::Server,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_goes_to_this_machine_alone() {
        for good in [
            "https://api.example.org/v1",
            "http://127.0.0.1:11434/v1",
            "http://[::1]:1/",
            "http://localhost:8080",
        ] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://api.example.org",
            "http://127.0.0.1.example.org/",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "https://user:pass@api.example.org/",
            "https://api.example.org/?a=b",
            "http://0.0.0.0/",
            "nonsense",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_errors_words_decide_only_what_pi_acts_upon() {
        let class = |status: u16, words: &str| ErrorClass::from_words(StatusCode::from_u16(status).unwrap(), words);
        assert_eq!(
            class(400, "this model's maximum context length is 8192 tokens"),
            ErrorClass::ContextOverflow
        );
        assert_eq!(class(400, "too many strict tools (25 > 20)"), ErrorClass::StrictTools);
        assert_eq!(class(429, "{\"code\":\"insufficient_quota\"}"), ErrorClass::Quota);
        assert_eq!(class(429, "slow down"), ErrorClass::RateLimit);
        assert_eq!(class(401, "wrong key sk-123"), ErrorClass::Unauthorized);
        assert_eq!(class(529, ""), ErrorClass::Overloaded);
        assert_eq!(class(302, ""), ErrorClass::Redirect);
    }
}
