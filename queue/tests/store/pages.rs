//! What panel and commands read.

use std::collections::BTreeMap;
use std::time::Duration;

use queue::read::{DeliveryFilter, JobFilter};
use queue::{DeliveryStatus, ImageSeen, JobId, JobStatus, NewTriggers, NewWorker, Outcome, Queue, TriggerId};
use serde_json::json;

use crate::leases::completed;
use crate::world::{change, claim, deliver, fresh, job, worker};

async fn jobs(queue: &Queue, filter: JobFilter) -> Vec<i64> {
    queue
        .jobs(&JobFilter { limit: 50, ..filter })
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.job.0)
        .collect()
}

#[tokio::test]
async fn jobs_are_filtered_and_paged_by_key_newest_first() {
    let queue = fresh().await;
    let one = job(&queue, 1, 7, 41).await.0;
    let two = job(&queue, 2, 7, 42).await.0;
    let first = claim(&queue, "w").await;
    queue.finish(&first, &completed()).await.unwrap();
    let three = job(&queue, 2, 8, 43).await.0;
    let finished = first.job.0;
    let mut waiting = vec![three, two, one];
    waiting.retain(|id| *id != finished);

    assert_eq!(jobs(&queue, JobFilter::default()).await, [three, two, one]);
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                before: Some(JobId(three)),
                ..Default::default()
            }
        )
        .await,
        [two, one]
    );
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                status: Some(JobStatus::Queued),
                ..Default::default()
            }
        )
        .await,
        waiting
    );
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                status: Some(JobStatus::Finished),
                ..Default::default()
            }
        )
        .await,
        [finished]
    );
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                outcome: Some(Outcome::Completed),
                ..Default::default()
            }
        )
        .await,
        [finished]
    );
    assert!(
        jobs(
            &queue,
            JobFilter {
                outcome: Some(Outcome::Failed),
                ..Default::default()
            }
        )
        .await
        .is_empty()
    );
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                repository: Some("Lab/R2".into()),
                ..Default::default()
            }
        )
        .await,
        [three, two]
    );
    assert!(
        jobs(
            &queue,
            JobFilter {
                repository: Some("lab/none".into()),
                ..Default::default()
            }
        )
        .await
        .is_empty()
    );
    let trigger = Some(TriggerId::from("comment-triage"));
    assert_eq!(
        jobs(
            &queue,
            JobFilter {
                trigger,
                forge: Some("lab".into()),
                ..Default::default()
            }
        )
        .await
        .len(),
        3
    );
    assert!(
        jobs(
            &queue,
            JobFilter {
                forge: Some("other".into()),
                ..Default::default()
            }
        )
        .await
        .is_empty()
    );

    let row = queue
        .jobs(&JobFilter {
            limit: 1,
            ..Default::default()
        })
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (row.repository.as_str(), row.subject, row.actor.as_deref()),
        ("lab/r2", Some(8), Some("mira"))
    );
    assert_eq!(row.title.as_deref(), Some("the door  is stuck"));
}

#[tokio::test]
async fn deliveries_are_filtered_and_paged_by_key_newest_first() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    deliver(&queue, "b").await;
    deliver(&queue, "c").await;
    let all = queue
        .deliveries(&DeliveryFilter {
            limit: 2,
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(
        all.iter().map(|row| row.delivery.as_str()).collect::<Vec<_>>(),
        ["c", "b"]
    );
    let rest = queue
        .deliveries(&DeliveryFilter {
            limit: 2,
            before: Some(all[1].id),
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].jobs.len(), 1);
    let decided = DeliveryFilter {
        limit: 9,
        status: Some(DeliveryStatus::Decided),
        ..Default::default()
    };
    assert_eq!(queue.deliveries(&decided).await.unwrap().len(), 1);
    let received = DeliveryFilter {
        limit: 9,
        status: Some(DeliveryStatus::Received),
        forge: Some("lab".into()),
        ..Default::default()
    };
    assert_eq!(queue.deliveries(&received).await.unwrap().len(), 2);

    let by_number = queue.explain(&all[0].id.to_string()).await.unwrap();
    assert_eq!(
        by_number.deliveries[0].body.as_deref(),
        Some("{\"action\":\"created\"}")
    );
    assert!(queue.explain("never heard of").await.unwrap().deliveries.is_empty());
    assert!(queue.job(JobId(999)).await.unwrap().is_none());
}

#[tokio::test]
async fn the_overview_counts_what_is_there() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    job(&queue, 1, 8, 42).await;
    claim(&queue, "w").await;
    deliver(&queue, "b").await;
    queue.pause("olga").await.unwrap();
    let overview = queue.overview().await.unwrap();
    assert_eq!(
        (overview.queued, overview.running, overview.held, overview.finished_day),
        (1, 1, 0, 0)
    );
    assert_eq!((overview.deliveries_received, overview.outputs_pending), (1, 2));
    assert_eq!(overview.pause.unwrap().who, "olga");
}

