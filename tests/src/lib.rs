//! The world that the stories play in: one private PostgreSQL, one stub forge, one scripted model, and the real services.
//!
//! Receiver, worker and panel run in this process; PostgreSQL, Docker, the job image and the pi in it are the real ones.
//! A [`World`] is a fixture, not a mock: what it starts is what `pi-dispatch serve` starts.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

pub mod hand;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forges::{Api, ApiSettings, ForgeKind};
use gateway::providers::{Catalog, ProviderConfig};
use queue::{Connect, JobId, Queue};
use receiver::{HookDoor, Receiver};
use secrecy::SecretString;
use testkit::forge::{Scope, StubForge};
use testkit::model::{Plan, Script, ScriptedModel};
use testkit::postgres::{Scratch, TestDatabase};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use worker::{Deps, ForgeSetup, Settings};

/// The trigger of the README, as it stands there.
pub const TRIAGE: &str = r#"{ "on": { "type": "comment", "phrase": "@pi" }, "run": { "kind": "forgejo", "flow": "triage", "excludeTools": ["bash", "powershell", "edit", "write"] } }"#;
/// The job image of this tree.
pub const IMAGE: &str = "pi-job:2.0.0";
/// How long a story waits for something before it fails.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Nobody but this world signs with it.
pub const HOOK_SECRET: &str = "canary-hook-secret-5f1c9a7e";
/// The key that only the gateway may see.
pub const MODEL_KEY: &str = "canary-model-key-83b2d1c4";

/// What a world is made of, before it starts.
pub struct Plans {
    /// The elements of `triggers`.
    pub triggers: Vec<String>,
    /// What the model says.
    pub model: Plan,
    /// A last word on the worker's settings.
    pub settings: Box<dyn FnOnce(&mut Settings) + Send>,
    /// Whether the worker has a token that may ask who may write.
    pub permission_token: bool,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            triggers: vec![TRIAGE.to_owned()],
            model: Script::demo().into(),
            settings: Box::new(|_| {}),
            permission_token: true,
        }
    }
}

/// A deployment that lives as long as this value.
pub struct World {
    /// The forge, and the hand that plays it.
    pub forge: StubForge,
    /// The model.
    pub model: ScriptedModel,
    /// The database.
    pub queue: Queue,
    /// Its URL.
    pub database: TestDatabase,
    /// Everything of this world on disk.
    pub folder: tempfile::TempDir,
    /// The token of our account.
    pub token: String,
    /// `http://127.0.0.1:PORT` of the receiver.
    pub hooks: String,
    /// `http://127.0.0.1:PORT` of the panel.
    pub panel: String,
    /// The hook of `lab/widgets`.
    pub hook: i64,
    plans: WorkerPlans,
    stop: watch::Sender<bool>,
    worker: Option<JoinHandle<()>>,
    services: Vec<JoinHandle<()>>,
}

struct WorkerPlans {
    settings: Settings,
    permission_token: Option<String>,
}

async fn until_told(mut stop: watch::Receiver<bool>) {
    // An error means that the world is gone: then it is time to stop, too.
    let _ = stop.wait_for(|stop| *stop).await;
}

impl World {
    /// The demo's world: `lab/widgets`, the triage trigger, the scripted story.
    pub async fn start() -> Self {
        Self::with(Plans::default()).await
    }

    /// A world as planned; the worker runs.
    pub async fn with(plans: Plans) -> Self {
        let mut world = Self::without_worker(plans).await;
        world.start_worker();
        world
    }

