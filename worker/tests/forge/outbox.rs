//! A row of the outbox is on the forge once, whatever dies in between.

use std::time::Duration;

use queue::{Finish, NewOutput, Outcome, OutputKind, OutputStatus, Reason};
use testkit::forge::Fault;

use crate::world::{WIDGETS, World};

const LEASE: Duration = Duration::from_secs(60);

/// A job that ended with one answer in the outbox, its eyes posted.
async fn answered() -> World {
    let mut world = World::new().await;
    world.comment("mira", "@pi triage").await;
    let claim = world.claim().await;
    world.post().await;
    let answer = NewOutput {
        kind: OutputKind::Comment,
        forge: claim.data.forge.clone(),
        repository: claim.data.repository.clone(),
        subject: Some(1),
        comment: None,
        body: "It turns left.\n\nfooter".to_owned(),
        ordinal: 0,
        marker: None,
    };
    let finish = Finish {
        outcome: Outcome::Completed,
        reason: Reason::Done,
        detail: String::new(),
        exit_code: Some(0),
        turns: Some(1),
        reply: None,
        outputs: vec![answer],
    };
    world.queue.finish(&claim, &finish).await.unwrap();
    world.forge.forget_calls();
    world
}

/// The worker that had the row died: its lease is over.
async fn its_worker_dies(world: &World) {
    world
        .sql("UPDATE outputs SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
        .await;
}

async fn status(world: &World) -> (String, Option<String>) {
    sqlx::query_as("SELECT state, reason FROM outputs WHERE kind IN ('comment', 'status')")
        .fetch_one(world.queue.pool())
        .await
        .unwrap()
}

fn answers(world: &World) -> Vec<String> {
    world
        .forge
        .comments_by(WIDGETS, 1, "pi-bot")
        .into_iter()
        .map(|comment| comment.body)
        .collect()
}

#[tokio::test]
async fn an_answer_is_posted_once_with_its_marker_and_known_as_our_own() {
    let world = answered().await;
    world.post().await;
    world.post().await;
    let [answer] = answers(&world).try_into().unwrap();
    assert!(
        answer.starts_with("It turns left.\n\nfooter\n\n<!-- pi-dispatch:"),
        "{answer}"
    );
    let id = world.forge.comments_by(WIDGETS, 1, "pi-bot")[0].id;
    assert!(world.queue.is_own_post("codeberg", id).await.unwrap());
    assert_eq!(status(&world).await, (OutputStatus::Posted.word().to_owned(), None));
}

#[tokio::test]
async fn a_worker_that_dies_before_it_posts_leaves_one_answer() {
    let world = answered().await;
    let taken = world.queue.take_output(&world.worker(), LEASE).await.unwrap();
    assert!(taken.is_some());
    world.post().await;
    assert_eq!(answers(&world).len(), 0, "somebody has it");
    its_worker_dies(&world).await;
    world.post().await;
    assert_eq!(answers(&world).len(), 1);
}

#[tokio::test]
async fn an_answer_whose_receipt_was_lost_on_the_way_is_found_and_not_posted_again() {
    let world = answered().await;
    world
        .forge
        .fault(Fault::lose_the_answer().on("POST", "/comments").times(1));
    world.post().await;
    assert_eq!(answers(&world).len(), 1, "it arrived");
    assert_eq!(status(&world).await.0, OutputStatus::Pending.word(), "but nobody knows");

    world.everything_is_due().await;
    world.post().await;
    assert_eq!(answers(&world).len(), 1);
    assert_eq!(status(&world).await.0, OutputStatus::Posted.word());
}

#[tokio::test]
async fn a_worker_that_dies_after_it_posted_leaves_one_answer() {
    let world = answered().await;
    let taken = world.queue.take_output(&world.worker(), LEASE).await.unwrap().unwrap();
    let text = format!("{}\n\n{}", taken.body, forges::text::marker(&taken.marker.to_string()));
    world.forge.comment(WIDGETS, 1, "pi-bot", &text);
    its_worker_dies(&world).await;
    world.post().await;
    assert_eq!(answers(&world).len(), 1);
    assert_eq!(status(&world).await.0, OutputStatus::Posted.word());
}

#[tokio::test]
async fn the_marker_in_somebody_elses_comment_is_not_ours() {
    let world = answered().await;
    let taken = world.queue.take_output(&world.worker(), LEASE).await.unwrap().unwrap();
    world
        .forge
        .comment(WIDGETS, 1, "sol", &forges::text::marker(&taken.marker.to_string()));
    its_worker_dies(&world).await;
    world.post().await;
    assert_eq!(
        answers(&world).len(),
        1,
        "a stranger cannot make us believe that we answered"
    );
}

#[tokio::test]
async fn two_posters_at_once_post_once() {
    let world = answered().await;
    let poster = world.poster();
    let (one, two) = tokio::join!(poster.run_once(), poster.run_once());
    assert_eq!([one.unwrap(), two.unwrap()].iter().filter(|did| **did).count(), 1);
    assert_eq!(answers(&world).len(), 1);
}

#[tokio::test]
async fn what_the_forge_refuses_for_good_ends_the_row_with_its_reason() {
    for (code, expected) in [
        (404, "subject-gone"),
        (403, "subject-locked"),
        (423, "subject-locked"),
        (422, "text-refused"),
    ] {
        let world = answered().await;
        world.forge.fault(Fault::status(code).on("POST", "/comments"));
        world.post().await;
        assert_eq!(
            status(&world).await,
            (OutputStatus::Failed.word().to_owned(), Some(expected.to_owned())),
            "{code}"
        );
        world.forge.heal();
        world.everything_is_due().await;
        world.post().await;
        assert_eq!(answers(&world).len(), 0, "{code}: it is over");
    }
}

#[tokio::test]
async fn a_forge_that_is_down_delays_an_answer_and_after_a_day_ends_it() {
    let world = answered().await;
    world.forge.down();
    world.post().await;
    assert_eq!(
        status(&world).await,
        (
            OutputStatus::Pending.word().to_owned(),
            Some("forge-unavailable".to_owned())
        )
    );
    world
        .sql("UPDATE outputs SET created_at = created_at - interval '1 day', not_before = now()")
        .await;
    world.post().await;
    assert_eq!(
        status(&world).await,
        (
            OutputStatus::Failed.word().to_owned(),
            Some("output-patience-ended".to_owned())
        )
    );
}

#[tokio::test]
async fn an_answer_finds_a_renamed_repository() {
    let world = answered().await;
    world.forge.rename_repository(WIDGETS, "gadgets");
    world.post().await;
    assert_eq!(world.forge.comments_by("lab/gadgets", 1, "pi-bot").len(), 1);
}

#[tokio::test]
async fn a_status_comment_is_edited_in_place() {
    let mut world = World::new().await;
    world.comment("mira", "@pi triage").await;
    let claim = world.claim().await;
    let status = |body: &str| NewOutput {
        kind: OutputKind::Status,
        forge: claim.data.forge.clone(),
        repository: claim.data.repository.clone(),
        subject: Some(1),
        comment: None,
        body: body.to_owned(),
        ordinal: 0,
        marker: None,
    };
    world.queue.put_status(claim.job, &status("working")).await.unwrap();
    world.post().await;
    world.queue.put_status(claim.job, &status("over")).await.unwrap();
    world.post().await;
    let [comment] = answers(&world).try_into().unwrap();
    assert!(comment.starts_with("over\n\n<!-- pi-dispatch:"), "{comment}");
}

#[tokio::test]
async fn a_status_whose_first_receipt_was_lost_is_still_one_comment_with_the_last_text() {
    let mut world = World::new().await;
    world.comment("mira", "@pi triage").await;
    let claim = world.claim().await;
    world.post().await;
    let status = |body: &str| NewOutput {
        kind: OutputKind::Status,
        forge: claim.data.forge.clone(),
        repository: claim.data.repository.clone(),
        subject: Some(1),
        comment: None,
        body: body.to_owned(),
        ordinal: 0,
        marker: None,
    };
    world
        .forge
        .fault(Fault::lose_the_answer().on("POST", "/comments").times(1));
    world.queue.put_status(claim.job, &status("working")).await.unwrap();
    world.post().await;
    world.queue.put_status(claim.job, &status("over")).await.unwrap();
    world.everything_is_due().await;
    world.post().await;
    let [comment] = answers(&world).try_into().unwrap();
    assert!(comment.starts_with("over\n\n"), "{comment}");
}
