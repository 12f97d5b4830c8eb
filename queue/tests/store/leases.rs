//! A worker that lost its lease can write nothing; what it left behind is rescued or adopted.

use std::time::Duration;

use queue::{
    Attempt, Caps, Claim, Finish, GateRow, GateVerdict, JobStatus, LeaseRow, LogLine, LogSource, NewReservation,
    Outcome, OutputKind, Queue, Reason, Rescued, Reserved, StoreError, WentBack,
};
use serde_json::json;

use crate::world::{change, claim, decide, fire, fires, fresh, job, number, output, request, worker};

pub(crate) fn completed() -> Finish {
    Finish {
        outcome: Outcome::Completed,
        reason: Reason::Done,
        detail: String::new(),
        exit_code: Some(0),
        turns: Some(3),
        reply: Some("it is the hinge".to_owned()),
        outputs: Vec::new(),
    }
}

fn line(seq: i64, kind: &str) -> LogLine {
    LogLine {
        source: LogSource::Runner,
        seq,
        kind: kind.to_owned(),
        data: json!({ "seq": seq, "text": "a\u{0}b" }),
    }
}

fn gate() -> GateRow {
    GateRow {
        number: 4,
        name: "image".to_owned(),
        verdict: GateVerdict::Passed,
        reason: None,
        detail: "there".to_owned(),
        micros: 400,
    }
}

fn request_for(tokens: i64) -> NewReservation {
    NewReservation {
        provider: "local".to_owned(),
        model: "m".to_owned(),
        worst_tokens: tokens,
        worst_cost: contract::Micros(tokens),
    }
}

async fn lease(queue: &Queue) -> LeaseRow {
    queue.leases().await.unwrap().pop().expect("a job runs")
}

/// Every write of a worker about its job.
async fn every_write(queue: &Queue, claim: &Claim) -> Vec<(&'static str, Result<(), StoreError>)> {
    let slot = Duration::ZERO;
    vec![
        ("gate", queue.gate(claim, &gate()).await),
        (
            "container_created",
            queue.container_created(claim, "c-late", "sha256:1").await,
        ),
        ("container_started", queue.container_started(claim).await),
        (
            "append_log",
            queue.append_log(claim, &[line(1, "late")]).await.map(|_| ()),
        ),
        (
            "propose",
            queue.propose(claim, "forge_comment", &json!({}), 5).await.map(|_| ()),
        ),
        (
            "reserve_model",
            queue
                .reserve_model(claim, &request_for(1), &Caps::default())
                .await
                .map(|_| ()),
        ),
        (
            "put_output",
            queue
                .put_output(claim, &output(OutputKind::Comment, "late"))
                .await
                .map(|_| ()),
        ),
        ("hold", queue.hold(claim, Reason::Paused, None).await),
        (
            "hand_back",
            queue.hand_back(claim, Reason::WorkerStopping, "", slot).await,
        ),
        (
            "back_to_queue",
            queue
                .back_to_queue(claim, Reason::DockerUnavailable, "", slot)
                .await
                .map(|_| ()),
        ),
        ("finish", queue.finish(claim, &completed()).await),
    ]
}

fn assert_all_lost(writes: Vec<(&'static str, Result<(), StoreError>)>) {
    for (name, result) in writes {
        assert!(
            matches!(
                result,
                Err(StoreError::LeaseLost {
                    attempt: Attempt(1),
                    ..
                })
            ),
            "{name}: got {result:?}"
        );
    }
}

#[tokio::test]
async fn a_worker_whose_job_was_rescued_can_write_nothing() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let late = claim(&queue, "late").await;
    assert_eq!(queue.rescue(&lease(&queue).await).await.unwrap(), Rescued::BackInQueue);

    assert_all_lost(every_write(&queue, &late).await);
    assert_eq!(queue.heartbeat(&[&late]).await.unwrap(), [late.job]);

    let quick = claim(&queue, "quick").await;
    assert_eq!((quick.job, quick.attempt.0, quick.attempts_used), (late.job, 2, 1));
    assert_all_lost(every_write(&queue, &late).await);
    for table in [
        "SELECT count(*) FROM gates",
        "SELECT count(*) FROM job_log",
        "SELECT count(*) FROM outputs WHERE kind = 'comment'",
    ] {
        assert_eq!(number(&queue, table).await, 0, "{table}");
    }
    assert!(queue.heartbeat(&[&quick]).await.unwrap().is_empty());
    queue
        .finish(&quick, &completed())
        .await
        .expect("the successor still holds the job");
}

