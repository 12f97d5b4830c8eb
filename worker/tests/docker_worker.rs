//! A whole worker, from a person's wish to the comment on the forge, and what its death or its end leaves behind.
//! Needs Docker and the image `pi-job:2.0.0`.

mod house;
mod recovery;
mod tiny;

use std::time::Duration;

use house::{House, until};
use queue::{JobState, LogSource, Outcome, Reason};
use serde_json::json;
use testkit::model::{Script, Step};
use tiny::TinyImage;

/// Says where it is, waits in a shell, and answers.
fn waits() -> Script {
    Script::steps([
        Step::calls("bash", json!({ "command": "echo before; sleep 6; echo after" })),
        Step::says("I waited, and here is the answer."),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_becomes_one_comment_and_leaves_nothing_behind() {
    let exclude = json!({ "excludeTools": ["bash", "powershell", "edit", "write"] });
    let Some(mut house) = House::new(exclude.clone(), Script::says("The turn is mirrored.")).await else {
        return;
    };
    house.start();

    let job = house.ask().await;
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!((outcome, reason), (Outcome::Completed, Reason::Done), "{detail:#?}");
    assert_eq!(
        detail.gates.iter().map(|gate| gate.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 9, 11]
    );
    assert_eq!(detail.tools_excluded.len(), 2, "at the start and at the end");
    assert_eq!(detail.reply.as_deref(), Some("The turn is mirrored."));
    assert_eq!(detail.spend.requests, 1);
    assert_eq!(detail.attempts[0].exit_code, Some(0));
    let comment = until("the comment is there", async || house.comments().pop()).await;
    assert!(
        comment.contains("The turn is mirrored.") && comment.contains("bash"),
        "{comment}"
    );
    until("the container is gone", async || {
        house.containers().await.is_empty().then_some(())
    })
    .await;
    until("the folders are gone", async || {
        house.folders().is_empty().then_some(())
    })
    .await;
    assert_eq!(house.comments().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_killed_finds_its_container_again_and_the_log_has_no_gap() {
    let Some(mut house) = House::new(json!({}), waits()).await else {
        return;
    };
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 6").await;

    house.kill().await;
    assert_eq!(house.containers().await.len(), 1, "the container lives on");
    house.start();
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!((outcome, reason), (Outcome::Completed, Reason::Done), "{detail:#?}");
    assert_eq!(detail.attempts.len(), 1, "it is the same attempt");
    assert_eq!(detail.row.turns, Some(2));
    let log = house.log(job).await;
    let runner: Vec<i64> = log
        .iter()
        .filter(|row| row.source == LogSource::Runner)
        .map(|row| row.seq)
        .collect();
    let mut sorted = runner.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        (1..=i64::try_from(runner.len()).unwrap()).collect::<Vec<_>>(),
        "no gap and no repetition"
    );
    assert!(log.iter().any(|row| row.kind == "adopted"));
    until("the comment is there", async || house.comments().pop()).await;
    assert_eq!(house.model.requests().len(), 2, "nothing was paid twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ended_while_nobody_watched_is_finished_by_the_next_start() {
    let Some(mut house) = House::new(
        json!({}),
        Script::steps([
            Step::calls("bash", json!({ "command": "sleep 2" })),
            Step::says("Done alone."),
        ]),
    )
    .await
    else {
        return;
    };
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 2").await;
    house.kill().await;
    // Without a door the second request fails and pi gives up; or the runner does. Either way it ends.
    let docker = house.containers().await;
    let name = docker[0].trim_start_matches('/').to_owned();
    let killed = std::process::Command::new("docker")
        .args(["kill", &name])
        .output()
        .unwrap();
    assert!(killed.status.success());

    house.start();
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!(
        (outcome, reason),
        (Outcome::Failed, Reason::RunnerVanished),
        "{detail:#?}"
    );
    let comment = until("the failure is said", async || house.comments().pop()).await;
    assert!(comment.contains("runner-vanished"), "{comment}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stops_cleanly_leaves_its_container_to_its_next_start() {
    let Some(mut house) = House::new(json!({}), waits()).await else {
        return;
    };
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 6").await;

    house.shut_down().await;

    assert_eq!(house.containers().await.len(), 1);
    assert!(matches!(house.job(job).await.row.state, JobState::Running { .. }));
    house.start();
    let (outcome, _, detail) = house.finished(job).await;
    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_stops_a_run_and_what_it_had_said_is_published() {
    let Some(mut house) = House::new(
        json!({}),
        Script::steps([
            Step::calls("forge_comment", json!({ "body": "Half of the answer." })),
            Step::calls("bash", json!({ "command": "sleep 600" })),
        ]),
    )
    .await
    else {
        return;
    };
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 600").await;

    house.queue.stop(job, "olga").await.unwrap();
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!(
        (outcome, reason),
        (Outcome::Stopped, Reason::PersonStopped),
        "{detail:#?}"
    );
    let comment = until("the comment is there", async || house.comments().pop()).await;
    assert!(
        comment.contains("Half of the answer.") && comment.contains("stopped-by-person"),
        "{comment}"
    );
    until("the container is gone", async || {
        house.containers().await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_the_capability_is_refused_before_anything_is_fetched_and_answered_once() {
    let Some(image) = TinyImage::with("refused", &[]) else {
        return;
    };
    let run = json!({ "image": image.tag, "excludeTools": ["bash"] });
    let Some(mut house) = House::new(run, Script::says("never")).await else {
        return;
    };
    house.start();

    let job = house.ask().await;
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!(
        (outcome, reason),
        (Outcome::Refused, Reason::JobImageExcludeToolsUnsupported),
        "{detail:#?}"
    );
    assert_eq!(detail.gates.last().map(|gate| gate.number), Some(5));
    assert!(
        !house.settings.data_dir.join("git").join("lab").exists(),
        "nothing was fetched"
    );
    assert_eq!(detail.spend.requests, 0);
    let comment = until("the refusal is there", async || house.comments().pop()).await;
    assert!(
        comment.contains("job-image-exclude-tools-unsupported") && comment.contains("image build"),
        "{comment}"
    );
    assert_eq!(house.comments().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observed_trigger_starts_nothing_and_says_nothing() {
    let Some(mut house) = House::new(json!({ "mode": "observe" }), Script::says("never")).await else {
        return;
    };
    house.start();

    let job = house.ask().await;
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!((outcome, reason), (Outcome::Completed, Reason::Observed));
    assert_eq!(
        detail.gates.last().map(|gate| gate.number),
        Some(9),
        "everything up to the container"
    );
    assert!(house.containers().await.is_empty() && detail.outputs.is_empty() && house.comments().is_empty());
    assert!(house.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_excludes_more_by_now_excludes_it_and_drops_nothing_that_the_job_carries() {
    let Some(mut house) = House::new(json!({ "excludeTools": ["write"] }), Script::says("Yes.")).await else {
        return;
    };
    house.settings.slots = 0;
    house.start();
    let job = house.ask().await;
    house.shut_down().await;

    house.write_trigger(&json!({ "excludeTools": ["bash"] }));
    house.settings.slots = 1;
    house.start();
    let (outcome, _, detail) = house.finished(job).await;

    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
    assert_eq!(detail.tools_excluded[0]["excluded"], json!(["bash", "write"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_trigger_is_gone_is_refused_at_the_first_gate() {
    let Some(mut house) = House::new(json!({}), Script::says("never")).await else {
        return;
    };
    house.settings.slots = 0;
    house.start();
    let job = house.ask().await;
    house.shut_down().await;

    house.write_no_trigger();
    house.settings.slots = 1;
    house.start();
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!(
        (outcome, reason),
        (Outcome::Refused, Reason::TriggerRemoved),
        "{detail:#?}"
    );
    assert_eq!(detail.gates.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_lease_was_taken_kills_its_container_and_writes_nothing_more() {
    let Some(mut house) = House::new(
        json!({}),
        Script::steps([Step::calls("bash", json!({ "command": "sleep 600" }))]),
    )
    .await
    else {
        return;
    };
    house.settings.timing.lease = Duration::from_secs(3);
    house.settings.timing.lease_margin = Duration::from_secs(1);
    house.settings.timing.heartbeat = Duration::from_millis(500);
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 600").await;

    // The token is taken away, as a rescuer would.
    sqlx::query("UPDATE jobs SET lease_no = lease_no + 1 WHERE id = $1")
        .bind(job.0)
        .execute(house.queue.pool())
        .await
        .unwrap();

    until("the container is gone", async || {
        house.containers().await.is_empty().then_some(())
    })
    .await;
    assert!(
        matches!(house.job(job).await.row.state, JobState::Running { .. }),
        "it wrote nothing any more"
    );
    assert!(house.comments().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_renew_kills_its_container_before_its_lease_ends() {
    let hang = Script::steps([Step::calls("bash", json!({ "command": "sleep 600" }))]);
    let Some(mut house) = House::with_own_postgres(json!({}), hang).await else {
        return;
    };
    house.settings.timing.lease = Duration::from_secs(6);
    house.settings.timing.lease_margin = Duration::from_secs(3);
    house.settings.timing.heartbeat = Duration::from_millis(500);
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 600").await;

    let stopped = std::time::Instant::now();
    let postgres = house.postgres.take().unwrap();
    postgres.stop().await;
    until("the container is gone", async || {
        house.containers().await.is_empty().then_some(())
    })
    .await;
    let took = stopped.elapsed();
    postgres.resume().await;

    assert!(
        took >= Duration::from_secs(2),
        "an outage of a moment kills nothing: {took:?}"
    );
    let (outcome, reason, detail) = house.finished(job).await;
    assert_eq!((outcome, reason), (Outcome::Failed, Reason::WorkerLost), "{detail:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_is_away_makes_a_job_wait_without_using_up_an_attempt() {
    let Some(mut house) = House::new(json!({}), Script::says("Here.")).await else {
        return;
    };
    house.settings.slots = 0;
    house.start();
    let job = house.ask().await;
    house.shut_down().await;

    house.forge.down();
    house.settings.slots = 1;
    house.start();
    until("the job waits", async || match house.job(job).await.row.state {
        JobState::Queued { waits_for, .. } => waits_for.filter(|reason| *reason == Reason::ForgeUnavailable),
        _ => None,
    })
    .await;
    assert!(house.job(job).await.attempts.iter().all(|attempt| !attempt.counted));

    house.forge.up();
    sqlx::query("UPDATE jobs SET not_before = now()")
        .execute(house.queue.pool())
        .await
        .unwrap();
    let (outcome, _, detail) = house.finished(job).await;
    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_has_one_status_comment_that_is_edited_at_its_end() {
    let Some(mut house) = House::new(json!({}), waits()).await else {
        return;
    };
    house.settings.timing.status_after = Duration::from_millis(500);
    house.start();
    let job = house.ask().await;

    let working = until("the status comment is there", async || house.comments().pop()).await;
    assert!(working.contains("working on it"), "{working}");
    house.finished(job).await;
    let both = until("it is edited, and the answer is there", async || {
        let comments = house.comments();
        (comments.len() == 2 && comments[0] != working).then_some(comments)
    })
    .await;

    assert!(both[0].contains("is over") || both[0].contains("done"), "{both:#?}");
    assert!(both[1].contains("here is the answer"), "{both:#?}");
}
