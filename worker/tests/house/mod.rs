//! A worker with everything around it: real PostgreSQL, real Docker, the stub forge and the scripted model.

#![expect(clippy::expect_used, reason = "a fixture fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use contract::IMAGE_TAG;
use forges::{Api, ApiSettings, ForgeKind};
use gateway::providers::{Catalog, ProviderConfig};
use queue::{
    Connect, JobId, JobState, Outcome, Queue, Reason, RunRequest, TriggerId,
    read::{JobDetail, JobFilter, LogRow},
};
use secrecy::SecretString;
use serde_json::json;
use testkit::{
    forge::{Scope, StubForge},
    model::{Plan, ScriptedModel},
    postgres::{Scratch, TestDatabase},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use worker::{Deps, ForgeSetup, Settings, WorkerError};

/// How long a test waits for something that will come.
const PATIENCE: Duration = Duration::from_secs(60);

/// One deployment with one worker.
pub(crate) struct House {
    pub(crate) forge: StubForge,
    pub(crate) model: ScriptedModel,
    pub(crate) queue: Queue,
    pub(crate) settings: Settings,
    token: String,
    worker: Option<JoinHandle<Result<(), WorkerError>>>,
    other: Option<JoinHandle<Result<(), WorkerError>>>,
    stop: CancellationToken,
    /// A server of its own, when the test stops it.
    pub(crate) postgres: Option<Scratch>,
    _database: TestDatabase,
    folder: tempfile::TempDir,
}

/// A trigger `t` whose `run` holds what is given besides kind and flow.
pub(crate) fn trigger(run: &serde_json::Value) -> serde_json::Value {
    let mut all = json!({ "kind": "forgejo", "flow": "triage" });
    for (key, value) in run.as_object().expect("an object") {
        all[key] = value.clone();
    }
    json!({ "id": "t", "on": { "type": "manual" }, "run": all })
}

impl House {
    /// A house whose worker is not started; nothing when Docker or the image is not there.
    pub(crate) async fn new(run: serde_json::Value, model: impl Into<Plan>) -> Option<Self> {
        testkit::need::docker()?;
        testkit::need::image(IMAGE_TAG)?;
        let database = Scratch::shared().await.database().await;
        Some(Self::over(database, None, &run, model.into()).await)
    }

    /// The same with a PostgreSQL server of its own, which the test may stop.
    pub(crate) async fn with_own_postgres(run: serde_json::Value, model: impl Into<Plan>) -> Option<Self> {
        testkit::need::docker()?;
        testkit::need::image(IMAGE_TAG)?;
        let postgres = Scratch::private().await;
        let database = postgres.database().await;
        Some(Self::over(database, Some(postgres), &run, model.into()).await)
    }

    async fn over(database: TestDatabase, postgres: Option<Scratch>, run: &serde_json::Value, model: Plan) -> Self {
        let queue = Queue::connect(&Connect::new(database.url.clone(), "worker-test"))
            .await
            .expect("it answers");
        queue.migrate().await.expect("a fresh database takes the schema");
        let forge = StubForge::lab();
        let token = forge.token("pi-bot", &[Scope::ReadUser, Scope::WriteIssue, Scope::WriteRepository]);
        let folder = tempfile::Builder::new()
            .prefix("pw")
            .tempdir_in("/tmp")
            .expect("a folder");
        let name = folder
            .path()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("text")
            .to_owned();
        let mut settings = Settings::new("w", format!("test-{name}"), folder.path().join("d"));
        settings.triggers = folder.path().join("triggers.json");
        settings.provider = Some("local".into());
        settings.model = Some("m".into());
        settings.timing.poll = Duration::from_millis(200);
        settings.timing.grace = Duration::from_secs(2);
        // A test says nothing about the host's disk.
        settings.container.free_floor = 0;
        let house = Self {
            forge,
            model: ScriptedModel::start(model),
            queue,
            settings,
            token,
            worker: None,
            other: None,
            stop: CancellationToken::new(),
            postgres,
            _database: database,
            folder,
        };
        house.write_trigger(run);
        house
    }

    /// Makes that the trigger in force.
    pub(crate) fn write_trigger(&self, run: &serde_json::Value) {
        let file = json!({ "triggers": [trigger(run)] });
        std::fs::write(self.folder.path().join("triggers.json"), file.to_string()).expect("it is ours");
    }

    /// The file loses its trigger.
    pub(crate) fn write_no_trigger(&self) {
        let file = json!({ "triggers": [] });
        std::fs::write(self.folder.path().join("triggers.json"), file.to_string()).expect("it is ours");
    }

    /// Starts the worker, also again.
    pub(crate) fn start(&mut self) {
        self.stop = CancellationToken::new();
        let (deps, stop) = (self.deps(), self.stop.clone());
        self.worker = Some(tokio::spawn(worker::run(deps, async move { stop.cancelled().await })));
    }

    /// A second worker over the same database, of that name.
    pub(crate) fn start_another(&mut self, name: &str) {
        let own = std::mem::replace(&mut self.settings.worker, name.to_owned());
        let (deps, stop) = (self.deps(), self.stop.clone());
        self.settings.worker = own;
        self.other = Some(tokio::spawn(worker::run(deps, async move { stop.cancelled().await })));
    }

    /// The worker dies where it stands.
    pub(crate) async fn kill(&mut self) {
        let worker = self.worker.take().expect("it runs");
        worker.abort();
        let _ = worker.await;
    }

    /// The worker is told to stop, and does.
    pub(crate) async fn shut_down(&mut self) {
        self.stop.cancel();
        let ended = self.worker.take().expect("it runs").await;
        ended.expect("it does not panic").expect("it ends well");
    }

    fn deps(&self) -> Deps {
        let secret = |text: &str| SecretString::from(text.to_owned());
        let api = Api::new(ApiSettings {
            kind: ForgeKind::Forgejo,
            url: self.forge.url(),
            token: secret(&self.token),
            permission_token: None,
            plain_http: false,
        });
        let provider: ProviderConfig = serde_json::from_value(json!({
            "api": "openai-completions", "base_url": self.model.openai_url(),
            "models": [{ "id": "m", "context_window": 100_000, "max_tokens": 4096, "cost": { "input": "1", "output": "2" } }],
        }))
        .expect("of the configuration's shape");
        Deps {
            queue: self.queue.clone(),
            forges: vec![ForgeSetup {
                name: "lab".into(),
                kind: ForgeKind::Forgejo,
                api: Arc::new(api.expect("the stub's address is fine")),
                repositories: vec!["lab/*".into()],
                account_id: None,
                allow_users: BTreeSet::new(),
                withhold: vec![secret(&self.token)],
            }],
            settings: self.settings.clone(),
            catalog: Arc::new(Catalog::new(BTreeMap::from([("local".to_owned(), provider)])).expect("it is fine")),
            docker: bollard::Docker::connect_with_unix(testkit::need::DOCKER_SOCKET, 60, bollard::API_DEFAULT_VERSION)
                .expect("the socket is there"),
        }
    }

    /// Asks for a run under issue #1 and waits until there is a job for it.
    pub(crate) async fn ask(&self) -> JobId {
        let before = self.newest().await;
        let request = RunRequest {
            trigger: TriggerId::from("t"),
            forge: "lab".into(),
            repository: "lab/widgets".into(),
            subject: Some(1),
            subject_kind: None,
            who: "cli:test".into(),
        };
        self.queue.request_run(&request).await.expect("it is stored");
        until("there is a job", async || {
            self.newest().await.filter(|job| Some(*job) != before)
        })
        .await
    }

    async fn newest(&self) -> Option<JobId> {
        let filter = JobFilter {
            limit: 1,
            ..JobFilter::default()
        };
        self.queue
            .jobs(&filter)
            .await
            .expect("it answers")
            .first()
            .map(|row| row.job)
    }

    /// The job as its page shows it.
    pub(crate) async fn job(&self, job: JobId) -> JobDetail {
        self.queue.job(job).await.expect("it answers").expect("it is there")
    }

    /// Waits for its end.
    pub(crate) async fn finished(&self, job: JobId) -> (Outcome, Reason, JobDetail) {
        until("the job is finished", async || {
            let detail = self.job(job).await;
            match detail.row.state {
                JobState::Finished { outcome, reason, .. } => Some((outcome, reason, detail)),
                JobState::Queued { .. } | JobState::Held { .. } | JobState::Running { .. } => None,
            }
        })
        .await
    }

    /// Its whole log.
    pub(crate) async fn log(&self, job: JobId) -> Vec<LogRow> {
        self.queue
            .job_log(job, queue::LogId(0), 10_000)
            .await
            .expect("it answers")
    }

    /// Waits for a line of that kind whose data holds that text.
    pub(crate) async fn logged(&self, job: JobId, kind: &str, text: &str) {
        until(&format!("the log has {kind} with {text}"), async || {
            let log = self.log(job).await;
            log.iter()
                .any(|row| row.kind == kind && row.data.to_string().contains(text))
                .then_some(())
        })
        .await;
    }

    /// What our account wrote under issue #1.
    pub(crate) fn comments(&self) -> Vec<String> {
        self.forge
            .comments_by("lab/widgets", 1, "pi-bot")
            .into_iter()
            .map(|comment| comment.body)
            .collect()
    }

    /// Containers of this deployment, by state.
    pub(crate) async fn containers(&self) -> Vec<String> {
        let docker = self.deps().docker;
        let filters = std::collections::HashMap::from([(
            "label",
            vec![format!("{}={}", contract::labels::DEPLOYMENT, self.settings.deployment)],
        )]);
        let options = bollard::query_parameters::ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let found = docker.list_containers(Some(options)).await.expect("docker answers");
        found
            .into_iter()
            .filter_map(|one| one.names?.first().cloned())
            .collect()
    }

    /// The folders of jobs that are left.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let jobs = std::fs::read_dir(self.settings.data_dir.join("jobs"));
        jobs.map(|entries| entries.map(|entry| entry.expect("it reads").path()).collect())
            .unwrap_or_default()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for worker in [self.worker.take(), self.other.take()].into_iter().flatten() {
            worker.abort();
        }
        let label = format!("label={}={}", contract::labels::DEPLOYMENT, self.settings.deployment);
        let listed = std::process::Command::new("docker")
            .args(["ps", "-aq", "--filter", &label])
            .output();
        for id in listed.iter().flat_map(|out| {
            String::from_utf8_lossy(&out.stdout)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        }) {
            let _ = std::process::Command::new("docker").args(["rm", "-f", &id]).output();
        }
    }
}

/// Looks often, and gives up after a while.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