#[tokio::test]
async fn a_worker_whose_job_was_adopted_can_write_nothing() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    let late = claim(&queue, "w").await;
    queue.container_created(&late, "c1", "sha256:1").await.unwrap();

    let found = queue.adoptable(&worker("w")).await.unwrap();
    assert_eq!(
        (found.len(), found[0].container.as_deref(), found[0].started),
        (1, Some("c1"), false)
    );
    assert!(
        queue.adopt(&worker("other"), job, Attempt(1)).await.unwrap().is_none(),
        "it is not the other's"
    );
    assert!(
        queue.adopt(&worker("w"), job, Attempt(2)).await.unwrap().is_none(),
        "there is no second attempt"
    );
    let adopted = queue
        .adopt(&worker("w"), job, Attempt(1))
        .await
        .unwrap()
        .expect("it is ours");

    assert_eq!((adopted.attempt, adopted.lease.0), (Attempt(1), 2));
    assert_eq!(adopted.asked, late.asked);
    assert_all_lost(every_write(&queue, &late).await);
    queue
        .finish(&adopted, &completed())
        .await
        .expect("the adopter holds it");
    assert_all_lost(every_write(&queue, &adopted).await);
}

#[tokio::test]
async fn a_holder_that_lives_is_not_rescued() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    let seen = lease(&queue).await;
    queue.heartbeat(&[&holder]).await.unwrap();
    assert_eq!(queue.rescue(&seen).await.unwrap(), Rescued::NotNeeded);
    queue.finish(&holder, &completed()).await.unwrap();
    assert_eq!(queue.rescue(&seen).await.unwrap(), Rescued::NotNeeded);
}

#[tokio::test]
async fn of_many_rescuers_one_acts() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    claim(&queue, "w").await;
    let seen = lease(&queue).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let queue = queue.clone();
        tasks.spawn(async move { queue.rescue(&seen).await.unwrap() });
    }
    let all = tasks.join_all().await;
    assert_eq!(
        all.iter().filter(|rescued| **rescued == Rescued::BackInQueue).count(),
        1,
        "{all:?}"
    );
    assert_eq!(number(&queue, "SELECT queued::bigint FROM lanes").await, 1);
}

#[tokio::test]
async fn a_job_that_may_have_spent_is_not_repeated_by_itself() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    let reserved = queue
        .reserve_model(&holder, &request_for(10), &Caps::default())
        .await
        .unwrap();
    assert!(matches!(reserved, Reserved::Yes(_)));

    let back = queue
        .back_to_queue(&holder, Reason::DockerUnavailable, "", Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(
        back,
        WentBack::MayNot {
            spent: true,
            attempts_used: 1
        }
    );
    assert_eq!(queue.rescue(&lease(&queue).await).await.unwrap(), Rescued::Failed);
    let told = queue.job(job).await.unwrap().unwrap();
    assert!(
        matches!(
            told.row.state,
            queue::JobState::Finished {
                outcome: Outcome::Failed,
                reason: Reason::WorkerLost,
                ..
            }
        ),
        "got {:?}",
        told.row.state
    );
    assert!(told.attempts[0].spent);
    assert_eq!(told.spend.tokens, 10, "what was not settled is charged in full");
}

#[tokio::test]
async fn an_infrastructure_failure_is_repeated_until_the_attempts_are_used_up() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    for _ in 0..2 {
        let holder = claim(&queue, "w").await;
        let back = queue
            .back_to_queue(&holder, Reason::DockerUnavailable, "no socket", Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(back, WentBack::Queued);
    }
    let holder = claim(&queue, "w").await;
    let back = queue
        .back_to_queue(&holder, Reason::DockerUnavailable, "no socket", Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(
        back,
        WentBack::MayNot {
            spent: false,
            attempts_used: 3
        }
    );
    assert_eq!(queue.rescue(&lease(&queue).await).await.unwrap(), Rescued::Failed);
    assert_eq!(
        number(&queue, "SELECT count(*) FROM jobs WHERE reason = 'attempts-used-up'").await,
        1
    );
}

#[tokio::test]
async fn handing_back_uses_up_no_attempt_and_is_for_jobs_without_a_container() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    for _ in 0..5 {
        let holder = claim(&queue, "w").await;
        assert_eq!(holder.attempts_used, 0);
        queue
            .hand_back(&holder, Reason::WorkerStopping, "", Duration::ZERO)
            .await
            .unwrap();
    }
    let holder = claim(&queue, "w").await;
    queue.container_created(&holder, "c1", "sha256:1").await.unwrap();
    let refused = queue
        .hand_back(&holder, Reason::WorkerStopping, "", Duration::ZERO)
        .await;
    assert!(matches!(refused, Err(StoreError::WrongState { .. })), "got {refused:?}");
}

