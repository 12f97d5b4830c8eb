//! The world of these tests: the stub forge's `lab`, a database, a triggers file, and one worker that knows them.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::Arc,
};

use forges::{Api, ApiSettings, ForgeKind};
use http::HeaderMap;
use queue::{
    DeliveryId, JobId, NewDelivery, Queue, Receipt, WorkerName,
    read::{DecisionRow, DeliveryDetail},
};
use secrecy::SecretString;
use testkit::{
    forge::{Delivery as Sent, Scope, StubForge},
    postgres::Scratch,
};
use worker::{ForgeSetup, Settings, decide::Decider, decide::Forges, outbox::Poster, trigger_file::Live};

/// The repository of the stub's world.
pub const WIDGETS: &str = "lab/widgets";
/// The trigger of the design, as it stands there.
pub const TRIAGE: &str = r#"{ "on": { "type": "comment", "phrase": "@pi" }, "run": { "kind": "forgejo", "flow": "triage", "excludeTools": ["bash", "powershell", "edit", "write"] } }"#;
const SECRET: &str = "hook-secret-of-the-test";
/// The job's user: nobody that owns anything here.
pub const JOBS_USER: u32 = 10_001;

pub struct World {
    pub forge: StubForge,
    pub queue: Queue,
    pub setup: ForgeSetup,
    pub triggers: Arc<Live>,
    pub settings: Settings,
    pub folder: tempfile::TempDir,
    fed: HashSet<String>,
}

impl World {
    /// The lab, the design's trigger, our account with a permission token of the repository's admin.
    pub async fn new() -> Self {
        Self::with_triggers(&[TRIAGE]).await
    }

    pub async fn with_triggers(triggers: &[&str]) -> Self {
        let forge = StubForge::lab();
        // Nobody listens there: the deliveries are carried by hand, so that each test has its order in its own hands.
        forge.hook(WIDGETS, "http://127.0.0.1:9/hooks/codeberg", SECRET);
        Self::over(forge, triggers).await
    }

    /// The same over a forge that is furnished already.
    pub async fn over(forge: StubForge, triggers: &[&str]) -> Self {
        let database = Scratch::shared().await.database().await;
        let queue = Queue::connect(&queue::Connect::new(database.url, "worker-tests"))
            .await
            .unwrap();
        queue.migrate().await.unwrap();

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("triggers.json");
        std::fs::write(&file, file_of(triggers)).unwrap();
        let triggers = Arc::new(Live::open(&file, JOBS_USER).unwrap());

        let everything = [
            Scope::ReadRepository,
            Scope::WriteRepository,
            Scope::WriteIssue,
            Scope::ReadUser,
        ];
        let token = forge.token("pi-bot", &everything);
        let admin = forge.token("nils", &[Scope::ReadRepository]);
        let setup = ForgeSetup {
            name: "codeberg".to_owned(),
            kind: ForgeKind::Forgejo,
            api: Arc::new(api(&forge, &token, Some(&admin))),
            repositories: vec!["lab/*".to_owned()],
            account_id: Some(7),
            allow_users: BTreeSet::new(),
            withhold: Vec::new(),
        };
        let settings = Settings::new("one", "tests", folder.path());
        Self {
            forge,
            queue,
            setup,
            triggers,
            settings,
            folder,
            fed: HashSet::new(),
        }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("triggers.json")
    }

    /// Our account's only token, without a way to ask for other people's permission.
    pub fn without_permission_token(&mut self) {
        let everything = [
            Scope::ReadRepository,
            Scope::WriteRepository,
            Scope::WriteIssue,
            Scope::ReadUser,
        ];
        let token = self.forge.token("pi-bot", &everything);
        self.setup.api = Arc::new(api(&self.forge, &token, None));
    }

    pub fn forges(&self) -> Forges {
        Forges::new(vec![self.setup.clone()]).unwrap()
    }

    pub fn decider(&self) -> Decider {
        Decider::new(
            self.queue.clone(),
            self.forges(),
            Arc::clone(&self.triggers),
            Arc::new(self.settings.clone()),
        )
    }

    pub fn poster(&self) -> Poster {
        Poster::new(self.queue.clone(), self.forges(), self.worker())
    }

    pub fn worker(&self) -> WorkerName {
        WorkerName::from("one")
    }

    /// Carries what the forge sent since the last time into the queue, as the receiver does.
    pub async fn carry(&mut self) -> Vec<DeliveryId> {
        let mut stored = Vec::new();
        for delivery in self.forge.deliveries() {
            if self.fed.insert(delivery.id.clone()) {
                stored.push(self.store(&delivery).await);
            }
        }
        stored
    }

    /// Stores one delivery after its proof was checked.
    pub async fn store(&self, delivery: &Sent) -> DeliveryId {
        store(&self.queue, "codeberg", &delivery.headers, &delivery.body, SECRET)
            .await
            .expect("the stub signs well")
    }

