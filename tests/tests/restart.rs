//! The worker goes away in the middle, cleanly or not, and comes back: nothing is lost, nothing is said twice.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use queue::read::LogRow;
use queue::{JobId, JobState, LogId, LogSource, Outcome, Reason};
use serde_json::json;
use stories::hand::trigger;
use stories::{IMAGE, PATIENCE, Plans, World, until};
use testkit::forge::Fault;
use testkit::model::{Script, Step};
use testkit::need;

const WIDGETS: &str = "lab/widgets";

async fn log(world: &World, job: JobId) -> Vec<LogRow> {
    world.queue.job_log(job, LogId(0), 1000).await.expect("a log")
}

/// A world whose job counts slowly in its shell; it is counting when this returns.
async fn counting() -> Option<(World, JobId)> {
    need::docker()?;
    need::image(IMAGE)?;
    let plans = Plans {
        triggers: vec![trigger("@pi", &[])],
        model: Script::steps([
            Step::calls(
                "bash",
                json!({ "command": "for i in 1 2 3 4 5 6; do echo $i; sleep 1; done", "timeout": 30 }),
            ),
            Step::says("Counted to six."),
        ])
        .into(),
        ..Plans::default()
    };
    let world = World::with(plans).await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi count");
    let job = world.jobs(1).await[0].job;
    until("it counts", async || {
        log(&world, job)
            .await
            .iter()
            .find(|row| row.kind == "tool_start")
            .map(|_| ())
    })
    .await;
    Some((world, job))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_in_mid_run_adopts_its_container_and_answers_once() {
    let Some((mut world, job)) = counting().await else {
        return;
    };
    let container = world
        .queue
        .job(job)
        .await
        .expect("it is asked")
        .expect("it is there")
        .attempts[0]
        .container
        .clone();
    world.kill_worker().await;
    world.start_worker();
    let run = world.finished(job).await;
    world
        .forge
        .wait_for_comments_by(WIDGETS, 1, "pi-bot", 1, PATIENCE)
        .await;

    assert!(
        matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                reason: Reason::Done,
                ..
            }
        ),
        "{:?}",
        run.row.state
    );
    assert_eq!(run.attempts.len(), 1, "one attempt, one container");
    assert_eq!(
        (&run.attempts[0].container, run.attempts[0].exit_code),
        (&container, Some(0))
    );
    let log = log(&world, job).await;
    assert!(log.iter().any(|row| row.kind == "adopted"));
    let mut lines: Vec<i64> = log
        .iter()
        .filter(|row| row.source == LogSource::Runner)
        .map(|row| row.seq)
        .collect();
    lines.sort_unstable();
    let whole: Vec<i64> = (1..=i64::try_from(lines.len()).expect("few")).collect();
    assert_eq!(lines, whole, "no gap and no repetition");
    assert_eq!(log.iter().filter(|row| row.kind == "result").count(), 1);
    assert_eq!(world.model.requests().len(), 2, "nothing was paid twice");
    world.all_decided().await;
    let said = world.forge.comments_by(WIDGETS, 1, "pi-bot");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].body.contains("Counted to six."), "{}", said[0].body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waited_while_no_worker_was_there_is_started_by_the_next_and_uses_one_attempt() {
    if need::docker().is_none() || need::image(IMAGE).is_none() {
        return;
    }
    let plans = Plans {
        model: Script::says("Here I am.").into(),
        ..Plans::default()
    };
    let mut world = World::with(plans).await;
    // The forge's git does not answer: the worker dies at the gate, before there is a container.
    world.forge.fault(Fault::hang().at(".git/"));
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let job = world.jobs(1).await[0].job;
    until("it stands at the gate", async || {
        let calls = world.forge.calls();
        calls.iter().any(|call| call.path.contains(".git")).then_some(())
    })
    .await;
    world.kill_worker().await;
    world.forge.heal();
    world.start_worker();
    let run = world.finished(job).await;
    assert!(
        matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                ..
            }
        ),
        "{:?} {}",
        run.row.state,
        run.detail
    );
    let with_container = run
        .attempts
        .iter()
        .filter(|attempt| attempt.container.is_some())
        .count();
    assert_eq!(with_container, 1);
    world
        .forge
        .wait_for_comments_by(WIDGETS, 1, "pi-bot", 1, PATIENCE)
        .await;
    assert_eq!(world.forge.comments_by(WIDGETS, 1, "pi-bot").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_receipt_is_lost_with_its_worker_is_one_comment() {
    if need::docker().is_none() || need::image(IMAGE).is_none() {
        return;
    }
    let plans = Plans {
        model: Script::says("One answer.").into(),
        ..Plans::default()
    };
    let mut world = World::with(plans).await;
    // The comment is made, its receipt never comes, and the worker dies over it.
    world
        .forge
        .fault(Fault::lose_the_answer().on("POST", "/comments").times(1));
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world
        .forge
        .wait_for_comments_by(WIDGETS, 1, "pi-bot", 1, PATIENCE)
        .await;
    world.kill_worker().await;
    world.start_worker();
    // As if the dead worker's lease on the row and its wait had passed.
    sqlx::query("UPDATE outputs SET not_before = now(), lease_until = CASE WHEN worker IS NOT NULL THEN now() END")
        .execute(world.queue.pool())
        .await
        .expect("time can pass");
    let job = world.jobs(1).await[0].job;
    until("the answer is known as posted", async || {
        let run = world.queue.job(job).await.ok().flatten()?;
        let answers = run
            .outputs
            .iter()
            .filter(|output| output.kind == queue::OutputKind::Comment);
        answers.into_iter().next()?.posted_at.map(|_| ())
    })
    .await;
    world.all_decided().await;
    assert_eq!(world.forge.comments_by(WIDGETS, 1, "pi-bot").len(), 1);
}
