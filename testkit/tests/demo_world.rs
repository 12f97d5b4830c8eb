//! The program behind `./up --demo`.

use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    listener
        .and_then(|listener| listener.local_addr())
        .map_or(0, |address| address.port())
}

/// Starts it and waits for its `ready`.
fn start(dir: &Path, forge: u16, more: &[&str]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_demo-world"))
        .args([
            "--forge",
            &format!("127.0.0.1:{forge}"),
            "--model",
            "127.0.0.1:0",
            "--work",
        ])
        .arg(dir.join("work"))
        .args(["--hook-url", "http://127.0.0.1:9/hooks/demo"])
        .arg("--hook-secret-file")
        .arg(dir.join("hook"))
        .arg("--token-file")
        .arg(dir.join("token"))
        .arg("--permission-token-file")
        .arg(dir.join("permission"))
        .arg("--model-key-file")
        .arg(dir.join("key"))
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("it cannot be started: {error}"));
    let output = child.stdout.take().map(BufReader::new);
    let ready = output.is_some_and(|output| output.lines().map_while(Result::ok).any(|line| line == "ready"));
    assert!(ready, "it did not get ready");
    child
}

fn ends(mut child: Child) -> bool {
    for _ in 0..200 {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    false
}

#[tokio::test]
async fn it_writes_what_pi_dispatch_needs_and_ends_when_its_input_is_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let mut world = start(dir.path(), port, &["--id-base", "3000"]);
    let secret = |name: &str| {
        std::fs::read_to_string(dir.path().join(name))
            .expect("it is written")
            .trim()
            .to_owned()
    };
    let made = ["hook", "token", "permission", "key"].map(secret);
    for name in ["hook", "token", "permission", "key"] {
        let mode = std::fs::metadata(dir.path().join(name))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let me = client.get(format!("http://127.0.0.1:{port}/api/v1/user"));
    let me = me
        .header("authorization", format!("token {}", made[1]))
        .send()
        .await
        .expect("it answers");
    assert_eq!(me.json::<serde_json::Value>().await.expect("JSON")["id"], 7);

    let comment = json!({ "as": "mira", "issue": 1, "body": "@pi triage" });
    let comment = client
        .post(format!("http://127.0.0.1:{port}/demo/comment"))
        .json(&comment)
        .send()
        .await;
    let comment: serde_json::Value = comment.expect("it answers").json().await.expect("JSON");
    assert!(
        comment["id"].as_i64() > Some(3000),
        "ids begin after the base: {comment}"
    );
    drop(world.stdin.take());
    assert!(ends(world), "it ends with whoever holds its input");

    let mut again = start(dir.path(), port, &["--id-base", "4000"]);
    assert_eq!(
        ["hook", "token", "permission", "key"].map(secret),
        made,
        "what is there is kept"
    );
    drop(again.stdin.take());
    assert!(ends(again));
}

#[tokio::test]
async fn it_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().expect("a folder");
    let world = start(dir.path(), 0, &[]);

    let pid = i32::try_from(world.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("SIGTERM is sent");

    assert!(ends(world));
}