    /// Stores a delivery that is signed with the right secret and says what it likes.
    pub async fn forge_a_delivery(&self, like: &Sent, change: impl FnOnce(&mut serde_json::Value)) -> DeliveryId {
        let mut body: serde_json::Value = serde_json::from_slice(&like.body).unwrap();
        change(&mut body);
        let body = serde_json::to_vec(&body).unwrap();
        let signature = testkit::forge::sign(SECRET, &body);
        let id = format!("forged-{}", &signature[..12]);
        let headers: Vec<(String, String)> = like
            .headers
            .iter()
            .map(|(name, value)| match name.as_str() {
                "X-Forgejo-Signature" | "X-Gitea-Signature" => (name.clone(), signature.clone()),
                "X-Hub-Signature-256" => (name.clone(), format!("sha256={signature}")),
                name if name.ends_with("-Delivery") => (name.to_owned(), id.clone()),
                _ => (name.clone(), value.clone()),
            })
            .collect();
        store(&self.queue, "codeberg", &headers, &body, SECRET)
            .await
            .expect("it was signed well")
    }

    /// The newest delivery of the stub.
    pub fn last_sent(&self) -> Sent {
        self.forge.deliveries().pop().expect("the forge sent something")
    }

    /// Decides all that is due.
    pub async fn decide(&self) {
        let decider = self.decider();
        while decider.run_once().await.unwrap() {}
    }

    /// Posts all that is due.
    pub async fn post(&self) {
        let poster = self.poster();
        while poster.run_once().await.unwrap() {}
    }

    /// Somebody comments on issue 1; the delivery is carried and decided.
    pub async fn comment(&mut self, who: &str, text: &str) -> DeliveryDetail {
        self.forge.comment(WIDGETS, 1, who, text);
        self.carry_and_decide().await
    }

    /// Carries and decides; the last of the deliveries is given.
    pub async fn carry_and_decide(&mut self) -> DeliveryDetail {
        let id = *self.carry().await.last().expect("the forge sent something new");
        self.decide().await;
        self.delivery(id).await
    }

    pub async fn delivery(&self, id: DeliveryId) -> DeliveryDetail {
        self.queue.delivery(id).await.unwrap().expect("the delivery is there")
    }

    /// As if that much time had passed for everything that waits: deliveries and outputs are due.
    pub async fn everything_is_due(&self) {
        self.sql("UPDATE deliveries SET not_before = now() WHERE not_before > now()")
            .await;
        self.sql("UPDATE outputs SET not_before = now() WHERE not_before > now()")
            .await;
    }

    pub async fn sql(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.queue.pool()).await.unwrap();
    }

    pub async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement)
            .fetch_one(self.queue.pool())
            .await
            .unwrap()
    }

    /// Claims the next job, as a worker that runs it does.
    pub async fn claim(&self) -> queue::Claim {
        let request = queue::ClaimRequest {
            worker: self.worker(),
            slots: 1,
            max_data_version: queue::JobData::VERSION,
            not_images: Vec::new(),
        };
        self.queue.claim(&request).await.unwrap().pop().expect("a job is due")
    }

    pub async fn jobs(&self) -> i64 {
        self.count("SELECT count(*) FROM jobs").await
    }
}

pub fn api(forge: &StubForge, token: &str, permission_token: Option<&str>) -> Api {
    Api::new(ApiSettings {
        kind: ForgeKind::Forgejo,
        url: forge.url(),
        token: SecretString::from(token),
        permission_token: permission_token.map(SecretString::from),
        plain_http: false,
    })
    .unwrap()
}

pub fn file_of(triggers: &[&str]) -> String {
    format!("{{ \"triggers\": [ {} ] }}", triggers.join(", "))
}

/// What the receiver does: proof, then the row. `None` when the proof does not hold.
pub async fn store(
    queue: &Queue,
    forge: &str,
    headers: &[(String, String)],
    body: &[u8],
    secret: &str,
) -> Option<DeliveryId> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    let verified = forges::verify(ForgeKind::Forgejo, &map, body, &[SecretString::from(secret)]).ok()?;
    let new = NewDelivery {
        forge,
        kind: ForgeKind::Forgejo.word(),
        delivery: &verified.delivery_id,
        event: &verified.event,
        event_type: &verified.event_type,
        headers: &serde_json::to_value(&verified.headers).unwrap(),
        body: &verified.body,
    };
    match queue.store_delivery(&new).await.unwrap() {
        Receipt::Stored(id) | Receipt::Known(id) => Some(id),
    }
}

/// The only decision of a delivery with one event and one trigger.
#[track_caller]
pub fn only(delivery: &DeliveryDetail) -> &DecisionRow {
    assert_eq!(delivery.events.len(), 1, "{delivery:#?}");
    assert_eq!(delivery.events[0].decisions.len(), 1, "{delivery:#?}");
    &delivery.events[0].decisions[0]
}

/// The word of the only decision: `fired`, `joined`, or why not.
#[track_caller]
pub fn word(delivery: &DeliveryDetail) -> &'static str {
    let decision = only(delivery);
    decision.reason.map_or(decision.verdict.word(), queue::Reason::word)
}

/// The job of the only decision.
#[track_caller]
pub fn job(delivery: &DeliveryDetail) -> JobId {
    only(delivery).job.expect("it made a job")
}
