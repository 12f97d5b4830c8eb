//! What a death, a silence or a refused row leaves behind, and who puts it right.

use std::time::Duration;

use queue::{JobState, Outcome, Reason};
use serde_json::json;
use testkit::{
    forge::Fault,
    model::{Script, Step},
};

use crate::house::{House, until};

/// A worker that is soon missed.
fn soon_missed(house: &mut House) {
    house.settings.timing.lease = Duration::from_secs(3);
    house.settings.timing.lease_margin = Duration::from_secs(1);
    house.settings.timing.heartbeat = Duration::from_millis(300);
}

/// A job that stands before the gate that asks the forge, which does not answer.
async fn in_a_gate(house: &mut House) -> queue::JobId {
    house.settings.slots = 0;
    house.start();
    let job = house.ask().await;
    house.shut_down().await;
    house.forge.fault(Fault::hang());
    house.settings.slots = 1;
    house.start();
    until("the forge is asked", async || {
        house
            .job(job)
            .await
            .gates
            .iter()
            .any(|gate| gate.number == 6)
            .then_some(())
    })
    .await;
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stops_while_a_job_is_in_a_gate_hands_it_back_and_uses_up_no_attempt() {
    let Some(mut house) = House::new(json!({}), Script::says("Here.")).await else {
        return;
    };
    let job = in_a_gate(&mut house).await;

    house.shut_down().await;

    let detail = house.job(job).await;
    assert!(
        matches!(
            detail.row.state,
            JobState::Queued {
                waits_for: Some(Reason::WorkerStopping),
                ..
            }
        ),
        "{:?}",
        detail.row.state
    );
    assert!(detail.attempts.iter().all(|attempt| !attempt.counted), "{detail:#?}");
    house.forge.heal();
    house.start();
    let (outcome, _, detail) = house.finished(job).await;
    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_worker_fell_silent_before_it_spent_is_run_by_another_and_answered_once() {
    let Some(mut house) = House::new(json!({}), Script::says("Here.")).await else {
        return;
    };
    soon_missed(&mut house);
    let job = in_a_gate(&mut house).await;
    house.kill().await;
    house.forge.heal();

    house.start_another("w2");
    let (outcome, _, detail) = house.finished(job).await;

    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
    let workers: Vec<&str> = detail.attempts.iter().map(|attempt| attempt.worker.as_str()).collect();
    assert_eq!(workers, ["w", "w2"]);
    until("the comment is there", async || house.comments().pop()).await;
    assert_eq!((house.comments().len(), house.model.requests().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_worker_fell_silent_after_it_spent_fails_once_and_its_container_is_removed() {
    let hang = Script::steps([Step::calls("bash", json!({ "command": "sleep 600" }))]);
    let Some(mut house) = House::new(json!({}), hang).await else {
        return;
    };
    soon_missed(&mut house);
    house.start();
    let job = house.ask().await;
    house.logged(job, "tool_start", "sleep 600").await;
    house.kill().await;
    assert_eq!(house.containers().await.len(), 1);

    house.start_another("w2");
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!((outcome, reason), (Outcome::Failed, Reason::WorkerLost), "{detail:#?}");
    until("the container is gone", async || {
        house.containers().await.is_empty().then_some(())
    })
    .await;
    until("the folders are gone", async || {
        house.folders().is_empty().then_some(())
    })
    .await;
    let comment = until("the failure is said", async || house.comments().pop()).await;
    assert!(comment.contains("worker-lost"), "{comment}");
    assert_eq!(house.model.requests().len(), 1, "nothing was paid twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_another_versions_data_keeps_a_starting_worker_from_nothing() {
    let Some(mut house) = House::new(json!({}), Script::says("Here.")).await else {
        return;
    };
    soon_missed(&mut house);
    house.settings.slots = 0;
    house.start();
    let odd = house.ask().await;
    house.shut_down().await;
    for sql in [
        "UPDATE jobs SET state = 'running', worker = 'w', attempt = 1, lease_no = 1, data = '{}'",
        "INSERT INTO attempts (job_id, attempt, worker) SELECT id, 1, 'w' FROM jobs",
        "UPDATE lanes SET queued = 0, running = (SELECT id FROM jobs)",
    ] {
        sqlx::query(sql).execute(house.queue.pool()).await.unwrap();
    }

    house.settings.slots = 1;
    house.start();
    let job = house.ask().await;
    let (outcome, _, detail) = house.finished(job).await;

    assert!(job != odd);
    assert_eq!(outcome, Outcome::Completed, "{detail:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_container_starts_whose_row_was_refused() {
    let Some(mut house) = House::new(json!({}), Script::says("never")).await else {
        return;
    };
    for sql in [
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$",
        "CREATE TRIGGER broken BEFORE UPDATE OF started_at ON attempts FOR EACH ROW EXECUTE FUNCTION broken()",
    ] {
        sqlx::query(sql).execute(house.queue.pool()).await.unwrap();
    }
    house.settings.timing.retry = Duration::from_millis(100);
    house.start();

    let job = house.ask().await;
    let (outcome, reason, detail) = house.finished(job).await;

    assert_eq!(
        (outcome, reason),
        (Outcome::Failed, Reason::InternalFault),
        "{detail:#?}"
    );
    assert!(house.model.requests().is_empty() && detail.tools_excluded.is_empty());
    assert!(
        house
            .log(job)
            .await
            .iter()
            .all(|row| row.source != queue::LogSource::Runner),
        "nothing ran"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_ended_and_did_not_say_is_said_by_the_next_start() {
    let Some(mut house) = House::new(json!({}), Script::says("never")).await else {
        return;
    };
    house.settings.slots = 0;
    house.start();
    let job = house.ask().await;
    house.shut_down().await;
    // It ended the job and died before it wrote the answer.
    assert_eq!(house.queue.expire(Duration::ZERO).await.unwrap(), [job]);
    let settings = house.settings.clone();
    for left in [
        settings.data_dir.join("jobs/77-1/workspace"),
        settings.socket_dir.join("77-1"),
    ] {
        std::fs::create_dir_all(left).unwrap();
    }

    house.start();

    let comment = until("the end is said", async || house.comments().pop()).await;
    assert!(comment.contains("queued-too-long"), "{comment}");
    until("folders without a job are gone", async || {
        (house.folders().is_empty() && !settings.socket_dir.join("77-1").exists()).then_some(())
    })
    .await;
    assert_eq!(house.comments().len(), 1);
}