    /// Receiver and panel run, no worker does.
    pub async fn without_worker(plans: Plans) -> Self {
        let database = Scratch::shared().await.database().await;
        let queue = Queue::connect(&Connect::new(database.url.clone(), "stories"))
            .await
            .expect("the scratch database answers");
        queue.migrate().await.expect("a fresh database takes the migrations");
        let forge = StubForge::lab();
        let token = forge.token("pi-bot", &[Scope::ReadUser, Scope::WriteIssue, Scope::WriteRepository]);
        let permission_token = plans
            .permission_token
            .then(|| forge.token("nils", &[Scope::ReadRepository]));
        let folder = tempfile::Builder::new().prefix("pd-").tempdir().expect("a folder");
        let triggers = folder.path().join("triggers.json");
        write_triggers(&triggers, &plans.triggers);
        let deployment = format!(
            "story-{}",
            folder.path().file_name().and_then(|name| name.to_str()).unwrap_or("x")
        );
        let mut settings = Settings::new("story", deployment, folder.path().join("w"));
        settings.triggers = triggers;
        settings.provider = Some("scripted".to_owned());
        settings.model = Some("scripted-1".to_owned());
        settings.public_url = Some("https://dispatch.example".to_owned());
        (plans.settings)(&mut settings);

        let (stop, stopped) = watch::channel(false);
        let doors = vec![HookDoor {
            name: "lab".to_owned(),
            kind: ForgeKind::Forgejo,
            secrets: vec![SecretString::from(HOOK_SECRET)],
        }];
        let receiver =
            Receiver::new(queue.clone(), doors, receiver::Settings::default()).expect("the hook has a secret");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let hooks = format!("http://{}", listener.local_addr().expect("its address"));
        let admin_listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let panel = format!("http://{}", admin_listener.local_addr().expect("its address"));
        let admin = admin::Admin::new(
            queue.clone(),
            admin::Settings {
                public_url: None,
                default_image: settings.image.clone(),
            },
        );
        let services = vec![
            tokio::spawn({
                let stopped = stopped.clone();
                async move {
                    receiver
                        .serve(listener, until_told(stopped))
                        .await
                        .expect("the receiver serves")
                }
            }),
            tokio::spawn(async move {
                admin
                    .serve(admin_listener, until_told(stopped))
                    .await
                    .expect("the panel serves")
            }),
        ];
        let hook = forge.hook("lab/widgets", &format!("{hooks}/hooks/lab"), HOOK_SECRET);
        Self {
            model: ScriptedModel::start(plans.model),
            forge,
            queue,
            database,
            folder,
            token,
            hooks,
            panel,
            hook,
            plans: WorkerPlans {
                settings,
                permission_token,
            },
            stop,
            worker: None,
            services,
        }
    }

    /// Starts the worker, also again after it was stopped.
    pub fn start_worker(&mut self) {
        let (deps, stopped) = (self.deps(), self.stop.subscribe());
        self.worker = Some(tokio::spawn(async move {
            worker::run(deps, until_told(stopped))
                .await
                .expect("the worker ends well");
        }));
    }

