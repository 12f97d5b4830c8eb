//! Everything that changes jobs, all at once, for a few seconds: nobody waits for each other in a circle, and the lanes' counts stay true.

use std::time::Duration;

use queue::{JobId, Queue, Reason, StoreError, read::JobFilter};
use tokio::time::Instant;

use crate::{
    leases::completed,
    world::{decide, deliver, fire, fires, fresh, number, request, worker},
};

const LONG_ENOUGH: Duration = Duration::from_secs(3);
const TASKS: i64 = 16;
/// Few, so that they meet.
const LANES: i64 = 4;

/// A lost lease, a job that somebody else had, a delivery that another task took: the usual business of many.
fn usual(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::LeaseLost { .. } | StoreError::TakenOver { .. } | StoreError::WrongState { .. }
    )
}

async fn step(queue: &Queue, task: i64, round: i64) -> Result<(), StoreError> {
    let name = format!("w{task}");
    match task % 4 {
        // Decides.
        0 | 1 => {
            let comment = task * 1_000_000 + round;
            deliver(queue, &format!("d-{comment}")).await;
            if let Some(delivery) = queue.take_delivery(&worker(&name), Duration::from_secs(60)).await? {
                let verdict = fires(fire(1, round % LANES, comment, "@pi triage this"));
                queue.decide(&delivery, &verdict).await?;
            }
        }
        // Claims, and ends in one of three ways.
        2 => {
            for claim in queue.claim(&request(&name, 2)).await? {
                queue.heartbeat(&[&claim]).await?;
                match round % 3 {
                    0 => {
                        queue
                            .hand_back(&claim, Reason::WorkerStopping, "", Duration::ZERO)
                            .await?
                    }
                    1 => {
                        queue
                            .back_to_queue(&claim, Reason::DockerUnavailable, "", Duration::ZERO)
                            .await?;
                    }
                    _ => queue.finish(&claim, &completed()).await?,
                }
            }
        }
        // Stops, rescues, expires.
        _ => {
            for row in queue.leases().await? {
                queue.rescue(&row).await?;
            }
            let open = queue
                .jobs(&JobFilter {
                    limit: 5,
                    ..JobFilter::default()
                })
                .await?;
            for row in open {
                queue.stop(row.job, "olga").await?;
            }
            queue.expire(Duration::from_millis(1)).await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_change_the_same_jobs_never_wait_for_each_other_in_a_circle() {
    let queue = fresh().await;
    let before = deadlocks(&queue).await;
    let until = Instant::now() + LONG_ENOUGH;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut round = 0;
            while Instant::now() < until {
                match step(&queue, task, round).await {
                    Ok(()) => {}
                    Err(error) if usual(&error) => {}
                    Err(error) => panic!("task {task}: {error}"),
                }
                round += 1;
            }
            round
        });
    }
    let rounds: i64 = tasks.join_all().await.into_iter().sum();
    eprintln!("{rounds} steps");

    assert_eq!(deadlocks(&queue).await, before);
    let wrong = "SELECT count(*) FROM lanes k WHERE queued <> (SELECT count(*) FROM jobs WHERE lane_id = k.id AND state = 'queued')
        OR running IS DISTINCT FROM (SELECT id FROM jobs WHERE lane_id = k.id AND state = 'running')";
    assert_eq!(number(&queue, wrong).await, 0, "a lane counts wrong");
}

async fn deadlocks(queue: &Queue) -> i64 {
    number(
        queue,
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    )
    .await
}

#[tokio::test]
async fn a_person_stops_a_job_whose_end_is_being_written() {
    let queue = fresh().await;
    let decided = decide(&queue, "d-1", &fires(fire(1, 7, 41, "@pi triage this"))).await;
    let job: JobId = decided.events[0].jobs.values().next().unwrap().job;
    let claim = crate::world::claim(&queue, "w").await;

    // Whoever ends it has the job's row already, and the lane's not yet.
    let mut ending = queue.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM jobs WHERE id = $1 FOR NO KEY UPDATE")
        .bind(job.0)
        .execute(&mut *ending)
        .await
        .unwrap();
    let stopping = tokio::spawn({
        let queue = queue.clone();
        async move { queue.stop(job, "olga").await }
    });
    crate::world::until_somebody_waits(&queue).await;
    sqlx::query("UPDATE lanes SET since = since WHERE running = $1")
        .bind(job.0)
        .execute(&mut *ending)
        .await
        .expect("the lane is free to be written");
    ending.commit().await.unwrap();

    assert_eq!(stopping.await.unwrap().unwrap(), queue::Stopped::Asked);
    queue.finish(&claim, &completed()).await.unwrap();
    let row = &queue
        .jobs(&JobFilter {
            limit: 1,
            ..JobFilter::default()
        })
        .await
        .unwrap()[0];
    assert!(matches!(row.state, queue::JobState::Finished { .. }), "{:?}", row.state);
}