#[tokio::test]
async fn a_lane_stays_closed_while_the_container_of_a_rescued_job_may_live() {
    let queue = fresh().await;
    let first = job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    queue.container_created(&holder, "c1", "sha256:1").await.unwrap();
    queue.container_started(&holder).await.unwrap();
    queue
        .reserve_model(&holder, &request_for(1), &Caps::default())
        .await
        .unwrap();
    decide(&queue, "b", &fires(fire(1, 7, 42, "@pi"))).await;
    assert_eq!(queue.rescue(&lease(&queue).await).await.unwrap(), Rescued::Failed);

    assert!(
        queue.claim(&request("w", 5)).await.unwrap().is_empty(),
        "two containers of one subject could live"
    );
    queue.container_gone(first, Attempt(1), Some(137)).await.unwrap();
    assert_eq!(claim(&queue, "w").await.asked[0].comment, Some(42));
}

#[tokio::test]
async fn a_closed_lane_opens_by_itself_in_the_end() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    queue.container_created(&holder, "c1", "sha256:1").await.unwrap();
    assert_eq!(queue.rescue(&lease(&queue).await).await.unwrap(), Rescued::BackInQueue);
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());
    change(&queue, "UPDATE lanes SET free_at = free_at - interval '3 minutes'").await;
    assert_eq!(queue.claim(&request("w", 5)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_log_that_is_read_again_has_no_gap_and_no_repetition() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    assert_eq!(
        queue
            .append_log(&holder, &[line(1, "started"), line(2, "tools_excluded")])
            .await
            .unwrap(),
        2
    );
    let adopted = queue.adopt(&worker("w"), job, Attempt(1)).await.unwrap().unwrap();
    assert_eq!(queue.last_seq(&adopted, LogSource::Runner).await.unwrap(), Some(2));
    assert_eq!(
        queue
            .append_log(&adopted, &[line(1, "started"), line(2, "x"), line(3, "result")])
            .await
            .unwrap(),
        1
    );

    let lines = queue.job_log(job, queue::LogId(0), 100).await.unwrap();
    let kinds: Vec<_> = lines.iter().map(|line| line.kind.as_str()).collect();
    assert_eq!(kinds, ["started", "tools_excluded", "result"]);
    assert_eq!(lines[0].data["text"], "a\u{0}b", "a NUL is no error");
    let rest = queue.job_log(job, lines[1].id, 100).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(queue.job(job).await.unwrap().unwrap().tools_excluded.len(), 1);
}

#[tokio::test]
async fn finishing_frees_the_lane_and_leaves_the_answer_in_the_outbox() {
    let queue = fresh().await;
    let first = job(&queue, 1, 7, 41).await;
    let holder = claim(&queue, "w").await;
    queue.gate(&holder, &gate()).await.unwrap();
    let answer = Finish {
        outputs: vec![output(OutputKind::Comment, "the answer")],
        ..completed()
    };
    queue.finish(&holder, &answer).await.unwrap();

    let told = queue.job(first).await.unwrap().unwrap();
    assert_eq!(told.row.state.status(), JobStatus::Finished);
    assert_eq!(
        (told.row.turns, told.reply.as_deref()),
        (Some(3), Some("it is the hinge"))
    );
    assert_eq!(
        told.outputs
            .iter()
            .filter(|output| output.kind == OutputKind::Comment)
            .count(),
        1
    );
    assert_eq!(told.gates.len(), 1);
    assert_eq!(told.asked[0].asked.text, "@pi triage this");
    assert_eq!(queue.is_finished(first).await.unwrap(), Some(true));

    job(&queue, 1, 7, 42).await;
    claim(&queue, "w").await;
}