#[tokio::test]
async fn workers_show_what_they_have_and_what_is_in_force() {
    let queue = fresh().await;
    let image = ImageSeen {
        id: "sha256:1".to_owned(),
        labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
    };
    let mut new = NewWorker {
        worker: worker("w"),
        version: "2.0.0".to_owned(),
        slots: 3,
        busy: 0,
        data_version: 1,
        images: BTreeMap::from([("pi-job:2.0.0".to_owned(), image)]),
        trouble: None,
    };
    queue.put_worker(&new, true).await.unwrap();
    new.busy = 2;
    queue.put_worker(&new, false).await.unwrap();
    let seen = queue.workers().await.unwrap().remove(0);
    assert_eq!((seen.busy, seen.images["pi-job:2.0.0"].id.as_str()), (2, "sha256:1"));

    assert!(
        queue
            .image_somewhere("pi-job:2.0.0", Duration::from_secs(60))
            .await
            .unwrap()
    );
    assert!(!queue.image_somewhere("other", Duration::from_secs(60)).await.unwrap());
    change(&queue, "UPDATE workers SET seen_at = now() - interval '2 minutes'").await;
    assert!(
        !queue
            .image_somewhere("pi-job:2.0.0", Duration::from_secs(60))
            .await
            .unwrap(),
        "it is not alive"
    );

    let triggers = NewTriggers {
        file: "triggers.json".to_owned(),
        sha256: "00".to_owned(),
        triggers: json!([]),
        faults: json!([]),
        remarks: json!([]),
    };
    queue.put_triggers(&worker("w"), &triggers).await.unwrap();
    queue
        .put_triggers(
            &worker("w"),
            &NewTriggers {
                sha256: "01".to_owned(),
                ..triggers
            },
        )
        .await
        .unwrap();
    assert_eq!(queue.triggers_in_force().await.unwrap()[0].sha256, "01");
    queue.remove_worker(&worker("w")).await.unwrap();
    assert!(queue.workers().await.unwrap().is_empty() && queue.triggers_in_force().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_trigger_shows_what_it_did_lately() {
    let queue = fresh().await;
    let last = job(&queue, 1, 7, 41).await;
    let asked = [TriggerId::from("never"), TriggerId::from("comment-triage")];
    let told = queue.trigger_activity(&asked).await.unwrap();
    assert_eq!((told[0].last_job, told[0].jobs_day), (None, 0));
    assert_eq!((told[1].last_job, told[1].jobs_day), (Some(last), 1));
}

#[tokio::test]
async fn a_job_whose_words_did_not_reach_the_forge_is_not_removed() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    queue.finish(&claim, &completed()).await.unwrap();
    change(&queue, "UPDATE jobs SET finished_at = now() - interval '90 days'").await;
    assert_eq!(
        queue.prune(Duration::from_secs(86_400)).await.unwrap().jobs,
        0,
        "its reaction is still to be posted"
    );
    change(&queue, "UPDATE outputs SET state = 'posted', posted_at = now()").await;
    assert_eq!(queue.prune(Duration::from_secs(86_400)).await.unwrap().jobs, 1);
}
