//! The laws of the design, one test for each, on this road. `docs/security.md` names further tests for some of them.
//!
//! Laws 4, 5, 6, 9, 10, 12 and 13 are looked for in one run: a hostile comment, a job with a shell, a container that is inspected
//! while it runs.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use queue::read::{DeliveryFilter, JobDetail, LogRow};
use queue::{ClaimRequest, GateRow, GateVerdict, JobState, LogId, Outcome, Reason, StoreError, WorkerName};
use serde_json::{Value, json};
use stories::hand::trigger;
use stories::{HOOK_SECRET, IMAGE, MODEL_KEY, PATIENCE, Plans, TRIAGE, World, client, until};
use testkit::forge::{ApiCall, File, sign};
use testkit::model::{Script, Step};
use testkit::need;

const WIDGETS: &str = "lab/widgets";
/// What a stranger wrote; part of the hostile text.
const CANARY: &str = "canary-law-twelve";
/// Colours, a change of direction, a command, a way up, a new line.
const HOSTILE: &str = "canary-law-twelve \u{1b}[31m\u{202e} $(touch /tmp/canary-law-twelve) `id` ../../etc 'a\"b";

/// Receiver, panel and worker; nothing is claimed.
async fn paused(plans: Plans) -> World {
    let mut world = World::without_worker(plans).await;
    world.queue.pause("story").await.expect("it can be paused");
    world.start_worker();
    world
}

/// Everything that one hostile run left.
struct Evidence {
    run: JobDetail,
    log: Vec<LogRow>,
    inspected: Value,
    /// What the forge was asked from the comment to the end.
    calls: Vec<ApiCall>,
    /// Every line that our services logged.
    logged: String,
    /// The job's folders while it ran, by name.
    folders: Vec<String>,
    secrets: Vec<String>,
    folder_gone: bool,
    /// What the host put into the box: its files by name, and their text.
    given: Vec<(String, String)>,
    /// A folder of the host that links of the job point to, before and after the run.
    outside: [Vec<Trace>; 2],
}

/// What every touch of a file changes: its owner, mode, times of reading and writing, and whether it is there.
type Trace = Option<(u32, u32, u32, i64, i64, i64, i64)>;

fn traces(paths: &[PathBuf]) -> Vec<Trace> {
    let trace = |path: &PathBuf| {
        let seen = path.symlink_metadata().ok()?;
        let (read, written) = ((seen.atime(), seen.atime_nsec()), (seen.mtime(), seen.mtime_nsec()));
        Some((
            seen.uid(),
            seen.gid(),
            seen.mode(),
            read.0,
            read.1,
            written.0,
            written.1,
        ))
    };
    paths.iter().map(trace).collect()
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The run, made once for all tests of this file; `None` without Docker or the image.
fn evidence() -> Option<&'static Evidence> {
    static RUN: OnceLock<Option<Evidence>> = OnceLock::new();
    need::docker()?;
    need::image(IMAGE)?;
    let run = RUN.get_or_init(|| {
        // Several tests wait for it: it has a runtime of its own. A failure is kept too, else each of them would run into it again, and
        // the runtime is left behind, since it would wait for whatever hangs there.
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let gathered = catch_unwind(AssertUnwindSafe(|| runtime.block_on(gather())));
            runtime.shutdown_background();
            gathered.ok()
        })
        .join()
        .ok()
        .flatten()
    });
    Some(run.as_ref().expect("the hostile run went through"))
}

