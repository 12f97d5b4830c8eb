//! A door, the worker's books behind it, a provider that plays a script, and a job that speaks raw HTTP.

mod books;
mod job;
mod provider;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc, time::Duration};

use contract::ApiShape;
use gateway::{
    Caps, Door, DoorSpec, ModelGrant, Timeouts,
    providers::{Catalog, CostConfig, ModelConfig, ProviderConfig},
};
use tempfile::TempDir;

pub use books::Books;
pub use job::{Control, Reply};
pub use provider::{Act, Provider, Request, anthropic_text, chunked, head, json_answer, openai_text};

/// The provider's key in all tests.
pub const KEY: &str = "sk-real/Key+0123456789=";
/// The job's model.
pub const MODEL: &str = "fake-1";

/// Everything around one door.
pub struct World {
    pub books: Arc<Books>,
    pub door: Door,
    pub provider: Provider,
    pub api: ApiShape,
    pub dir: PathBuf,
    pub spec: DoorSpec,
    _parent: TempDir,
}

/// Prices of 3 and 15 dollars a million; caching costs as pi's data has it for Claude.
pub fn grant(api: ApiShape, base_url: &str, compat: serde_json::Value) -> ModelGrant {
    let cost = CostConfig {
        input: "3".into(),
        output: "15".into(),
        cache_read: Some("0.3".into()),
        cache_write: Some("3.75".into()),
    };
    let model = ModelConfig {
        id: MODEL.into(),
        name: None,
        context_window: 200_000,
        max_tokens: 8_192,
        reasoning: true,
        images: true,
        cost: Some(cost),
        compat: compat.as_object().cloned(),
    };
    let config = ProviderConfig {
        api: Some(api),
        base_url: Some(base_url.into()),
        models: vec![model],
        key: Some(KEY.into()),
    };
    let catalog = Catalog::new(BTreeMap::from([("fake".to_owned(), config)])).unwrap();
    catalog.grant("fake", MODEL, true).unwrap()
}

/// Time-outs short enough to wait for.
pub fn timeouts() -> Timeouts {
    Timeouts {
        pid: Duration::from_millis(300),
        control: Duration::from_millis(300),
        heartbeat: Duration::from_millis(200),
        request: Duration::from_secs(5),
        connect: Duration::from_secs(2),
        first_byte: Duration::from_millis(700),
        silence: Duration::from_millis(500),
        response: Duration::from_secs(20),
    }
}

impl World {
    /// A door whose runner is this very process, already connected.
    pub async fn new(api: ApiShape, script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> (Self, Control) {
        Self::with(api, script, |_| {}).await
    }

    /// The same, with something changed in the spec.
    pub async fn with(
        api: ApiShape,
        script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static,
        change: impl FnOnce(&mut DoorSpec),
    ) -> (Self, Control) {
        let world = Self::shut(api, script, change).await;
        world.door.expect_pid(i32::try_from(std::process::id()).unwrap());
        let control = world.control().await;
        (world, control)
    }

    /// A door that does not know its runner yet.
    pub async fn shut(
        api: ApiShape,
        script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static,
        change: impl FnOnce(&mut DoorSpec),
    ) -> Self {
        let provider = Provider::start(script).await;
        let base = match api {
            ApiShape::OpenaiCompletions => format!("{}/v1", provider.origin()),
            ApiShape::AnthropicMessages => provider.origin(),
        };
        let parent = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o700))
            .prefix("door")
            .tempdir()
            .unwrap();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut spec = DoorSpec {
            dir: parent.path().join("7"),
            job: 7,
            attempt: 1,
            grant: grant(api, &base, serde_json::json!({})),
            allowed_tools: words(&["read", "forge_comment"]),
            excluded: words(&["bash", "powershell", "edit", "write"]),
            caps: Caps::default(),
            timeouts: timeouts(),
        };
        change(&mut spec);
        let books = Arc::new(Books::default());
        let door = Door::open(spec.clone(), books.clone()).await.unwrap();
        Self {
            books,
            door,
            provider,
            api,
            dir: spec.dir.clone(),
            spec,
            _parent: parent,
        }
    }

    /// The runner's control connection, welcomed.
    pub async fn control(&self) -> Control {
        let mut control = Control::connect(&self.dir).await;
        control
            .say(r#"{"type":"hello","job":7,"attempt":1,"contract":1}"#)
            .await;
        assert_eq!(control.hear().await.as_deref(), Some(r#"{"type":"welcome"}"#));
        control
    }

    /// The path of the job's API.
    pub fn path(&self) -> &'static str {
        match self.api {
            ApiShape::OpenaiCompletions => "/v1/chat/completions",
            ApiShape::AnthropicMessages => "/v1/messages",
        }
    }

    /// A request of the job, as text; a good one answers 200.
    pub async fn ask(&self, body: &serde_json::Value) -> Reply {
        self.ask_text(&body.to_string()).await
    }

    /// The same, with the body's very bytes.
    pub async fn ask_text(&self, body: &str) -> Reply {
        job::send(&self.dir, &job::post(self.path(), &[], body)).await
    }

    /// Whatever bytes.
    pub async fn send_raw(&self, bytes: &[u8]) -> Reply {
        job::send(&self.dir, bytes).await
    }

    /// The request with other headers or another path.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        job::post(path, headers, body)
    }

    /// A small good request.
    pub fn good(&self) -> serde_json::Value {
        match self.api {
            ApiShape::OpenaiCompletions => serde_json::json!({
                "model": MODEL, "stream": true, "stream_options": { "include_usage": true },
                "max_completion_tokens": 1_000, "messages": [{ "role": "user", "content": "hello" }],
            }),
            ApiShape::AnthropicMessages => serde_json::json!({
                "model": MODEL, "stream": true, "max_tokens": 1_000,
                "messages": [{ "role": "user", "content": "hello" }],
            }),
        }
    }

    /// A good request with one field set.
    pub fn with_field(&self, key: &str, value: serde_json::Value) -> serde_json::Value {
        let mut body = self.good();
        body[key] = value;
        body
    }
}
