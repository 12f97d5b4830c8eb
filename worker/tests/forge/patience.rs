//! A forge that cannot be asked delays a delivery, visibly, and never loses it.

use queue::{DeliveryStatus, Reason};
use testkit::forge::Fault;

use crate::world::{WIDGETS, World, word};

#[tokio::test]
async fn a_forge_that_is_down_delays_a_delivery_until_it_is_back() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let id = world.carry().await[0];
    world.forge.down();
    world.decide().await;

    let waiting = world.delivery(id).await.row;
    assert_eq!(
        (waiting.status, waiting.reason),
        (DeliveryStatus::Waiting, Some(Reason::ForgeUnavailable))
    );
    assert!(
        waiting.detail.starts_with("asked for the repository: "),
        "{}",
        waiting.detail
    );
    assert!(waiting.not_before.unwrap() > waiting.received_at);

    world.forge.up();
    world.everything_is_due().await;
    world.decide().await;
    assert_eq!(word(&world.delivery(id).await), "fired");
}

#[tokio::test]
async fn a_delivery_that_waits_holds_up_no_other() {
    let mut world = World::new().await;
    world.forge.fault(Fault::status(502).at("/issues/comments/").times(1));
    let first = world.comment("mira", "@pi triage").await;
    assert_eq!(first.row.status, DeliveryStatus::Waiting);
    assert_eq!(word(&world.comment("nils", "@pi triage").await), "fired");
}

#[tokio::test]
async fn each_wait_is_longer_than_the_last() {
    let mut world = World::new().await;
    world.forge.fault(Fault::status(500));
    let id = world.comment("mira", "@pi triage").await.row.id;
    let mut last = 0.0;
    for _ in 0..3 {
        let wait: f64 =
            sqlx::query_scalar("SELECT extract(epoch FROM not_before - now())::float8 FROM deliveries WHERE id = $1")
                .bind(id.0)
                .fetch_one(world.queue.pool())
                .await
                .unwrap();
        assert!(wait > last, "{wait} after {last}");
        last = wait;
        world.everything_is_due().await;
        world.decide().await;
    }
}

#[tokio::test]
async fn after_a_day_a_delivery_is_given_up_and_a_replay_looks_at_it_again() {
    let mut world = World::new().await;
    world.forge.fault(Fault::status(503));
    let id = world.comment("mira", "@pi triage").await.row.id;
    world
        .sql("UPDATE deliveries SET received_at = received_at - interval '1 day', not_before = now()")
        .await;
    world.decide().await;
    let abandoned = world.delivery(id).await.row;
    assert_eq!(
        (abandoned.status, abandoned.reason),
        (DeliveryStatus::Abandoned, Some(Reason::PatienceEnded))
    );
    assert!(
        abandoned.detail.starts_with("last: forge-unavailable: "),
        "{}",
        abandoned.detail
    );

    world.forge.heal();
    world.queue.replay_delivery(id, "olga").await.unwrap();
    world.decide().await;
    assert_eq!(word(&world.delivery(id).await), "fired");
}

#[tokio::test]
async fn a_forge_that_the_worker_does_not_know_delays_its_deliveries() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let id = world.carry().await[0];
    world.setup.name = "elsewhere".to_owned();
    world.decide().await;
    assert_eq!(world.delivery(id).await.row.reason, Some(Reason::ForgeNotConfigured));
    world.setup.name = "codeberg".to_owned();
    world.everything_is_due().await;
    world.decide().await;
    assert_eq!(word(&world.delivery(id).await), "fired");
}
