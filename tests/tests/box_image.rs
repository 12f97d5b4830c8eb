//! Images that may not run a job, and containers that somebody starts by hand.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use contract::{ApiShape, JOB_FILE_VERSION, JobFile, JobLimits, Thinking, Tool, labels};
use queue::{JobState, Outcome, Reason};
use serde_json::{Value, json};
use stories::hand::{Image, docker, trigger};
use stories::{IMAGE, PATIENCE, Plans, World};
use testkit::need;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_may_not_run_the_job_is_refused_on_the_forge_before_anything_is_fetched() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let capabilities = |value: &str| format!("LABEL {}=\"{value}\"", labels::CAPABILITIES);
    let unsupported = Reason::JobImageExcludeToolsUnsupported;
    let derived = |name: &str, line: &str| Image::derived(name, &[line], &[]);
    let job_label = format!("LABEL {}=\"7\"", labels::JOB);
    let images = [
        (Image::foreign("unlabelled"), unsupported),
        (derived("no-label", &capabilities("")), unsupported),
        (
            derived("wrong-case", &capabilities("proposals,excludetools")),
            unsupported,
        ),
        (derived("longer", &capabilities("proposals,excludeTools2")), unsupported),
        (derived("volume", "VOLUME /data"), Reason::JobImageUnsafe),
        (
            derived("node-options", "ENV NODE_OPTIONS=--require=/x.js"),
            Reason::JobImageUnsafe,
        ),
        (derived("preload", "ENV LD_PRELOAD=/x.so"), Reason::JobImageUnsafe),
        (derived("our-label", &job_label), Reason::JobImageUnsafe),
    ];
    let triggers = images
        .iter()
        .enumerate()
        .map(|(at, (image, _))| {
            trigger(
                &format!("@try{at}x"),
                &[
                    ("image", json!(image.tag)),
                    ("excludeTools", json!(["bash", "powershell", "edit", "write"])),
                ],
            )
        })
        .collect();
    let world = World::with(Plans {
        triggers,
        ..Plans::default()
    })
    .await;
    for (at, (image, reason)) in images.iter().enumerate() {
        world
            .forge
            .comment("lab/widgets", 1, "mira", &format!("@try{at}x please"));
        let job = world.jobs(at + 1).await[at].job;
        let run = world.finished(job).await;
        let JobState::Finished {
            outcome, reason: found, ..
        } = run.row.state
        else {
            panic!("it is over")
        };
        assert_eq!(
            (outcome, found),
            (Outcome::Refused, *reason),
            "{}: {}",
            image.tag,
            run.detail
        );
    }
    let comments = world
        .forge
        .wait_for_comments_by("lab/widgets", 1, "pi-bot", images.len(), PATIENCE)
        .await;
    world.all_decided().await;
    assert_eq!(comments.len(), images.len(), "one refusal each");
    for (_, reason) in &images {
        let with = comments.iter().filter(|comment| comment.body.contains(reason.word()));
        let wanted = images.iter().filter(|(_, other)| other == reason).count();
        assert_eq!(with.count(), wanted, "{reason:?}: {comments:#?}");
    }
    for comment in &comments {
        let reason = images
            .iter()
            .map(|(_, reason)| reason)
            .find(|reason| comment.body.contains(reason.word()));
        let fix = reason.expect("it names its reason").fix();
        assert!(comment.body.contains(fix), "the fix is named: {}", comment.body);
    }
    let git: Vec<_> = world
        .forge
        .calls()
        .into_iter()
        .filter(|call| call.path.contains(".git"))
        .collect();
    assert!(git.is_empty(), "nothing was fetched: {git:#?}");
    assert!(world.model.requests().is_empty(), "no model was asked");
}

