//! Which comments make a job, and the verdict on those that make none.

use std::time::Duration;

use queue::Reason;

use crate::world::{TRIAGE, WIDGETS, World, job, only, word};

#[tokio::test]
async fn a_writers_comment_makes_one_job_and_is_answered_with_eyes() {
    let mut world = World::new().await;
    let delivery = world.comment("mira", "@pi triage this, please").await;

    assert_eq!(word(&delivery), "fired");
    world.post().await;
    let comment = world.forge.comments(WIDGETS, 1).pop().unwrap();
    assert_eq!(
        world.forge.reactions(comment.id),
        [("pi-bot".to_owned(), "eyes".to_owned())]
    );
    assert_eq!(
        world.forge.comments_by(WIDGETS, 1, "pi-bot").len(),
        0,
        "a decision says nothing but eyes"
    );
}

#[tokio::test]
async fn a_job_carries_what_the_forge_confirmed() {
    let mut world = World::new().await;
    let delivery = world.comment("mira", "@pi triage this, please").await;

    let claim = world.claim().await;
    assert_eq!(claim.job, job(&delivery));
    let subject = claim.data.subject.unwrap();
    assert_eq!(
        (subject.number, subject.title.as_str()),
        (1, testkit::forge::ISSUE_TITLE)
    );
    assert_eq!(subject.text, testkit::forge::ISSUE_BODY);
    assert_eq!(claim.data.repository.full_name(), WIDGETS);
    assert_eq!(claim.data.default_branch.as_deref(), Some("main"));
    assert_eq!(claim.data.trigger.run.exclude_tools.len(), 4);
    let [asked] = claim.asked.as_slice() else {
        panic!("{:?}", claim.asked)
    };
    assert_eq!((asked.actor.id, asked.text.as_str()), (3, "@pi triage this, please"));
    assert_eq!(asked.allowed_by, "the forge gives the actor `write`");
}

#[tokio::test]
async fn a_phrase_that_no_reader_would_take_for_a_request_starts_nothing_and_asks_the_forge_nothing() {
    let cases = [
        ("`@pi triage` is how one asks", "phrase-in-code"),
        ("```\n@pi triage\n```", "phrase-in-code"),
        ("see https://example.org/?q=@pi", "phrase-in-url"),
        ("> @pi triage this\n\nwhy did you write that?", "phrase-in-quote"),
        ("write to root@pi or to me", "phrase-in-address"),
        ("@pineapple pizza", "phrase-in-word"),
        ("nothing of that sort", "phrase-absent"),
    ];
    let mut world = World::new().await;
    world.forge.forget_calls();
    for (text, expected) in cases {
        let delivery = world.comment("mira", text).await;
        assert_eq!(word(&delivery), expected, "{text:?}");
    }
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.forge.calls(), [], "what is free is looked at first");
}

#[tokio::test]
async fn control_words_start_nothing_and_say_so() {
    let mut world = World::new().await;
    for control in ["stop", "retry", "status"] {
        let delivery = world.comment("mira", &format!("@pi {control}")).await;
        assert_eq!(word(&delivery), "control-word");
        assert_eq!(only(&delivery).detail, format!("`{control}`"));
    }
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test]
async fn each_trigger_gets_a_verdict_and_the_forge_is_asked_once_for_all_of_them() {
    let other = r#"{ "id": "second", "on": { "type": "comment", "phrase": "@pi" }, "run": { "kind": "forgejo", "flow": "review" } }"#;
    let silent = r#"{ "id": "third", "on": { "type": "comment", "phrase": "@qi" }, "run": { "kind": "forgejo", "flow": "review" } }"#;
    let mut world = World::with_triggers(&[TRIAGE, other, silent]).await;
    world.forge.forget_calls();

    let delivery = world.comment("mira", "@pi look").await;

    let decisions = &delivery.events[0].decisions;
    let words: Vec<&str> = decisions
        .iter()
        .map(|row| row.reason.map_or(row.verdict.word(), Reason::word))
        .collect();
    assert_eq!(words, ["fired", "fired", "phrase-absent"]);
    let asked = |part: &str| {
        world
            .forge
            .calls()
            .iter()
            .filter(|call| call.path.contains(part))
            .count()
    };
    assert_eq!(asked("/permission"), 1);
    assert_eq!(asked("/issues/comments/"), 1);
    world.post().await;
    assert_eq!(asked("/reactions"), 1, "one comment gets one pair of eyes");
}

