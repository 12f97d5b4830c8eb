//! One job by hand, in the real image with the real pi: the same box as every job's, without a queue.
//! Needs Docker and the image `pi-job:2.0.0`.

#![expect(clippy::unwrap_used, reason = "a fixture fails by panicking")]

mod docker;
mod tiny;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use contract::{IMAGE_TAG, StopReason};
use gateway::providers::{Catalog, ModelConfig, ProviderConfig};
use queue::{Outcome, Reason};
use serde_json::{Value, json};
use testkit::model::{Script, ScriptedModel, Step};
use worker::{Bench, HandReport, JobByHand, Settings, run_job_file};

/// Everything that one job by hand needs, and the lines that it showed.
struct ByHand {
    model: ScriptedModel,
    settings: Settings,
    lines: Arc<Mutex<Vec<Value>>>,
    _root: tempfile::TempDir,
}

impl ByHand {
    fn new(script: Script) -> Option<Self> {
        testkit::need::docker()?;
        testkit::need::image(IMAGE_TAG)?;
        let root = tempfile::Builder::new().prefix("pi").tempdir_in("/tmp").unwrap();
        let mut settings = Settings::new("tester", "tests", root.path());
        settings.provider = Some("local".into());
        settings.model = Some("scripted".into());
        settings.container.free_floor = 0;
        Some(Self {
            model: ScriptedModel::start(script),
            settings,
            lines: Arc::default(),
            _root: root,
        })
    }

    fn catalog(&self) -> Arc<Catalog> {
        let cost = json!({ "input": "1", "output": "2" });
        let model: ModelConfig = serde_json::from_value(
            json!({ "id": "scripted", "context_window": 100_000, "max_tokens": 4096, "cost": cost }),
        )
        .unwrap();
        let provider = ProviderConfig {
            api: Some(contract::ApiShape::OpenaiCompletions),
            base_url: Some(self.model.openai_url().parse().unwrap()),
            models: vec![model],
            key: None,
        };
        Arc::new(Catalog::new(BTreeMap::from([("local".to_owned(), provider)])).unwrap())
    }

    async fn run(&self, job: Value) -> HandReport {
        self.run_until(job, std::future::pending()).await
    }

    async fn run_until(&self, job: Value, stop: impl Future<Output = ()>) -> HandReport {
        let report = self.go(job, stop).await;
        assert_eq!(self.left(), [""; 0], "a folder is left");
        report
    }