async fn gather() -> Evidence {
    let lines = Lines::default();
    let writer = lines.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(move || writer.clone())
        .try_init()
        .expect("no other subscriber is there");
    let elsewhere = tempfile::Builder::new().prefix("pd-").tempdir().expect("a folder");
    let outside = [elsewhere.path().to_path_buf(), elsewhere.path().join("kept")];
    std::fs::write(&outside[1], "kept").expect("it can be written");
    let before = traces(&outside);
    let [folder, kept] = &outside.each_ref().map(|path| path.display().to_string());
    let leave = format!(
        "env; ln -s {folder} /session/out; ln -s {folder} /workspace/out; ln -s {kept} /session/kept.jsonl; ln -s {kept} /workspace/README.link; mkfifo /session/pipe /workspace/pipe; mkdir -p /workspace/a/b && chmod 000 /workspace/a; sleep 6; echo left"
    );
    let plans = Plans {
        triggers: vec![trigger("@pi", &[("excludeTools", json!(["edit", "write"]))])],
        model: Script::steps([
            Step::calls("bash", json!({ "command": leave, "timeout": 20 })),
            Step::says("That is all."),
        ])
        .into(),
        ..Plans::default()
    };
    let world = World::with(plans).await;
    let links = [File::link("planted", folder), File::link("planted.md", kept)];
    world.forge.commit(WIDGETS, "main", &links, "Links that lead out");
    let issue = world.forge.issue(WIDGETS, "sol", HOSTILE, HOSTILE);
    world.forge.forget_calls();
    world
        .forge
        .comment(WIDGETS, issue, "mira", &format!("@pi look {HOSTILE}"));
    let job = world.jobs(1).await[0].job;
    let container = until("the shell of the job is busy", async || {
        let detail = world.queue.job(job).await.ok().flatten()?;
        let log = world.queue.job_log(job, LogId(0), 1000).await.ok()?;
        log.iter().find(|row| row.kind == "tool_start")?;
        detail.attempts.first()?.container.clone()
    })
    .await;
    let inspect = Command::new("docker")
        .args(["inspect", &container])
        .output()
        .expect("docker answers");
    let inspected: Value = serde_json::from_slice(&inspect.stdout).expect("docker shows JSON");
    let data = world.settings().data_dir.clone();
    let folders = names_below(&data, 3);
    let given = texts_below(&data.join("jobs"), 1);
    let run = world.finished(job).await;
    world
        .forge
        .wait_for_comments_by(WIDGETS, issue, "pi-bot", 1, PATIENCE)
        .await;
    world.all_decided().await;
    let log = world.queue.job_log(job, LogId(0), 1000).await.expect("a log");
    let folder_gone = until("the job's folders are gone", async || {
        (!names_below(&data, 4).iter().any(|name| name == "README.link")).then_some(true)
    })
    .await;
    Evidence {
        run,
        log,
        inspected: inspected[0].clone(),
        calls: world.forge.calls(),
        logged: String::from_utf8_lossy(&lines.0.lock().expect("nobody panicked")).into_owned(),
        folders,
        secrets: vec![
            world.token.clone(),
            HOOK_SECRET.to_owned(),
            MODEL_KEY.to_owned(),
            world.database.url.clone(),
        ],
        folder_gone,
        given,
        outside: [before, traces(&outside)],
    }
}