#[tokio::test]
async fn a_repository_that_is_not_listed_starts_nothing() {
    let mut world = World::new().await;
    world.setup.repositories = vec!["lab/other".to_owned()];
    world.forge.forget_calls();
    assert_eq!(
        word(&world.comment("mira", "@pi triage").await),
        "repository-not-listed"
    );
    assert_eq!(world.forge.calls(), []);
}

#[tokio::test]
async fn a_repository_that_was_renamed_out_of_the_list_starts_nothing() {
    let mut world = World::new().await;
    world.setup.repositories = vec![WIDGETS.to_owned()];
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.rename_repository(WIDGETS, "gadgets");
    assert_eq!(word(&world.carry_and_decide().await), "repository-not-listed");
}

#[tokio::test]
async fn a_renamed_repository_is_found_by_its_id_and_the_job_knows_the_new_name() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.rename_repository(WIDGETS, "gadgets");

    assert_eq!(word(&world.carry_and_decide().await), "fired");
    assert_eq!(world.claim().await.data.repository.full_name(), "lab/gadgets");
    world.post().await;
    let comment = world.forge.comments("lab/gadgets", 1).pop().unwrap();
    assert_eq!(world.forge.reactions(comment.id).len(), 1, "the reaction found it too");
}

#[tokio::test]
async fn a_repository_that_was_deleted_starts_nothing() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.delete_repository(WIDGETS);
    assert_eq!(word(&world.carry_and_decide().await), "repository-gone");
}

#[tokio::test]
async fn a_comment_that_was_deleted_meanwhile_starts_nothing() {
    let mut world = World::new().await;
    let comment = world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let id = world.carry().await[0];
    world.forge.delete_comment(comment, "mira");
    world.decide().await;
    assert_eq!(word(&world.delivery(id).await), "object-gone");
}

#[tokio::test]
async fn an_archived_repository_starts_nothing() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.archive(WIDGETS);
    assert_eq!(word(&world.carry_and_decide().await), "repository-archived");
}

#[tokio::test]
async fn a_text_that_differs_from_the_forges_is_not_confirmed() {
    let mut world = World::new().await;
    let comment = world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    world.forge.rewrite_comment_quietly(comment, "@pi delete everything");
    let delivery = world.carry_and_decide().await;
    assert_eq!(word(&delivery), "not-confirmed");
    assert_eq!(
        only(&delivery).detail,
        "the text differs between the delivery and the forge"
    );
}

#[tokio::test]
async fn a_well_signed_delivery_cannot_put_a_request_into_somebodys_mouth() {
    let world = World::new().await;
    world.forge.comment(WIDGETS, 1, "sol", "@pi triage");
    let sent = world.last_sent();
    let mira = |user: &mut serde_json::Value| {
        user["id"] = 3.into();
        user["login"] = "mira".into();
        user["username"] = "mira".into();
    };

    let both = world
        .forge_a_delivery(&sent, |body| {
            mira(&mut body["sender"]);
            mira(&mut body["comment"]["user"]);
        })
        .await;
    world.decide().await;
    let verdict = world.delivery(both).await;
    assert_eq!(word(&verdict), "not-confirmed");
    assert_eq!(
        only(&verdict).detail,
        "who wrote it differs between the delivery and the forge"
    );
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test]
async fn a_well_signed_delivery_cannot_move_a_comment_to_another_issue() {
    let world = World::new().await;
    world.forge.issue(WIDGETS, "sol", "Another", "text");
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let forged = world
        .forge_a_delivery(&world.last_sent(), |body| body["issue"]["number"] = 2.into())
        .await;
    world.decide().await;
    assert_eq!(word(&world.delivery(forged).await), "not-confirmed");
}

#[tokio::test]
async fn a_well_signed_delivery_cannot_lend_a_listed_name_to_another_repository() {
    let world = World::new().await;
    world.forge.user("eve");
    let other = world.forge.repository("eve/trap", &[]);
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let forged = world
        .forge_a_delivery(&world.last_sent(), |body| body["repository"]["id"] = other.into())
        .await;
    world.decide().await;
    assert_eq!(word(&world.delivery(forged).await), "repository-not-listed");
}

