//! The scratch PostgreSQL: shared by a process, stoppable, and gone when the process is.

use std::process::{Command, Stdio};
use testkit::postgres::{Scratch, TestDatabase};

fn ask(database: &TestDatabase, sql: &str) -> Result<String, String> {
    let run = Command::new("psql")
        .args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            &database.url,
            "-c",
            sql,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("psql cannot be started: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if run.status.success() {
        Ok(text(&run.stdout))
    } else {
        Err(text(&run.stderr))
    }
}

#[tokio::test]
async fn each_test_gets_an_empty_database_of_its_own() {
    let (one, two) = (
        Scratch::shared().await.database().await,
        Scratch::shared().await.database().await,
    );

    ask(&one, "create table mine (id int)").expect("one may write");

    assert_eq!(ask(&two, "select to_regclass('mine') is null").as_deref(), Ok("t"));
    assert_ne!(one.url, two.url);
    assert_eq!(ask(&one, "show server_version_num").expect("it answers")[..2], *"15");
}

#[tokio::test]
async fn what_was_committed_is_there_after_the_server_was_stopped_at_once() {
    let scratch = Scratch::private().await;
    let database = scratch.database().await;
    ask(&database, "create table kept as select 7 as id").expect("the server runs");

    scratch.stop().await;
    assert!(ask(&database, "select 1").is_err(), "a stopped server answers nobody");
    scratch.resume().await;
    scratch.restart().await;

    assert_eq!(ask(&database, "select id from kept").as_deref(), Ok("7"));
}

#[tokio::test]
async fn a_private_cluster_leaves_nothing_behind() {
    let scratch = Scratch::private().await;
    let folder = scratch.socket_dir().to_owned();
    assert!(folder.join("data").is_dir());
    assert!(folder.as_os_str().len() < 80, "a socket path has 107 bytes");

    drop(scratch);

    assert!(!folder.exists());
}

/// Not a test: the process that the next one kills. It says where its cluster is and waits.
#[tokio::test]
#[ignore = "started and killed by `a_killed_process_leaves_no_server_and_no_folder`"]
async fn a_process_to_kill() {
    let scratch = Scratch::shared().await;
    eprintln!("cluster={}", scratch.socket_dir().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_process_leaves_no_server_and_no_folder() {
    use std::io::{BufRead, BufReader};
    let mut victim = Command::new(std::env::current_exe().expect("this test has a path"))
        .args(["--ignored", "--exact", "--nocapture", "a_process_to_kill"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("this test starts again");
    let said = BufReader::new(victim.stderr.take().expect("piped"))
        .lines()
        .map_while(Result::ok);
    let folder = said
        .filter_map(|line| line.strip_prefix("cluster=").map(str::to_owned))
        .next()
        .expect("it starts");
    let pid = std::fs::read_to_string(format!("{folder}/data/postmaster.pid")).expect("the server runs");
    let server = std::path::PathBuf::from("/proc").join(pid.lines().next().expect("a process id").trim());
    assert!(server.exists());

    victim.kill().expect("SIGKILL is sent");
    victim.wait().expect("it is gone");

    for _ in 0..200 {
        if !std::path::Path::new(&folder).exists() && !server.exists() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("{folder} is still there");
}
