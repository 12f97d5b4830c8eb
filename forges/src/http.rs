//! The one HTTP client of this crate, and how an answer is judged.
//!
//! Redirects, proxies and time-outs are decided here. An answer is judged by its status first: an error's body may be
//! an HTML page and is never read. A body of a 2xx is read up to a cap.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Method, StatusCode};
use reqwest::{Client, RequestBuilder, Response, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::{Host, Url};

use crate::api::{ApiSettings, SetupError};
use crate::api_error::ApiError;

const CONNECT: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(30);
/// The largest answer that is read, in bytes. A page of comments of 1 MB each is the largest that we ask for.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// The longest time that a `Retry-After` is believed.
const RETRY_MAX: Duration = Duration::from_secs(3600);
/// Longest name of an owner, repository, account or branch segment, in bytes.
const NAME_MAX: usize = 255;

/// Whose token a call carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Of our own account.
    Own,
    /// The permission token where there is one, else our own.
    Permission,
}

/// A client for one forge.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
    /// Ends with a slash.
    base: Url,
    own: Authorization,
    permission: Option<Authorization>,
}

/// The value of the `Authorization` header. Its `Debug` shows nothing.
#[derive(Debug, Clone)]
struct Authorization {
    header: HeaderValue,
    text: SecretString,
}

impl Authorization {
    fn new(token: &SecretString, which: &'static str) -> Result<Self, SetupError> {
        let token = token.expose_secret().trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SetupError::BadToken(which));
        }
        let text = format!("token {token}");
        let mut header = HeaderValue::from_str(&text).map_err(|_| SetupError::BadToken(which))?;
        header.set_sensitive(true);
        Ok(Self {
            header,
            text: SecretString::from(text),
        })
    }
}

impl Http {
    pub(crate) fn new(settings: &ApiSettings) -> Result<Self, SetupError> {
        let base = base_url(&settings.url, settings.plain_http)?;
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .timeout(TOTAL)
            .user_agent(concat!("pi-dispatch/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| SetupError::Client(error.to_string()))?;
        let permission = settings
            .permission_token
            .as_ref()
            .map(|token| Authorization::new(token, "permission_token"));
        Ok(Self {
            client,
            base,
            own: Authorization::new(&settings.token, "token")?,
            permission: permission.transpose()?,
        })
    }

    /// The forge's address, ending with a slash.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// The header line that git sends.
    pub(crate) fn git_header(&self) -> SecretString {
        SecretString::from(format!("Authorization: {}", self.own.text.expose_secret()))
    }

    /// An address below the base, each segment encoded by itself.
    pub(crate) fn url(&self, segments: &[&str]) -> Result<Url, ApiError> {
        if !segments.iter().all(|segment| is_segment(segment)) {
            return Err(ApiError::BadName);
        }
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| ApiError::BadName)?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// Asks for JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, token: Token, url: Url) -> Result<T, ApiError> {
        let (answer, _) = self.get_counted(token, url).await?;
        Ok(answer)
    }

    /// Asks for JSON, and for the total that a list says it has.
    pub(crate) async fn get_counted<T: DeserializeOwned>(
        &self,
        token: Token,
        url: Url,
    ) -> Result<(T, Option<usize>), ApiError> {
        let response = self.send(token, self.client.request(Method::GET, url)).await?;
        let total = response
            .headers()
            .get("x-total-count")
            .and_then(|value| value.to_str().ok()?.parse().ok());
        Ok((read_json(response).await?, total))
    }

    /// Sends JSON and reads JSON.
    pub(crate) async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        read_json(
            self.send(Token::Own, self.client.request(method, url).json(body))
                .await?,
        )
        .await
    }

    /// Sends JSON and wants nothing but a 2xx.
    pub(crate) async fn tell(&self, method: Method, url: Url, body: &impl Serialize) -> Result<(), ApiError> {
        self.send(Token::Own, self.client.request(method, url).json(body))
            .await
            .map(drop)
    }

    async fn send(&self, token: Token, request: RequestBuilder) -> Result<Response, ApiError> {
        let authorization = match token {
            Token::Own => &self.own,
            Token::Permission => self.permission.as_ref().unwrap_or(&self.own),
        };
        let request = request.header(AUTHORIZATION, authorization.header.clone());
        let response = request.send().await.map_err(|error| unavailable(&error))?;
        judge(&response).map(|()| response)
    }
}

/// Status first: what the answer says in its body is not asked.
fn judge(response: &Response) -> Result<(), ApiError> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    Err(match status {
        StatusCode::UNAUTHORIZED => ApiError::Unauthorized,
        StatusCode::FORBIDDEN => ApiError::Forbidden,
        StatusCode::NOT_FOUND | StatusCode::GONE => ApiError::NotFound,
        StatusCode::LOCKED => ApiError::Archived,
        StatusCode::TOO_MANY_REQUESTS => ApiError::Busy {
            retry_after: retry_after(response),
        },
        // Not the request's fault: a proxy that gave up waiting for it.
        StatusCode::REQUEST_TIMEOUT => ApiError::Unavailable {
            what: status.as_u16().to_string(),
            retry_after: retry_after(response),
        },
        status if status.is_redirection() && response.headers().contains_key(LOCATION) => {
            ApiError::Moved(status.as_u16())
        }
        status if status.is_client_error() => ApiError::Invalid(status.as_u16()),
        status => ApiError::Unavailable {
            what: status.as_u16().to_string(),
            retry_after: retry_after(response),
        },
    })
}

/// Seconds only: the other form wants a clock, and no forge sends it.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_MAX))
}

/// Words of our own: the client's message may hold the whole address.
fn unavailable(error: &reqwest::Error) -> ApiError {
    let what = if error.is_timeout() {
        format!("no answer within {} s", TOTAL.as_secs())
    } else if error.is_connect() {
        "no connection".to_owned()
    } else {
        "the connection broke".to_owned()
    };
    ApiError::Unavailable {
        what,
        retry_after: None,
    }
}

async fn read_json<T: DeserializeOwned>(mut response: Response) -> Result<T, ApiError> {
    let html = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
    if html {
        return Err(ApiError::Garbled("an HTML page instead of JSON"));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unavailable(&error))? {
        if body.len() + chunk.len() > ANSWER_MAX {
            return Err(ApiError::Garbled("longer than 32 MiB"));
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|_| ApiError::Garbled("not JSON of the shape that was asked for"))
}

fn base_url(text: &str, plain_http: bool) -> Result<Url, SetupError> {
    let mut url = Url::parse(text).map_err(|error| SetupError::BadUrl(error.to_string()))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(SetupError::BadUrl("it has a query or a fragment".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SetupError::BadUrl(
            "it has a user in it: the token is given apart".to_owned(),
        ));
    }
    match url.scheme() {
        "https" => {}
        "http" if plain_http || is_loopback(&url) => {}
        "http" => return Err(SetupError::PlainHttp),
        other => return Err(SetupError::BadUrl(format!("its scheme is `{other}`"))),
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Whether a path segment means itself: `.` and `..` would change the path, and are no names.
fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment.len() <= NAME_MAX
        && segment != "."
        && segment != ".."
        && !segment.chars().any(char::is_control)
}

/// Whether a text can be the name of an owner, a repository or an account.
pub(crate) fn is_name(name: &str) -> bool {
    is_segment(name) && !name.contains(['/', '\\']) && !name.chars().any(char::is_whitespace)
}
