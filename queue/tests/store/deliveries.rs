//! Law 1: what was answered is there, and comes back when its worker dies.

use std::time::Duration;

use queue::{DeliveryStatus, DeliveryVerdict, Reason, Receipt, RunRequest, StoreError, TriggerId};

use crate::world::{LONG, change, decide, deliver, fire, fires, fresh, take, worker};

#[tokio::test]
async fn a_delivery_that_arrives_twice_is_stored_once() {
    let queue = fresh().await;
    let first = deliver(&queue, "a").await;
    let again = deliver(&queue, "a").await;
    let Receipt::Stored(id) = first else {
        panic!("the first is new, got {first:?}")
    };
    assert_eq!(again, Receipt::Known(id));
}

#[tokio::test]
async fn of_many_that_store_the_same_delivery_at_once_one_stores_it() {
    let queue = fresh().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let queue = queue.clone();
        tasks.spawn(async move { deliver(&queue, "a").await });
    }
    let receipts = tasks.join_all().await;
    assert_eq!(
        receipts
            .iter()
            .filter(|receipt| matches!(receipt, Receipt::Stored(_)))
            .count(),
        1,
        "{receipts:?}"
    );
}

#[tokio::test]
async fn a_taken_delivery_comes_back_when_its_lease_ends_and_its_first_taker_can_write_nothing() {
    let queue = fresh().await;
    deliver(&queue, "a").await;
    let late = take(&queue).await;
    assert!(
        queue.take_delivery(&worker("other"), LONG).await.unwrap().is_none(),
        "it is leased"
    );

    change(
        &queue,
        "UPDATE deliveries SET lease_until = now() - interval '1 second'",
    )
    .await;
    let quick = take(&queue).await;
    assert_eq!(quick.id, late.id);
    assert_eq!(quick.tries, 1);

    let verdict = fires(fire(1, 7, 41, "@pi"));
    for refused in [
        queue.decide(&late, &verdict).await.map(|_| ()),
        queue
            .delay_delivery(&late, Reason::ForgeUnavailable, "", Duration::ZERO)
            .await,
        queue.give_up_delivery(&late, Reason::PatienceEnded, "").await,
    ] {
        assert!(
            matches!(refused, Err(StoreError::TakenOver { what: "delivery", .. })),
            "got {refused:?}"
        );
    }
    assert_eq!(
        crate::world::number(&queue, "SELECT count(*) FROM jobs").await,
        0,
        "nothing of the late verdict was kept"
    );
    queue.decide(&quick, &verdict).await.expect("the second taker has it");
}

#[tokio::test]
async fn a_delivery_that_waits_is_not_due_and_blocks_nobody() {
    let queue = fresh().await;
    deliver(&queue, "slow").await;
    let slow = take(&queue).await;
    queue
        .delay_delivery(&slow, Reason::ForgeUnavailable, "502 from the forge", LONG)
        .await
        .unwrap();
    deliver(&queue, "quick").await;
    assert_eq!(take(&queue).await.delivery, "quick");

    let told = queue.delivery(slow.id).await.unwrap().unwrap();
    assert_eq!(told.row.status, DeliveryStatus::Waiting);
    assert_eq!(told.row.reason, Some(Reason::ForgeUnavailable));
    assert_eq!(told.row.detail, "502 from the forge");
    assert!(told.row.not_before.is_some());
}

#[tokio::test]
async fn a_delivery_that_was_given_up_can_be_replayed_and_one_with_a_verdict_can_not() {
    let queue = fresh().await;
    deliver(&queue, "a").await;
    let delivery = take(&queue).await;
    queue
        .give_up_delivery(&delivery, Reason::PatienceEnded, "")
        .await
        .unwrap();
    assert!(queue.take_delivery(&worker("w"), LONG).await.unwrap().is_none());

    queue.replay_delivery(delivery.id, "olga").await.unwrap();
    let again = take(&queue).await;
    assert!(again.replayed);
    assert_eq!((again.id, again.tries), (delivery.id, 0));

    queue
        .decide(
            &again,
            &DeliveryVerdict {
                reason: Some(Reason::TestDelivery),
                ..Default::default()
            },
        )
        .await
        .unwrap();
    let refused = queue.replay_delivery(delivery.id, "olga").await;
    assert!(matches!(refused, Err(StoreError::WrongState { .. })), "got {refused:?}");
}

#[tokio::test]
async fn a_run_that_a_person_asks_for_is_a_delivery_like_any_other() {
    let queue = fresh().await;
    let request = RunRequest {
        trigger: TriggerId::from("nightly"),
        forge: "lab".to_owned(),
        repository: "lab/widgets".to_owned(),
        subject: Some(7),
        subject_kind: None,
        who: "cli:olga".to_owned(),
    };
    let id = queue.request_run(&request).await.unwrap();
    let delivery = take(&queue).await;
    assert_eq!((delivery.id, delivery.kind.as_str()), (id, queue::RUN_REQUEST));
    assert_eq!(serde_json::from_slice::<RunRequest>(&delivery.body).unwrap(), request);
    assert_eq!(queue.audit_log(None, 10).await.unwrap()[0].action, "run");
}

#[tokio::test]
async fn a_delivery_without_events_says_why_it_holds_none() {
    let queue = fresh().await;
    decide(
        &queue,
        "a",
        &DeliveryVerdict {
            reason: Some(Reason::TestDelivery),
            ..Default::default()
        },
    )
    .await;
    let explained = queue.explain("a").await.unwrap();
    assert_eq!(explained.deliveries.len(), 1);
    assert_eq!(explained.deliveries[0].row.reason, Some(Reason::TestDelivery));
    assert!(explained.deliveries[0].events.is_empty());
}
