//! Jobs by hand with the real pi, runs whose model plays a list of calls, and images made from ours with something changed.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use contract::Tool;
use serde_json::Value;
use testkit::model::{Conversation, Plan, ScriptedModel};
use testkit::need;
use worker::container::Engine;
use worker::{Bench, HandReport, JobByHand, Settings, run_job_file};

use crate::IMAGE;

/// The four tools that the README's trigger takes away.
pub const FOUR: [Tool; 4] = [Tool::Bash, Tool::Powershell, Tool::Edit, Tool::Write];

/// None, the example's four, all eight: what every attack is tried with.
pub fn three_sets() -> [Vec<Tool>; 3] {
    [Vec::new(), FOUR.to_vec(), Tool::ALL.to_vec()]
}

/// Their names.
pub fn names(tools: &[Tool]) -> Vec<&'static str> {
    tools.iter().map(|tool| tool.name()).collect()
}

/// A trigger as in the file, which fires on `phrase` and says no more than `run`.
pub fn trigger(phrase: &str, run: &[(&str, Value)]) -> String {
    let mut body = serde_json::json!({ "kind": "forgejo", "flow": "triage" });
    for (key, value) in run {
        body[*key] = value.clone();
    }
    serde_json::json!({ "on": { "type": "comment", "phrase": phrase }, "run": body }).to_string()
}

/// What came back for each call of the longest conversation that `of` picks, in order.
pub fn answers(model: &ScriptedModel, of: impl Fn(&Conversation) -> bool) -> Vec<(String, String)> {
    let longest = model
        .requests()
        .into_iter()
        .filter_map(|request| request.conversation)
        .filter(|conversation| of(conversation))
        .max_by_key(Conversation::assistant_messages)
        .expect("the model was asked");
    let calls = longest.calls();
    calls
        .map(|(call, answer)| (call.name.clone(), answer.unwrap_or_default().to_owned()))
        .collect()
}

/// Runs jobs by hand: the box of every other job, without a forge and a queue.
pub struct Hand {
    /// What they talk to.
    pub model: ScriptedModel,
    /// The worker's settings.
    pub settings: Settings,
    root: tempfile::TempDir,
}

/// A job by hand that has ended.
pub struct HandRun {
    /// How.
    pub report: HandReport,
    /// Every line that it showed.
    pub lines: Vec<Value>,
}

impl HandRun {
    /// The lines of one event.
    pub fn events(&self, event: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["event"] == event).collect()
    }
}

impl Hand {
    /// `None`, after saying so, where Docker or the image is not there.
    pub fn new(plan: impl Into<Plan>) -> Option<Self> {
        need::docker()?;
        need::image(IMAGE)?;
        let root = tempfile::Builder::new()
            .prefix("pd-")
            .tempdir_in("/tmp")
            .expect("a folder");
        let mut settings = Settings::new("hand", "hand", root.path());
        settings.provider = Some("scripted".to_owned());
        settings.model = Some("scripted-1".to_owned());
        Some(Self {
            model: ScriptedModel::start(plan),
            settings,
            root,
        })
    }

    /// Runs one job file to its end.
    pub async fn run(&self, job: Value) -> HandRun {
        let job: JobByHand = serde_json::from_value(job).expect("the job file is of its shape");
        let docker = bollard::Docker::connect_with_socket(need::DOCKER_SOCKET, 120, bollard::API_DEFAULT_VERSION)
            .expect("a client");
        let bench = Bench {
            engine: Engine::new(docker),
            catalog: Arc::new(crate::catalog_of(&self.model)),
            settings: Arc::new(self.settings.clone()),
        };
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let show = Box::new(move |line: &str| {
            let line = serde_json::from_str(line).expect("a line is JSON");
            kept.lock().expect("nobody panicked").push(line);
        });
        let report = run_job_file(&job, bench, show, std::future::pending())
            .await
            .expect("the job gets through its box");
        let lines = std::mem::take(&mut *lines.lock().expect("nobody panicked"));
        HandRun { report, lines }
    }

    /// What is left of the jobs' folders.
    pub fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.path()).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "s").collect()
    }
}

/// Runs the docker command.
pub fn docker(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the docker command is there");
    let mut pipe = child.stdin.take().expect("it was piped");
    pipe.write_all(stdin).expect("docker reads it");
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

/// An image of one test. It goes with this value.
pub struct Image {
    /// Its name.
    pub tag: String,
}

impl Image {
    fn tag(name: &str) -> String {
        format!("pi-dispatch-story/{name}:{}", std::process::id())
    }

    /// Ours, with these lines of a Dockerfile and these files beside it.
    pub fn derived(name: &str, lines: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let text = format!("FROM {IMAGE}\nUSER 0\n{}\n", lines.join("\n"));
        std::fs::write(folder.path().join("Dockerfile"), text).expect("a file");
        let tag = Self::tag(name);
        let path = folder.path().to_string_lossy().into_owned();
        let built = docker(&["build", "-q", "--network", "none", "-t", &tag, &path], b"");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Self { tag }
    }

    /// An image that has nothing of ours: one file and no label.
    pub fn foreign(name: &str) -> Self {
        let tag = Self::tag(name);
        // An empty archive: two blocks of zeros.
        let made = docker(&["import", "-", &tag], &[0; 1024]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { tag }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = docker(&["rmi", "-f", &self.tag], b"");
    }
}
