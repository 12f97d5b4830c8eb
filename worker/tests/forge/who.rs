//! Who may start a job.

use testkit::forge::{Access, Fault};

use crate::world::{WIDGETS, World, only, word};

#[tokio::test]
async fn the_matrix_of_permissions_holds() {
    let mut world = World::new().await;
    let cases = [
        ("olga", "fired", ""),
        ("nils", "joined", ""),
        ("mira", "joined", ""),
        (
            "ravi",
            "permission-too-low",
            "the forge gives the actor `read`; write access or more is needed",
        ),
        (
            "sol",
            "permission-too-low",
            "the forge gives the actor `read`; write access or more is needed",
        ),
        ("pi-bot", "own-post", "the account is ours"),
    ];
    for (who, expected, detail) in cases {
        let delivery = world.comment(who, "@pi triage").await;
        assert_eq!(word(&delivery), expected, "{who}");
        assert!(
            detail.is_empty() || only(&delivery).detail == detail,
            "{who}: {:?}",
            only(&delivery)
        );
    }
    assert_eq!(world.jobs().await, 1);
}

#[tokio::test]
async fn a_stranger_who_may_not_ask_hears_nothing() {
    let mut world = World::new().await;
    world.comment("sol", "@pi triage").await;
    world.post().await;
    assert_eq!(world.forge.comments_by(WIDGETS, 1, "pi-bot").len(), 0);
    assert_eq!(world.count("SELECT count(*) FROM outputs").await, 0);
}

#[tokio::test]
async fn a_person_of_allow_users_is_not_looked_up() {
    let mut world = World::new().await;
    world.setup.allow_users = [5].into();
    world.forge.forget_calls();
    assert_eq!(word(&world.comment("sol", "@pi triage").await), "fired");
    assert!(
        world
            .forge
            .calls()
            .iter()
            .all(|call| !call.path.contains("/permission"))
    );
    assert_eq!(
        world.claim().await.asked[0].allowed_by,
        "user 5 is listed in `allow_users`"
    );
}

#[tokio::test]
async fn an_allowed_number_is_not_an_allowed_name() {
    let mut world = World::new().await;
    world.setup.allow_users = [5].into();
    world.forge.rename_user("sol", "luna");
    world.forge.user("sol");
    assert_eq!(word(&world.comment("sol", "@pi triage").await), "permission-too-low");
    assert_eq!(word(&world.comment("luna", "@pi triage").await), "fired");
}

#[tokio::test]
async fn a_person_who_was_renamed_is_asked_about_under_the_present_name() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.rename_user("mira", "miranda");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
}

#[tokio::test]
async fn a_name_that_changed_hands_gives_nobody_the_old_owners_rights() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "sol", "@pi triage");
    world.forge.rename_user("sol", "luna");
    let other = world.forge.user("sol");
    world.forge.allow(WIDGETS, "sol", Access::Write);
    assert_ne!(other, 5);
    assert_eq!(
        word(&world.carry_and_decide().await),
        "permission-too-low",
        "luna wrote it, and luna may only read"
    );
}

#[tokio::test]
async fn without_any_right_to_ask_the_delivery_waits_and_says_what_to_configure() {
    let mut world = World::new().await;
    world.without_permission_token();
    let delivery = world.comment("mira", "@pi triage").await;
    assert_eq!(
        delivery.row.reason.map(queue::Reason::word),
        Some("permission-not-askable")
    );
    for hint in ["`permission_token`", "`allow_users`", "codeberg"] {
        assert!(delivery.row.detail.contains(hint), "{}", delivery.row.detail);
    }
    assert!(delivery.row.not_before.is_some(), "it is tried again");
    assert_eq!(world.jobs().await, 0);

    world.setup.allow_users = [3].into();
    world.everything_is_due().await;
    world.decide().await;
    assert_eq!(
        word(&world.delivery(delivery.row.id).await),
        "fired",
        "mended within the day, nothing is lost"
    );
}

#[tokio::test]
async fn a_refusal_of_our_own_token_is_no_answer_about_the_person() {
    let mut world = World::new().await;
    world.forge.fault(Fault::forbidden().at("/issues/comments/").times(1));
    let delivery = world.comment("mira", "@pi triage").await;
    assert_eq!(
        delivery.row.reason.map(queue::Reason::word),
        Some("forge-token-too-weak")
    );
    world.everything_is_due().await;
    world.decide().await;
    assert_eq!(word(&world.delivery(delivery.row.id).await), "fired");
}