    /// The names of what is left in the data folder and in the sockets'.
    fn left(&self) -> Vec<String> {
        [&self.settings.data_dir, &self.settings.socket_dir]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "s")
            .collect()
    }

    async fn go(&self, job: Value, stop: impl Future<Output = ()>) -> HandReport {
        let job: JobByHand = serde_json::from_value(job).unwrap();
        let bench = Bench {
            engine: docker::engine().unwrap(),
            catalog: self.catalog(),
            settings: Arc::new(self.settings.clone()),
        };
        let lines = Arc::clone(&self.lines);
        let show = Box::new(move |line: &str| lines.lock().unwrap().push(serde_json::from_str(line).unwrap()));
        run_job_file(&job, bench, show, stop).await.unwrap()
    }

    async fn in_the_middle(&self) {
        while self.events("tool_start").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    fn events(&self, event: &str) -> Vec<Value> {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line["event"] == event)
            .cloned()
            .collect()
    }

    fn all(&self) -> String {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_by_hand_answers_without_its_excluded_tools() {
    let script = Script::steps([
        Step::calls("bash", json!({ "command": "id" })),
        Step::calls("read", json!({ "path": "hello.txt" })),
        Step::calls("forge_comment", json!({ "body": "It says **hello**." })),
        Step::says("I have proposed the answer."),
    ]);
    let Some(by_hand) = ByHand::new(script) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hello.txt"), "hello from the workspace").unwrap();

    let report = by_hand
        .run(json!({
            "prompt": "What does hello.txt say?",
            "workspace": folder.path(),
            "excludeTools": ["bash", "powershell", "edit", "write"],
        }))
        .await;

    assert_eq!(
        (report.outcome, report.reason),
        (Outcome::Completed, Reason::Done),
        "{}",
        by_hand.all()
    );
    assert_eq!(report.answers, ["It says **hello**."]);
    assert_eq!(report.spend.requests, 4);
    assert!(report.spend.cost.0 > 0);
    let offered = by_hand.model.offered_tools();
    assert_eq!(
        offered.iter().map(String::as_str).collect::<Vec<_>>(),
        ["forge_comment", "read"]
    );
    let proofs = by_hand.events("tools_excluded");
    assert_eq!(
        proofs.iter().map(|line| line["phase"].clone()).collect::<Vec<_>>(),
        ["start", "end"]
    );
    for proof in proofs {
        assert_eq!(proof["excluded"], json!(["bash", "powershell", "edit", "write"]));
    }
    assert!(
        by_hand.all().contains("hello from the workspace"),
        "read was answered from the copy"
    );
    let gates = by_hand.events("gate");
    assert_eq!(
        gates
            .iter()
            .map(|gate| gate["data"]["number"].clone())
            .collect::<Vec<_>>(),
        [3, 4, 5, 6, 11]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_would_cost_too_much_is_stopped_at_the_gateway_with_that_reason() {
    let Some(by_hand) = ByHand::new(Script::steps([Step::says("never")])) else {
        return;
    };

    let report = by_hand
        .run(json!({ "prompt": "Hello.", "maxCostUsd": "0.000001" }))
        .await;

    assert_eq!(
        (report.outcome, report.reason),
        (Outcome::Stopped, Reason::CostCap),
        "{}",
        by_hand.all()
    );
    assert_eq!(by_hand.model.requests().len(), 0, "not a byte left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_stops_a_run_that_hangs() {
    let hang = Script::steps([
        Step::calls("bash", json!({ "command": "sleep 600" })),
        Step::says("late"),
    ]);
    let Some(by_hand) = ByHand::new(hang) else { return };
    let lines = Arc::clone(&by_hand.lines);
    let in_the_middle = async move {
        loop {
            if lines.lock().unwrap().iter().any(|line| line["event"] == "tool_start") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };

    let report = by_hand.run_until(json!({ "prompt": "Wait." }), in_the_middle).await;

    assert_eq!(
        report.reason.word(),
        StopReason::StoppedByPerson.word(),
        "{}",
        by_hand.all()
    );
    assert_eq!(report.outcome, Outcome::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fills_its_workspace_with_files_is_stopped_and_named() {
    let command = "i=0; while true; do mkdir d$i; for j in $(seq 500); do : > d$i/$j; done; i=$((i+1)); done";
    let fill = Script::steps([Step::calls("bash", json!({ "command": command })), Step::says("late")]);
    let Some(mut by_hand) = ByHand::new(fill) else { return };
    by_hand.settings.container.workspace_files = 5_000;
    by_hand.settings.timing.disk = std::time::Duration::from_millis(200);
    by_hand.settings.timing.grace = std::time::Duration::from_secs(2);

    let report = by_hand.run(json!({ "prompt": "Fill." })).await;

    assert_eq!(
        (report.outcome, report.reason),
        (Outcome::Stopped, Reason::DiskCap),
        "{}",
        by_hand.all()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_the_label_is_refused_before_a_container_exists() {
    let Some(by_hand) = ByHand::new(Script::says("never")) else {
        return;
    };
    let Some(image) = tiny::TinyImage::with("unlabelled", &[]) else {
        return;
    };

    let report = by_hand
        .run(json!({ "prompt": "x", "image": image.tag, "excludeTools": ["bash"] }))
        .await;

    assert_eq!(report.outcome, Outcome::Refused);
    assert_eq!(report.reason, Reason::JobImageExcludeToolsUnsupported);
    assert!(by_hand.events("gate").iter().all(|gate| gate["data"]["number"] != 11));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_job_by_hand_left_is_removed_by_the_next_one_and_one_that_lives_is_let_be() {
    let hang = || {
        Script::steps([
            Step::calls("bash", json!({ "command": "sleep 600" })),
            Step::says("late"),
        ])
    };
    let (Some(dies), Some(mut lives), Some(mut next)) = (
        ByHand::new(hang()),
        ByHand::new(hang()),
        ByHand::new(Script::says("Here.")),
    ) else {
        return;
    };
    for other in [&mut lives, &mut next] {
        other.settings.data_dir.clone_from(&dies.settings.data_dir);
        other.settings.socket_dir.clone_from(&dies.settings.socket_dir);
    }
    tokio::select! {
        _ = dies.go(json!({ "prompt": "Wait." }), std::future::pending()) => panic!("it hangs"),
        () = dies.in_the_middle() => {}
    }
    let dead: Vec<String> = dies
        .left()
        .into_iter()
        .filter(|name| name.starts_with("by-hand-"))
        .collect();
    assert_eq!(dead.len(), 1, "its folder");
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    let stop = async move { drop(told.await) };
    let living = lives.go(json!({ "prompt": "Wait." }), stop);
    let rest = async {
        lives.in_the_middle().await;
        let report = next.go(json!({ "prompt": "Hello." }), std::future::pending()).await;
        assert_eq!(report.outcome, Outcome::Completed);
        tell.send(()).unwrap();
    };

    let (report, ()) = tokio::join!(living, rest);

    assert_eq!(
        report.reason,
        Reason::PersonStopped,
        "it lived until a person stopped it"
    );
    assert_eq!(next.left(), [""; 0]);
    let gone = docker::engine().unwrap().inspect(&format!("pi-{}-0-1", dead[0])).await;
    assert!(gone.is_err(), "the container of the dead one is gone");
}
