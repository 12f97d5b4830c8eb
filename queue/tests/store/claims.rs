//! One running job per lane, fair between repositories, nothing that this worker can not run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use queue::{JobData, Reason, StoreError};

use crate::leases::completed;
use crate::world::{change, claim, data, decide, fire, fires, fresh, job, number, request};

/// Fills lanes without going through deliveries: `lanes` subjects with `each` jobs in repository `id`.
async fn flood(queue: &queue::Queue, id: i64, lanes: i64, each: i64) {
    sqlx::query("INSERT INTO repositories (forge, remote_id, owner, name) VALUES ('lab', $1, 'lab', 'r' || $1)")
        .bind(id)
        .execute(queue.pool())
        .await
        .unwrap();
    sqlx::query(
        "WITH new AS (
            INSERT INTO lanes (key, repository_id, queued)
            SELECT 'lab/' || $1 || '/' || n, (SELECT id FROM repositories WHERE remote_id = $1), $3 FROM generate_series(1, $2) n
            RETURNING id, repository_id
        )
        INSERT INTO jobs (lane_id, repository_id, trigger_id, flow, forge, image, data_version, data)
        SELECT new.id, new.repository_id, 't', 'triage', 'lab', 'pi-job:2.0.0', 1, $4::text::json FROM new, generate_series(1, $3)",
    )
    .bind(id)
    .bind(lanes)
    .bind(each)
    .bind(serde_json::to_string(&data(id, 1)).unwrap())
    .execute(queue.pool())
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_one_lane_never_two_jobs_run_with_16_workers_at_once() {
    let queue = fresh().await;
    // few lanes with many jobs each: neighbours in the queue share a lane
    flood(&queue, 1, 5, 40).await;
    flood(&queue, 2, 2, 20).await;
    let running: Arc<BTreeMap<i64, AtomicBool>> = Arc::new(
        sqlx::query_scalar::<_, i64>("SELECT id FROM jobs")
            .fetch_all(queue.pool())
            .await
            .unwrap()
            .into_iter()
            .map(|id| (id, AtomicBool::new(false)))
            .collect(),
    );
    let lanes: Arc<BTreeMap<i64, AtomicBool>> = Arc::new((1..=7).map(|lane| (lane, AtomicBool::new(false))).collect());
    let lane_of: Arc<BTreeMap<i64, i64>> = Arc::new(
        sqlx::query_as::<_, (i64, i64)>("SELECT id, lane_id FROM jobs")
            .fetch_all(queue.pool())
            .await
            .unwrap()
            .into_iter()
            .collect(),
    );
    let done = Arc::new(AtomicI64::new(0));

    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..16 {
        let (queue, running, lanes, lane_of, done) = (
            queue.clone(),
            running.clone(),
            lanes.clone(),
            lane_of.clone(),
            done.clone(),
        );
        tasks.spawn(async move {
            while done.load(Ordering::SeqCst) < 240 {
                for claim in queue.claim(&request(&format!("w{n}"), 1 + n % 3)).await.unwrap() {
                    let lane = &lanes[&lane_of[&claim.job.0]];
                    assert!(
                        !running[&claim.job.0].swap(true, Ordering::SeqCst),
                        "job {} was claimed twice",
                        claim.job
                    );
                    assert!(!lane.swap(true, Ordering::SeqCst), "two jobs of one lane run");
                    tokio::task::yield_now().await;
                    lane.store(false, Ordering::SeqCst);
                    queue.finish(&claim, &completed()).await.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(
        number(&queue, "SELECT count(*) FROM jobs WHERE state = 'finished'").await,
        240
    );
    assert_eq!(
        number(
            &queue,
            "SELECT count(*) FROM lanes WHERE queued <> 0 OR running IS NOT NULL"
        )
        .await,
        0
    );
}

#[tokio::test]
async fn a_lane_goes_in_order() {
    let queue = fresh().await;
    flood(&queue, 1, 1, 5).await;
    let mut last = 0;
    for _ in 0..5 {
        let claim = claim(&queue, "w").await;
        assert!(claim.job.0 > last);
        assert!(
            queue.claim(&request("other", 5)).await.unwrap().is_empty(),
            "the lane is busy"
        );
        last = claim.job.0;
        queue.finish(&claim, &completed()).await.unwrap();
    }
}

#[tokio::test]
async fn one_repository_with_many_jobs_does_not_keep_the_others_waiting() {
    let queue = fresh().await;
    flood(&queue, 1, 300, 1).await;
    flood(&queue, 2, 1, 1).await;
    flood(&queue, 3, 1, 1).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let claim = claim(&queue, "w").await;
        seen.push(claim.data.repository.id);
    }
    for id in [2, 3] {
        assert!(
            seen.contains(&id),
            "repository {id} had no turn among the first four: {seen:?}"
        );
    }
}

#[tokio::test]
async fn slots_bound_a_claim() {
    let queue = fresh().await;
    flood(&queue, 1, 10, 1).await;
    assert_eq!(queue.claim(&request("w", 3)).await.unwrap().len(), 3);
    assert_eq!(queue.claim(&request("w", 0)).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_pause_is_a_condition_of_the_claim() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    queue.pause("olga").await.unwrap();
    assert_eq!(queue.paused().await.unwrap().unwrap().who, "olga");
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());
    queue.resume("olga").await.unwrap();
    assert_eq!(queue.claim(&request("w", 5)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_that_is_not_due_waits_and_lets_the_others_by() {
    let queue = fresh().await;
    let early = job(&queue, 1, 7, 41).await;
    let claim_early = claim(&queue, "w").await;
    assert_eq!(claim_early.job, early);
    queue
        .hand_back(&claim_early, Reason::ImageElsewhere, "", Duration::from_secs(600))
        .await
        .unwrap();
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());

    // the same subject: a later job of the lane is not kept behind the one that waits
    let later = decide(&queue, "later", &fires(fire(1, 7, 42, "@pi"))).await;
    let later = later.events[0].jobs.values().next().unwrap().job;
    assert_ne!(later, early, "what was claimed once takes nobody along");
    assert_eq!(claim(&queue, "w").await.job, later);
}

#[tokio::test]
async fn a_worker_takes_no_job_whose_data_is_newer_or_whose_image_it_lacks() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let mut without = request("w", 5);
    without.not_images = vec!["pi-job:2.0.0".to_owned()];
    assert!(queue.claim(&without).await.unwrap().is_empty());

    change(&queue, "UPDATE jobs SET data_version = 2").await;
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());
    let mut newer = request("w", 5);
    newer.max_data_version = 2;
    // its version says that we know it, but the row holds a field that we do not: refused in words, not dropped
    change(
        &queue,
        r#"UPDATE jobs SET data = jsonb_set(data::jsonb, '{surprise}', '1')::json WHERE false"#,
    )
    .await;
    assert_eq!(queue.claim(&newer).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_with_a_field_that_nobody_knows_is_refused_and_its_lane_goes_on() {
    let queue = fresh().await;
    let broken = job(&queue, 1, 7, 41).await;
    sqlx::query("UPDATE jobs SET data = $1")
        .bind(serde_json::json!({ "version": 1, "surprise": true }))
        .execute(queue.pool())
        .await
        .unwrap();
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());
    assert_eq!(
        number(
            &queue,
            "SELECT count(*) FROM jobs WHERE reason = 'data-unknown' AND outcome = 'refused'"
        )
        .await,
        1
    );

    let next = job(&queue, 1, 7, 42).await;
    assert_ne!(next, broken);
    assert_eq!(claim(&queue, "w").await.job, next);
}

#[tokio::test]
async fn what_is_claimed_is_what_was_decided() {
    let queue = fresh().await;
    let made = job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    assert_eq!(claim.job, made);
    assert_eq!(claim.data, data(1, 7), "a NUL in a title included");
    assert_eq!((claim.attempt.0, claim.lease.0, claim.attempts_used), (1, 1, 0));
    assert_eq!(claim.data.version, JobData::VERSION);
}

#[tokio::test]
async fn a_person_stops_what_waits_at_once_and_asks_what_runs() {
    let queue = fresh().await;
    let running = job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    let waiting = job(&queue, 1, 8, 42).await;

    assert_eq!(queue.stop(waiting, "olga").await.unwrap(), queue::Stopped::Cancelled);
    assert_eq!(queue.stop(waiting, "olga").await.unwrap(), queue::Stopped::WasOver);
    assert_eq!(queue.stop(running, "olga").await.unwrap(), queue::Stopped::Asked);
    assert_eq!(
        queue.stops_requested(&[&claim]).await.unwrap(),
        [(running, "olga".to_owned())]
    );
    assert_eq!(number(&queue, "SELECT sum(queued)::bigint FROM lanes").await, 0);
    let unknown = queue.stop(queue::JobId(999), "olga").await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound { what: "job", .. })),
        "got {unknown:?}"
    );

    job(&queue, 1, 9, 43).await;
    let all = queue.stop_all("olga").await.unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1], (running, queue::Stopped::Asked));
}