/// A `/job` as the worker writes it, with `exclude_tools` as told, whatever that is.
fn job_folder(exclude_tools: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let file = JobFile {
        version: JOB_FILE_VERSION,
        job: 1,
        attempt: 1,
        exclude_tools: vec![Tool::Bash],
        provider: "scripted".to_owned(),
        model: "scripted-1".to_owned(),
        api: ApiShape::OpenaiCompletions,
        thinking: Thinking::Off,
        limits: JobLimits {
            setup_seconds: 20,
            total_seconds: 20,
            ..JobLimits::default()
        },
        proposals: Vec::new(),
        system_sha256: sha256("system"),
        prompt_sha256: sha256("prompt"),
    };
    let mut file = serde_json::to_value(file).expect("plain data");
    file["exclude_tools"] = exclude_tools.clone();
    let models = json!({ "providers": { "scripted": { "baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions",
        "apiKey": contract::DUMMY_KEY, "models": [{ "id": "scripted-1", "cost": { "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0 } }] } } });
    for (name, text) in [
        ("job.json", file.to_string()),
        ("tools.json", r#"{"version":1,"tools":[]}"#.to_owned()),
        ("models.json", models.to_string()),
        ("event.json", "{}".to_owned()),
        ("system.md", "system".to_owned()),
        ("prompt.md", "prompt".to_owned()),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(text))
}

/// Starts the runner in the box by hand; its exit code and all that it printed.
fn by_hand(job: &Path, variable: Option<&str>) -> (Option<i32>, String) {
    let mount = format!("{}:/job:ro", job.display());
    let mut arguments = vec![
        "run",
        "--rm",
        "--network",
        "none",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--read-only",
        "--ipc",
        "none",
        "--pids-limit",
        "256",
        "--memory",
        "1g",
        "--user",
        "10001:10001",
        "--tmpfs",
        "/tmp:mode=1777",
        "--tmpfs",
        "/run/pi-agent:uid=10001,gid=10001,mode=0700",
        "--tmpfs",
        "/home/job:uid=10001,gid=10001,mode=0700",
        "--tmpfs",
        "/session:uid=10001,gid=10001,mode=0700",
        "--tmpfs",
        "/workspace:uid=10001,gid=10001,mode=0700",
        "-v",
        &mount,
    ];
    let variable = variable.map(|value| format!("PI_EXCLUDE_TOOLS={value}"));
    if let Some(variable) = &variable {
        arguments.extend(["-e", variable]);
    }
    arguments.push(IMAGE);
    let ran = docker(&arguments, b"");
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    (ran.status.code(), printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_by_hand_with_a_wrong_or_a_differing_name_ends_with_exit_2_before_pi_starts() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let unknown = "exclude-tools-unknown";
    let differ = "exclude-tools-differ";
    let cases: [(Option<&str>, Value, &str); 10] = [
        (Some("Bash"), json!(["bash"]), unknown),
        (Some("Bash"), json!(["Bash"]), unknown),
        (Some("bash,"), json!(["bash"]), unknown),
        (Some(" bash"), json!(["bash"]), unknown),
        (Some(""), json!([]), unknown),
        (Some("shell"), json!([]), unknown),
        (Some("bash"), json!(["read"]), differ),
        (None, json!(["bash"]), differ),
        (Some("bash"), json!([]), differ),
        (Some("powershell,bash"), json!(["bash", "powershell"]), differ),
    ];
    for (variable, file, word) in cases {
        let folder = job_folder(&file);
        let (code, printed) = by_hand(folder.path(), variable);
        assert_eq!(code, Some(2), "{variable:?} with {file}: {printed}");
        assert!(printed.contains(word), "{variable:?} with {file}: {printed}");
        assert!(
            !printed.contains("\"readback\"") && !printed.contains("\"started\""),
            "{printed}"
        );
    }
    // The same folder, said rightly, gets past that: it fails for want of a gateway.
    let folder = job_folder(&json!(["bash"]));
    let (code, printed) = by_hand(folder.path(), Some("bash"));
    assert_eq!(code, Some(1), "{printed}");
}