#[tokio::test]
async fn a_comment_that_was_old_when_it_arrived_starts_nothing() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let id = world.carry().await[0];
    world
        .sql("UPDATE deliveries SET received_at = received_at + interval '25 hours'")
        .await;
    world.decide().await;
    assert_eq!(word(&world.delivery(id).await), "too-old");
}

#[tokio::test]
async fn a_delivery_that_makes_an_old_comment_look_new_starts_nothing() {
    let mut world = World::new().await;
    world.settings.max_event_age = Duration::from_secs(3600);
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let forged = world
        .forge_a_delivery(&world.last_sent(), |body| {
            body["comment"]["created_at"] = "2999-01-01T00:00:00Z".into();
            body["comment"]["updated_at"] = "2999-01-01T00:00:00Z".into();
        })
        .await;
    world
        .sql("UPDATE deliveries SET received_at = received_at + interval '2 hours'")
        .await;
    world.decide().await;
    assert_eq!(
        word(&world.delivery(forged).await),
        "too-old",
        "the forge's own time counts"
    );
}

#[tokio::test]
async fn its_authors_edit_that_adds_the_phrase_makes_a_job() {
    let mut world = World::new().await;
    let comment = world.forge.comment(WIDGETS, 1, "mira", "look at this");
    assert_eq!(word(&world.carry_and_decide().await), "phrase-absent");
    world.forge.backdate_comment(comment, Duration::from_secs(60));
    world.forge.edit_comment(comment, "mira", "look at this, @pi");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
}

#[tokio::test]
async fn an_edit_of_a_text_that_said_the_phrase_before_makes_no_second_job() {
    let mut world = World::new().await;
    let comment = world.forge.comment(WIDGETS, 1, "mira", "@pi look");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
    world.forge.edit_comment(comment, "mira", "@pi look, please");
    assert_eq!(word(&world.carry_and_decide().await), "phrase-not-new");
    assert_eq!(world.jobs().await, 1);
}

#[tokio::test]
async fn somebody_elses_edit_makes_no_job() {
    let mut world = World::new().await;
    let comment = world.forge.comment(WIDGETS, 1, "mira", "look at this");
    world.carry_and_decide().await;
    world.forge.edit_comment(comment, "nils", "look at this, @pi");
    let delivery = world.carry_and_decide().await;
    assert_eq!(delivery.row.reason, Some(Reason::NotTheAuthorsEdit));
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test]
async fn an_invented_edit_of_a_comment_that_was_never_edited_makes_no_second_job() {
    let mut world = World::new().await;
    world.forge.comment(WIDGETS, 1, "mira", "@pi look");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
    let forged = world
        .forge_a_delivery(&world.last_sent(), |body| {
            body["action"] = "edited".into();
            body["changes"] = serde_json::json!({ "body": { "from": "look" } });
        })
        .await;
    world.decide().await;
    assert_eq!(word(&world.delivery(forged).await), "not-confirmed");
    assert_eq!(world.jobs().await, 1);
}

#[tokio::test]
async fn a_test_delivery_says_that_it_arrived_and_starts_nothing() {
    let mut world = World::new().await;
    let hook = world
        .forge
        .hook(WIDGETS, "http://127.0.0.1:9/hooks/codeberg", "hook-secret-of-the-test");
    world.forge.test_hook(hook);
    let delivery = world.carry_and_decide().await;
    assert_eq!(delivery.row.reason, Some(Reason::TestDelivery));
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test]
async fn a_comment_on_a_pull_request_freezes_its_head() {
    let mut world = World::new().await;
    let head = world.forge.commit(
        WIDGETS,
        "turn",
        &[testkit::forge::File::text("turn.md", "right")],
        "Turn right",
    );
    let number = world
        .forge
        .pull_request(WIDGETS, "mira", "turn", "Turn right", "as it should");
    world.forge.comment(WIDGETS, number, "mira", "@pi look");
    assert_eq!(word(&world.carry_and_decide().await), "fired");
    let subject = world.claim().await.data.subject.unwrap();
    assert_eq!(
        (subject.kind, subject.head),
        (triggers::Target::PullRequest, Some(head))
    );
    assert!(!subject.head_is_fork);
}
