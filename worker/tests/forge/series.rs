//! Each thing makes each job once, under however many deliveries it arrives; quick requests become one job.

use queue::Reason;

use crate::world::{WIDGETS, World, job, word};

#[tokio::test]
async fn a_comment_that_is_redelivered_under_a_new_id_makes_no_second_job() {
    let mut world = World::new().await;
    let first = world.comment("mira", "@pi triage").await;
    assert_eq!(word(&first), "fired");
    world.forge.forget_calls();
    world.forge.redeliver(&world.last_sent().id);
    let again = world.carry_and_decide().await;

    assert_ne!(again.row.id, first.row.id);
    assert_eq!(again.events[0].duplicate_of, Some(first.events[0].event));
    assert_eq!(again.row.no, Some(Reason::DuplicateOf));
    assert_eq!(world.jobs().await, 1);
    assert_eq!(world.forge.calls(), [], "what is known is not asked again");
}

#[tokio::test]
async fn a_comment_that_comes_through_two_hooks_makes_one_job_when_both_are_decided_at_once() {
    let mut world = World::new().await;
    world
        .forge
        .organisation_hook("lab", "http://127.0.0.1:9/hooks/codeberg", "hook-secret-of-the-test");
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let ids = world.carry().await;
    assert_eq!(ids.len(), 2);
    let decider = world.decider();
    let (one, two) = tokio::join!(decider.run_once(), decider.run_once());
    assert!(one.unwrap() && two.unwrap());

    let duplicates = [world.delivery(ids[0]).await, world.delivery(ids[1]).await]
        .iter()
        .filter(|delivery| delivery.events[0].duplicate_of.is_some())
        .count();
    assert_eq!(duplicates, 1);
    assert_eq!(world.jobs().await, 1);
    world.post().await;
    let comment = world.forge.comments(WIDGETS, 1).pop().unwrap();
    assert_eq!(world.forge.reactions(comment.id).len(), 1);
}

#[tokio::test]
async fn a_second_request_joins_the_job_that_waits_and_both_reach_it() {
    let mut world = World::new().await;
    let first = world.comment("mira", "@pi triage").await;
    let second = world.comment("nils", "@pi and look at the left wheel").await;

    assert_eq!(word(&second), "joined");
    assert_eq!(job(&second), job(&first));
    let claim = world.claim().await;
    let texts: Vec<&str> = claim.asked.iter().map(|asked| asked.text.as_str()).collect();
    assert_eq!(texts, ["@pi triage", "@pi and look at the left wheel"]);
    world.post().await;
    for comment in world.forge.comments(WIDGETS, 1) {
        assert_eq!(
            world.forge.reactions(comment.id).len(),
            1,
            "each request is acknowledged"
        );
    }
}

#[tokio::test]
async fn a_job_that_runs_takes_no_request_any_more() {
    let mut world = World::new().await;
    let first = world.comment("mira", "@pi triage").await;
    assert_eq!(world.claim().await.job, job(&first));
    let second = world.comment("nils", "@pi again").await;
    assert_eq!(word(&second), "fired");
    assert_ne!(job(&second), job(&first));
}

#[tokio::test]
async fn requests_under_two_issues_are_two_jobs() {
    let mut world = World::new().await;
    let other = world.forge.issue(WIDGETS, "sol", "Another", "text");
    world.comment("mira", "@pi triage").await;
    world.forge.comment(WIDGETS, other, "mira", "@pi triage");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
    assert_eq!(world.jobs().await, 2);
}