#[tokio::test]
async fn a_held_job_holds_no_slot_keeps_its_place_and_goes_on_when_released() {
    let queue = fresh().await;
    let first = job(&queue, 1, 7, 41).await;
    let held = claim(&queue, "w").await;
    queue.hold(&held, Reason::Paused, None).await.unwrap();
    assert!(queue.claim(&request("w", 5)).await.unwrap().is_empty());
    assert!(queue.release_due().await.unwrap().is_empty(), "only a person lifts it");

    let second = decide(&queue, "b", &fires(fire(1, 7, 42, "@pi"))).await.events[0]
        .jobs
        .values()
        .next()
        .unwrap()
        .job;
    assert!(queue.release(first, "olga").await.unwrap());
    assert!(!queue.release(first, "olga").await.unwrap(), "it is not held any more");
    assert_eq!(claim(&queue, "w").await.job, first, "it was made before {second}");
}

#[tokio::test]
async fn a_job_that_was_queued_for_too_long_expires() {
    let queue = fresh().await;
    let old = job(&queue, 1, 7, 41).await;
    assert!(queue.expire(Duration::from_secs(86_400)).await.unwrap().is_empty());
    change(&queue, "UPDATE jobs SET created_at = now() - interval '25 hours'").await;
    assert_eq!(queue.expire(Duration::from_secs(86_400)).await.unwrap(), [old]);
    assert_eq!(number(&queue, "SELECT queued::bigint FROM lanes").await, 0);
    assert_eq!(
        number(
            &queue,
            "SELECT count(*) FROM jobs WHERE outcome = 'expired' AND reason = 'queued-too-long'"
        )
        .await,
        1
    );
}