    /// Kills the worker where it stands: no clean-up, no goodbye.
    pub async fn kill_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.abort();
            let _ = worker.await;
        }
    }

    /// What the worker is given.
    pub fn deps(&self) -> Deps {
        let secret = |text: &str| SecretString::from(text.to_owned());
        let permission_token = self.plans.permission_token.as_deref().map(secret);
        let mut withhold = vec![secret(&self.token), secret(HOOK_SECRET), secret(MODEL_KEY)];
        withhold.extend(permission_token.clone());
        let api = Api::new(ApiSettings {
            kind: ForgeKind::Forgejo,
            url: self.forge.url(),
            token: secret(&self.token),
            permission_token,
            plain_http: false,
        })
        .expect("the stub forge's address is fine");
        Deps {
            queue: self.queue.clone(),
            forges: vec![ForgeSetup {
                name: "lab".to_owned(),
                kind: ForgeKind::Forgejo,
                api: Arc::new(api),
                repositories: vec!["lab/*".to_owned()],
                account_id: None,
                allow_users: BTreeSet::new(),
                withhold,
            }],
            settings: self.plans.settings.clone(),
            catalog: Arc::new(self.catalog()),
            docker: bollard::Docker::connect_with_socket(
                testkit::need::DOCKER_SOCKET,
                60,
                bollard::API_DEFAULT_VERSION,
            )
            .expect("a Docker client can be made"),
        }
    }

    /// The scripted model, once per API shape.
    pub fn catalog(&self) -> Catalog {
        catalog_of(&self.model)
    }

    /// Writes another triggers file; the worker takes it up by itself.
    pub fn write_triggers(&self, triggers: &[String]) {
        write_triggers(&self.plans.settings.triggers, triggers);
    }

    /// The path of the triggers file.
    pub fn triggers_file(&self) -> PathBuf {
        self.plans.settings.triggers.clone()
    }

    /// The worker's settings.
    pub fn settings(&self) -> &Settings {
        &self.plans.settings
    }

    /// Waits until the job is finished and gives it.
    pub async fn finished(&self, job: JobId) -> queue::read::JobDetail {
        until(&format!("job {job} is finished"), async || {
            let detail = self.queue.job(job).await.ok().flatten()?;
            matches!(detail.row.state, queue::JobState::Finished { .. }).then_some(detail)
        })
        .await
    }

    /// Waits until there are that many jobs and gives them, oldest first.
    pub async fn jobs(&self, count: usize) -> Vec<queue::read::JobRow> {
        let filter = queue::read::JobFilter {
            limit: 200,
            ..Default::default()
        };
        let mut jobs = until(&format!("{count} job(s) are there"), async || {
            self.queue.jobs(&filter).await.ok().filter(|jobs| jobs.len() >= count)
        })
        .await;
        jobs.reverse();
        jobs
    }

    /// Waits until every delivery has its verdict.
    pub async fn all_decided(&self) {
        self.forge.delivered().await;
        until("every delivery is decided", async || {
            let open: i64 = sqlx_count(&self.queue, "SELECT count(*) FROM deliveries WHERE state = 'received'").await;
            (open == 0).then_some(())
        })
        .await;
    }

    /// A count, straight from the tables.
    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx_count(&self.queue, sql).await
    }

    /// Signs somebody in to the panel; a client that carries the session.
    pub async fn signed_in(&self, role: queue::Role) -> reqwest::Client {
        let password = admin::password::random();
        let hash = admin::password::hash(password.clone()).await.expect("it hashes");
        self.queue
            .put_user("olga", &hash, role, "story")
            .await
            .expect("a user can be added");
        let form = [("name", "olga"), ("password", password.as_str()), ("back", "/")];
        let answer = client(None)
            .post(format!("{}/sign-in", self.panel))
            .form(&form)
            .send()
            .await
            .expect("the panel answers");
        let cookie = answer
            .headers()
            .get("set-cookie")
            .expect("a session")
            .to_str()
            .expect("text")
            .to_owned();
        client(Some(cookie.split(';').next().expect("a name and a value")))
    }
}

/// The scripted model, once per API shape.
pub fn catalog_of(model: &ScriptedModel) -> Catalog {
    let provider = |api: &str, url: String, id: &str| {
        let config = serde_json::json!({
            "api": api,
            "base_url": url,
            "models": [{ "id": id, "context_window": 128_000, "max_tokens": 8_192, "cost": { "input": "3", "output": "15" } }],
        });
        let mut config: ProviderConfig = serde_json::from_value(config).expect("the provider is written rightly");
        config.key = Some(SecretString::from(MODEL_KEY));
        config
    };
    Catalog::new(BTreeMap::from([
        (
            "scripted".to_owned(),
            provider("openai-completions", model.openai_url(), "scripted-1"),
        ),
        (
            "scripted-a".to_owned(),
            provider("anthropic-messages", model.anthropic_url(), "scripted-a1"),
        ),
    ]))
    .expect("the catalogue is fine")
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        for task in self.services.drain(..).chain(self.worker.take()) {
            task.abort();
        }
    }
}

/// A client that follows no redirect, with a cookie when there is one.
pub fn client(cookie: Option<&str>) -> reqwest::Client {
    let mut headers = reqwest::header::HeaderMap::new();
    if let Some(cookie) = cookie {
        headers.insert("cookie", cookie.parse().expect("a cookie"));
    }
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .default_headers(headers)
        .build()
        .expect("a client can be made")
}

async fn sqlx_count(queue: &Queue, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(queue.pool())
        .await
        .expect("the count can be read")
}

fn write_triggers(path: &Path, triggers: &[String]) {
    let text = format!("{{ \"triggers\": [\n{}\n] }}\n", triggers.join(",\n"));
    std::fs::write(path, text).expect("the triggers file can be written");
}

/// Waits for something that will come, looking often; fails after [`PATIENCE`].
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "waited {} s in vain until {what}",
            PATIENCE.as_secs()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
