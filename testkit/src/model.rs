//! A scripted model: an HTTP server that speaks two of the providers' languages and says what it is told to say.
//!
//! It answers `POST …/chat/completions` (OpenAI's chat completions) and `POST …/messages` (Anthropic's messages), as
//! server-sent events or as one JSON, and `GET …/models`. What it says is a function of the conversation in the
//! request, and of nothing else: the step of a [`Script`] is the number of assistant messages so far, so that any
//! number of jobs may talk to one model at once. Only a [`Fault`] that happens a limited number of times is counted,
//! per conversation.
//!
//! Usage is made of sizes: a token is four bytes, begun ones count. The same conversation always costs the same.

mod conversation;
mod demo;
mod fault;
mod script;
mod speak;

pub use conversation::{Api, Call, Conversation, Message, Role, ToolResult};
pub use fault::Fault;
pub use script::{Finish, Plan, Script, Step, Usage};

use crate::server::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, OriginalUri, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null when it was not JSON.
    pub body: Value,
    /// The conversation, when the body was one.
    pub conversation: Option<Conversation>,
    /// What was answered: a status; `None` while no answer has begun.
    pub status: Option<u16>,
}

impl ModelRequest {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// The names of the tools that the request offers, in its order.
    pub fn tools(&self) -> &[String] {
        self.conversation
            .as_ref()
            .map_or(&[], |conversation| &conversation.tools)
    }
}

/// A model that answers until it is dropped.
pub struct ScriptedModel {
    shared: Arc<Shared>,
    server: Server,
}

struct Shared {
    state: Mutex<Model>,
    happened: watch::Sender<u64>,
}

struct Model {
    plan: Plan,
    requests: Vec<ModelRequest>,
    /// How often each step of each conversation has gone wrong.
    failures: BTreeMap<String, u32>,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptedModel {
    /// A model on a port of its own.
    pub fn start(plan: impl Into<Plan>) -> Self {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), plan)
            .unwrap_or_else(|error| panic!("the scripted model cannot start: {error}"))
    }

    /// A model that tells the demo's story to everybody: see [`Script::demo`].
    pub fn demo() -> Self {
        Self::start(Script::demo())
    }

    /// A model on this port; fails when it is taken.
    pub fn start_on(listen: SocketAddr, plan: impl Into<Plan>) -> std::io::Result<Self> {
        let model = Model {
            plan: plan.into(),
            requests: Vec::new(),
            failures: BTreeMap::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(model),
            happened: watch::Sender::new(0),
        });
        let app = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(64 << 20))
            .with_state(Arc::clone(&shared));
        let server = Server::start(listen, |_| app)?;
        Ok(Self { shared, server })
    }

    /// The base URL for `openai-completions`: it ends in `/v1`.
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.anthropic_url())
    }

    /// The base URL for `anthropic-messages`, whose clients add `/v1/messages`.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Says something else from now on.
    pub fn set_plan(&self, plan: impl Into<Plan>) {
        let mut model = self.shared.model();
        model.plan = plan.into();
        model.failures.clear();
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.model().requests.clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.model().requests.clear();
    }

    /// Every tool that any request has offered: what `excludeTools` takes away must not be here.
    pub fn offered_tools(&self) -> BTreeSet<String> {
        self.requests()
            .iter()
            .flat_map(|request| request.tools().to_vec())
            .collect()
    }

    /// Waits until there are `count` requests, at most this long, and gives them; panics when they do not come.
    pub async fn wait_for_requests(&self, count: usize, patience: Duration) -> Vec<ModelRequest> {
        let mut happened = self.shared.happened.subscribe();
        let search = happened.wait_for(|_| self.shared.model().requests.len() >= count);
        let came = tokio::time::timeout(patience, search).await.is_ok();
        assert!(
            came,
            "the model was asked {} time(s), not {count}",
            self.requests().len()
        );
        self.requests()
    }

    /// Goes away: connecting is refused until [`Self::up`].
    pub fn down(&self) {
        self.server.stop();
    }

    /// Comes back on the same port.
    pub fn up(&self) {
        self.server
            .start_again()
            .unwrap_or_else(|error| panic!("the port was taken meanwhile: {error}"));
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let json: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let api = match uri.path().rsplit('/').next() {
        Some("completions") if uri.path().ends_with("/chat/completions") => Some(Api::OpenAi),
        Some("messages") => Some(Api::Anthropic),
        _ => None,
    };
    let conversation = api.and_then(|api| Conversation::read(api, &json));
    let request = ModelRequest {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), lossy(value.as_bytes())))
            .collect(),
        body: json,
        conversation: conversation.clone(),
        status: None,
    };
    let (number, step) = {
        let mut model = shared.model();
        model.requests.push(request.clone());
        let step = conversation.as_ref().map(|conversation| model.step_of(conversation));
        (model.requests.len(), step)
    };
    shared.happened.send_modify(|count| *count += 1);
    let response = match (&method, conversation, step) {
        (&Method::POST, Some(conversation), Some(step)) => fault::answer(&request, &conversation, step, number).await,
        (&Method::GET, ..) if uri.path().ends_with("/models") => {
            let models = json!({ "object": "list", "data": [{ "id": "scripted-1", "object": "model" }] });
            axum::Json(models).into_response()
        }
        _ => fault::refusal(StatusCode::NOT_FOUND, "there is nothing of this name"),
    };
    if let Some(kept) = shared
        .model()
        .requests
        .get_mut(number - 1)
        .filter(|kept| kept.path == request.path)
    {
        kept.status = Some(response.status().as_u16());
    }
    shared.happened.send_modify(|count| *count += 1);
    response
}

impl Model {
    /// What to say, with the faults that have happened often enough taken out.
    fn step_of(&mut self, conversation: &Conversation) -> Step {
        let mut step = (self.plan.0)(conversation);
        let key = format!("{}/{}", conversation.key(), conversation.assistant_messages());
        if let Some((_, Some(times))) = &step.fault {
            let failed = self.failures.entry(key).or_default();
            if *failed >= *times {
                step.fault = None;
            } else {
                *failed += 1;
            }
        }
        step
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