/// Name and text of every file of the jobs' folders that the host alone writes: what lies beside the mounts, and `/job`.
fn texts_below(folder: &Path, level: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return found;
    };
    for entry in entries.filter_map(Result::ok) {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && (level != 2 || name == "job") {
            found.extend(texts_below(&entry.path(), level + 1));
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            found.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

/// Names of what is in a folder and, so many levels, below it; links are not followed.
fn names_below(folder: &Path, levels: usize) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return found;
    };
    for entry in entries.filter_map(Result::ok) {
        found.push(entry.file_name().to_string_lossy().into_owned());
        if levels > 1 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(names_below(&entry.path(), levels - 1));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn law_1_nothing_lost_no_2xx_before_the_commit() {
    let world = World::without_worker(Plans::default()).await;
    let mut lock = world.queue.pool().begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .expect("it can be locked");
    let body = "{}";
    let request = client(None)
        .post(format!("{}/hooks/lab", world.hooks))
        .header("content-type", "application/json")
        .header("x-forgejo-delivery", "one")
        .header("x-forgejo-event", "push")
        .header("x-forgejo-event-type", "push")
        .header("x-forgejo-signature", sign(HOOK_SECRET, body.as_bytes()))
        .body(body);
    let mut answer = tokio::spawn(request.send());
    let early = tokio::time::timeout(Duration::from_millis(700), &mut answer).await;
    assert!(early.is_err(), "it answered {early:?} while nothing could be committed");
    lock.commit().await.expect("it can be released");
    let status = answer.await.expect("it ran").expect("it answers").status();
    assert_eq!(status, 202);
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn law_2_nothing_twice_by_constraint_and_by_lease() {
    let mut world = paused(Plans::default()).await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let job = world.jobs(1).await[0].job;
    world.kill_worker().await;

    // The database itself says no, whatever code runs above it.
    for again in [
        "INSERT INTO deliveries (forge, kind, delivery, event, event_type, headers, body) SELECT forge, kind, delivery, event, event_type, headers, body FROM deliveries",
        "INSERT INTO event_keys (forge, key, event_id) SELECT forge, key, event_id FROM event_keys",
        "INSERT INTO jobs (lane_id, repository_id, series, trigger_id, flow, forge, image, data_version, data) SELECT lane_id, repository_id, series, trigger_id, flow, forge, image, data_version, data FROM jobs",
    ] {
        let refused = sqlx::query(again).execute(world.queue.pool()).await;
        let unique = refused
            .as_ref()
            .err()
            .and_then(sqlx::Error::as_database_error)
            .is_some_and(|error| error.is_unique_violation());
        assert!(unique, "{again}: {refused:?}");
    }

    // Of two workers one gets it; and who has it no more can write nothing.
    world.queue.resume("story").await.expect("it can be resumed");
    let request = |name: &str| ClaimRequest {
        worker: WorkerName(name.to_owned()),
        slots: 3,
        max_data_version: queue::JobData::VERSION,
        not_images: Vec::new(),
    };
    let (one, two) = (request("one"), request("two"));
    let (first, second) = tokio::join!(world.queue.claim(&one), world.queue.claim(&two));
    let mut claims = first.expect("a claim");
    claims.extend(second.expect("a claim"));
    assert_eq!(claims.len(), 1, "one job, one claim");
    let old = claims.remove(0);
    assert_eq!(old.job, job);
    let row = GateRow {
        number: 1,
        name: "trigger".to_owned(),
        verdict: GateVerdict::Passed,
        reason: None,
        detail: String::new(),
        micros: 1,
    };
    world.queue.gate(&old, &row).await.expect("it is ours");
    for name in ["one", "two"] {
        let name = WorkerName(name.to_owned());
        let _ = world
            .queue
            .adopt(&name, old.job, old.attempt)
            .await
            .expect("it can be asked");
    }
    let lost = world.queue.gate(&old, &row).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost { .. })), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn law_3_free_before_paid() {
    if need::docker().is_none() {
        return;
    }
    let numbers: Vec<i16> = worker::gates::Gate::ALL.iter().map(|gate| gate.number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 9, 11], "one list, from cheap to dear");

    let plans = Plans {
        settings: Box::new(|settings| settings.image = "pi-job:nobody-has-this".to_owned()),
        ..Plans::default()
    };
    let world = World::with(plans).await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let run = world.finished(world.jobs(1).await[0].job).await;
    assert!(
        matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Refused,
                reason: Reason::JobImageMissing,
                ..
            }
        ),
        "{:?}",
        run.row.state
    );
    assert_eq!(
        run.gates.iter().map(|gate| gate.number).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    world
        .forge
        .wait_for_comments_by(WIDGETS, 1, "pi-bot", 1, PATIENCE)
        .await;
    let git: Vec<_> = world
        .forge
        .calls()
        .into_iter()
        .filter(|call| call.path.contains(".git"))
        .collect();
    assert!(git.is_empty(), "nothing was fetched: {git:?}");
    assert_eq!(world.count("SELECT count(*) FROM model_requests").await, 0);
    assert!(run.attempts.iter().all(|attempt| attempt.container.is_none()));
    assert!(world.model.requests().is_empty());
}

#[test]
fn law_4_the_containers_flags_come_from_the_worker() {
    let Some(seen) = evidence() else { return };
    let host = &seen.inspected["HostConfig"];
    assert_eq!(host["CapDrop"], json!(["ALL"]));
    assert!(host["CapAdd"].as_array().is_none_or(Vec::is_empty), "{host}");
    assert_eq!(host["Privileged"], json!(false));
    assert_eq!(host["ReadonlyRootfs"], json!(true));
    assert_eq!(host["Memory"], host["MemorySwap"]);
    assert!(host["PidsLimit"].as_i64().is_some_and(|limit| limit > 0), "{host}");
    let options = host["SecurityOpt"].to_string();
    assert!(options.contains("no-new-privileges"), "{options}");
    let user = seen.inspected["Config"]["User"].as_str().unwrap_or_default();
    assert!(user.starts_with("10001"), "{user}");
    let mounts = seen.inspected["Mounts"].as_array().expect("a list");
    let mut targets: Vec<&str> = mounts
        .iter()
        .filter_map(|mount| mount["Destination"].as_str())
        .collect();
    targets.sort_unstable();
    assert_eq!(targets, ["/job", "/run/pi-dispatch", "/session", "/workspace"]);
}

