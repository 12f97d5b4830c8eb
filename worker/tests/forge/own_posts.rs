//! What we wrote ourselves starts nothing, however it comes back to us: three ways to know it, each enough.

use crate::world::{WIDGETS, World, only, word};

#[tokio::test]
async fn a_comment_of_our_own_account_starts_nothing() {
    let mut world = World::new().await;
    let delivery = world.comment("pi-bot", "I was asked with @pi triage").await;
    assert_eq!(
        (word(&delivery), only(&delivery).detail.as_str()),
        ("own-post", "the account is ours")
    );
}

#[tokio::test]
async fn an_echo_of_our_text_under_a_persons_account_is_known_by_its_marker() {
    let mut world = World::new().await;
    let marker = forges::text::marker("8a7b0c9e-0000-4000-8000-000000000000");
    let delivery = world.comment("mira", &format!("@pi triage\n\n{marker}")).await;
    assert_eq!(
        (word(&delivery), only(&delivery).detail.as_str()),
        ("own-post", "the text carries our hidden marker")
    );
}

#[tokio::test]
async fn a_comment_of_ours_is_known_by_its_number_when_account_and_marker_are_gone() {
    let mut world = World::new().await;
    world.setup.account_id = Some(4242);
    let comment = world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    sqlx::query("INSERT INTO own_posts (forge, remote_id) VALUES ('codeberg', $1)")
        .bind(comment)
        .execute(world.queue.pool())
        .await
        .unwrap();
    let delivery = world.carry_and_decide().await;
    assert_eq!(
        (word(&delivery), only(&delivery).detail.as_str()),
        ("own-post", "the comment is in the table of our own posts")
    );
}

#[tokio::test]
async fn an_account_that_is_not_configured_is_asked_for() {
    let mut world = World::new().await;
    world.setup.account_id = None;
    assert_eq!(word(&world.comment("pi-bot", "@pi triage").await), "own-post");
    assert_eq!(world.jobs().await, 0);
}
