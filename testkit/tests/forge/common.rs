//! What the tests of the stub forge share: calls of its API, and a receiver of hooks that notes what comes.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post as on_post;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use testkit::forge::StubForge;

/// An answer; status 0 when none came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Value,
    pub(crate) location: String,
    pub(crate) total: String,
}

pub(crate) fn client() -> reqwest::Client {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build();
    client.unwrap_or_else(|error| panic!("no client: {error}"))
}

pub(crate) async fn get(forge: &StubForge, path: &str, token: Option<&str>) -> Answer {
    api(forge, reqwest::Method::GET, path, token, None).await
}

pub(crate) async fn post(forge: &StubForge, path: &str, token: &str, body: &Value) -> Answer {
    api(forge, reqwest::Method::POST, path, Some(token), Some(body)).await
}

pub(crate) async fn api(
    forge: &StubForge,
    method: reqwest::Method,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Answer {
    let mut request = client().request(method, format!("{}{path}", forge.api_url()));
    if let Some(token) = token {
        request = request.header("authorization", format!("token {token}"));
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let Ok(response) = request.send().await else {
        return Answer {
            status: 0,
            json: Value::Null,
            location: String::new(),
            total: String::new(),
        };
    };
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (status, location, total) = (response.status().as_u16(), header("location"), header("x-total-count"));
    Answer {
        status,
        json: response.json().await.unwrap_or(Value::Null),
        location,
        total,
    }
}

/// The signature, worked out without the code that is tested.
pub(crate) fn signature(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(body);
        mac.finalize().into_bytes()
    });
    mac.map(hex::encode).unwrap_or_default()
}

pub(crate) fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|error| panic!("not JSON: {error}"))
}

type Told = (BTreeMap<String, String>, Vec<u8>);

/// Takes deliveries and notes them.
pub(crate) struct Receiver {
    pub(crate) url: String,
    state: Arc<Notes>,
}

#[derive(Default)]
struct Notes {
    told: Mutex<Vec<Told>>,
    status: AtomicU16,
    silent: AtomicBool,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Notes {
            status: AtomicU16::new(202),
            ..Notes::default()
        });
        let app = Router::new()
            .route("/hooks/stub", on_post(take))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("no address: {error}"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            url: format!("http://{address}/hooks/stub"),
            state,
        }
    }

    pub(crate) fn answer(&self, status: u16) {
        self.state.status.store(status, Ordering::SeqCst);
    }

    pub(crate) fn be_silent(&self) {
        self.state.silent.store(true, Ordering::SeqCst);
    }

    pub(crate) fn all(&self) -> Vec<Told> {
        self.state.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn last(&self) -> Told {
        self.all().pop().unwrap_or_else(|| panic!("nothing was delivered"))
    }

    pub(crate) fn one(&self) -> Told {
        let all = self.all();
        assert_eq!(all.len(), 1, "exactly one delivery");
        self.last()
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.state.most.load(Ordering::SeqCst)
    }
}

async fn take(State(notes): State<Arc<Notes>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let now = notes.now.fetch_add(1, Ordering::SeqCst) + 1;
    notes.most.fetch_max(now, Ordering::SeqCst);
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").to_owned()));
    notes
        .told
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((headers.collect(), body.to_vec()));
    tokio::task::yield_now().await;
    if notes.silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    notes.now.fetch_sub(1, Ordering::SeqCst);
    StatusCode::from_u16(notes.status.load(Ordering::SeqCst)).unwrap_or(StatusCode::OK)
}