#[test]
fn law_5_one_door() {
    let Some(seen) = evidence() else { return };
    assert_eq!(seen.inspected["HostConfig"]["NetworkMode"], json!("none"));
    assert_eq!(seen.inspected["Config"]["NetworkDisabled"], json!(true));
    let networks = seen.inspected["NetworkSettings"]["Networks"]
        .as_object()
        .expect("an object");
    assert!(networks.keys().all(|name| name == "none"), "{networks:?}");
}

#[test]
fn law_6_the_job_holds_no_key() {
    let Some(seen) = evidence() else { return };
    assert!(
        seen.given.iter().any(|(name, _)| name == "models.json"),
        "what it was given was looked at"
    );
    let given: String = seen.given.iter().map(|(_, text)| text.as_str()).collect();
    let log: String = seen.log.iter().map(|row| row.data.to_string()).collect();
    let all = format!("{}{given}{log}", seen.inspected);
    for secret in &seen.secrets {
        assert!(!all.contains(secret.as_str()), "the job was given a secret");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn law_7_narrow_only() {
    if need::docker().is_none() || need::image(IMAGE).is_none() {
        return;
    }
    let plans = Plans {
        triggers: vec![trigger("@pi", &[("excludeTools", json!(["bash", "edit"]))])],
        model: Script::says("Nothing to do.").into(),
        ..Plans::default()
    };
    let world = paused(plans).await;
    let wish = "@pi look, with excludeTools: [] and {\"excludeTools\": [\"read\"], \"tools\": [\"bash\"]}";
    world.forge.comment(WIDGETS, 1, "mira", wish);
    let job = world.jobs(1).await[0].job;
    // While it waits the file drops one exclusion and gains another: both hold.
    world.write_triggers(&[trigger("@pi", &[("excludeTools", json!(["edit", "write"]))])]);
    until("the edit is in force", async || {
        let file: String = sqlx::query_scalar("SELECT triggers::text FROM triggers_in_force")
            .fetch_one(world.queue.pool())
            .await
            .ok()?;
        file.contains("write").then_some(())
    })
    .await;
    world.queue.resume("story").await.expect("it can be resumed");
    let run = world.finished(job).await;
    let mut excluded: Vec<String> =
        serde_json::from_value(run.tools_excluded.first().expect("a line")["excluded"].clone()).expect("a list");
    excluded.sort();
    assert_eq!(excluded, ["bash", "edit", "write"]);
    for request in world.model.requests() {
        assert!(
            request.tools().iter().all(|tool| !excluded.contains(tool)),
            "{:?}",
            request.tools()
        );
        assert!(
            request.tools().contains(&"read".to_owned()),
            "a comment takes nothing away either"
        );
    }
}

#[test]
fn law_8_never_quietly_wrong() {
    let text = "{ \"triggers\": [\n  { \"on\": { \"type\": \"comment\", \"phrase\": \"@pi\" },\n    \"run\": { \"kind\": \"forgejo\", \"flow\": \"triage\", \"excludeTool\": [\"bash\"] } }\n] }";
    let parsed = triggers::parse("triggers.json", text);
    assert!(parsed.file.is_none(), "a file that is not understood is not in force");
    let [fault] = parsed.faults.as_slice() else {
        panic!("{:?}", parsed.faults)
    };
    assert_eq!(fault.line, 3);
    let words = format!("{} {}", fault.message, fault.help.as_deref().unwrap_or_default());
    assert!(
        words.contains("excludeTool") && words.contains("excludeTools"),
        "{words}"
    );
    let list = triggers::parse("triggers.json", &TRIAGE.replace("\"bash\"", "\"Bash\""));
    assert!(list.file.is_none());
}

#[test]
fn law_9_read_back_not_assumed() {
    let Some(seen) = evidence() else { return };
    let at = |kind: &str| seen.log.iter().position(|row| row.kind == kind);
    let readback = at("readback").expect("what the live session has is kept with the run");
    let first = at("tool_start").expect("the shell ran");
    assert!(readback < first, "it was read before anything was done");
    let text = seen.log[readback].data.to_string();
    assert!(
        text.contains("scripted-1") && text.contains("bash") && text.contains("/workspace"),
        "{text}"
    );
    let phases: Vec<_> = seen
        .run
        .tools_excluded
        .iter()
        .map(|line| line["phase"].clone())
        .collect();
    assert_eq!(phases, [json!("start"), json!("end")]);
}

#[test]
fn law_10_no_merge() {
    let Some(seen) = evidence() else { return };
    let writes: Vec<String> = seen
        .calls
        .iter()
        .filter(|call| call.method != "GET" && call.who.as_deref() == Some("pi-bot"))
        .filter(|call| !call.path.contains("git-upload-pack"))
        .map(|call| format!("{} {}", call.method, call.path))
        .collect();
    assert!(!writes.is_empty(), "it answered");
    for write in &writes {
        assert!(
            write.starts_with("POST ") && (write.ends_with("/comments") || write.ends_with("/reactions")),
            "{writes:?}"
        );
    }
    assert!(
        !seen.calls.iter().any(|call| call.path.contains("git-receive-pack")),
        "nothing was pushed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn law_11_every_no_has_a_reason() {
    if need::docker().is_none() {
        return;
    }
    let plans = Plans {
        settings: Box::new(|settings| settings.image = "pi-job:nobody-has-this".to_owned()),
        ..Plans::default()
    };
    let world = World::with(plans).await;
    for (who, text) in [
        ("sol", "@pi triage"),
        ("mira", "nothing"),
        ("mira", "@pi stop"),
        ("mira", "@pi triage"),
    ] {
        world.forge.comment(WIDGETS, 1, who, text);
    }
    world.forge.test_hook(world.hook);
    world.forge.add_labels(WIDGETS, 1, "mira", &[]);
    world.finished(world.jobs(1).await[0].job).await;
    world
        .forge
        .wait_for_comments_by(WIDGETS, 1, "pi-bot", 1, PATIENCE)
        .await;
    world.all_decided().await;

    let page = include_str!("../../docs/reasons.md");
    let filter = DeliveryFilter {
        limit: 100,
        ..DeliveryFilter::default()
    };
    let deliveries = world.queue.deliveries(&filter).await.expect("a list");
    assert!(deliveries.len() >= 6, "the answer came back as one, too");
    for delivery in deliveries {
        let why = delivery.reason.or(delivery.no);
        assert!(why.is_some() || !delivery.jobs.is_empty(), "{delivery:?}");
        if let Some(reason) = why {
            assert!(
                page.contains(&format!("`{}`", reason.word())),
                "{} is not on the page",
                reason.word()
            );
        }
    }
    let said = world.forge.comments_by(WIDGETS, 1, "pi-bot");
    assert_eq!(said.len(), 1, "once: {said:?}");
    assert!(said[0].body.contains("job-image-missing"), "{}", said[0].body);
}

#[test]
fn law_12_payload_text_is_data() {
    let Some(seen) = evidence() else { return };
    assert!(
        seen.logged.contains("decided a delivery"),
        "the log was looked at: {}",
        seen.logged.len()
    );
    assert!(!seen.logged.contains(CANARY), "a stranger's text is in the log");
    assert!(!seen.logged.contains('\u{202e}'));
    let prompt = seen.given.iter().find(|(name, _)| name == "prompt.md");
    let told: Vec<&str> = prompt
        .iter()
        .flat_map(|(_, text)| text.lines().filter(|line| line.contains(CANARY)))
        .collect();
    assert!(!told.is_empty(), "the agent was told what the stranger wrote");
    assert!(
        told.iter().all(|line| line.starts_with("| ")),
        "out of its fence: {told:?}"
    );
    let name = seen.inspected["Name"].as_str().expect("a name");
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c));
    assert!(plain(name) && !name.contains("canary"), "{name}");
    let (labels, command) = (&seen.inspected["Config"]["Labels"], &seen.inspected["Config"]["Cmd"]);
    assert!(!format!("{labels}{command}{}", seen.inspected["Config"]["Env"]).contains(CANARY));
    assert!(
        !seen.folders.is_empty() && !seen.folders.iter().any(|name| name.contains("canary")),
        "{:?}",
        seen.folders
    );
    assert!(!Path::new("/tmp").join(CANARY).exists(), "no shell of ours read it");
}

#[test]
fn law_13_what_a_job_could_write_is_hostile() {
    let Some(seen) = evidence() else { return };
    // Links, pipes and a closed folder lay in what it may write: it ended as if they did not, and all of it is gone.
    assert!(
        matches!(
            seen.run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                reason: Reason::Done,
                ..
            }
        ),
        "{:?} {}",
        seen.run.row.state,
        seen.run.detail
    );
    assert!(seen.folder_gone);
    let [before, after] = &seen.outside;
    assert!(
        before == after && before.iter().all(Option::is_some),
        "a link was followed: {before:?} {after:?}"
    );
}
