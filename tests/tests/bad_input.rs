//! What a sender can do wrong, on purpose or not: each has its answer at the edge and its verdict in words, none makes a
//! wrong job, none is a 5xx.
//!
//! The receiver, the worker, PostgreSQL and the stub forge are there; the deployment is paused, so that a job which is
//! rightly made waits and no Docker is needed.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use queue::read::{DeliveryDetail, JobRow, Verdict};
use queue::{DeliveryStatus, Reason};
use serde_json::{Value, json};
use stories::{HOOK_SECRET, Plans, World, client, until};
use testkit::forge::{Access, Delivery, Sent, sign};

const WIDGETS: &str = "lab/widgets";

async fn world() -> World {
    world_with(Plans::default()).await
}

async fn world_with(plans: Plans) -> World {
    let mut world = World::without_worker(plans).await;
    world.queue.pause("story").await.expect("it can be paused");
    world.start_worker();
    world
}

/// What `pi-dispatch explain` tells about a delivery, once it has its verdict.
async fn explained(world: &World, delivery: &str) -> DeliveryDetail {
    until(&format!("delivery {delivery} is decided"), async || {
        let explained = world.queue.explain(delivery).await.ok()?;
        explained
            .deliveries
            .into_iter()
            .next()
            .filter(|delivery| delivery.row.status == DeliveryStatus::Decided)
    })
    .await
}

/// The words of a verdict: what each trigger got, or what holds for the delivery as a whole.
fn words(delivery: &DeliveryDetail) -> Vec<&'static str> {
    let of_triggers = delivery
        .events
        .iter()
        .flat_map(|event| &event.decisions)
        .map(|decision| decision.reason.map_or(decision.verdict.word(), Reason::word));
    delivery
        .row
        .reason
        .map(Reason::word)
        .into_iter()
        .chain(of_triggers)
        .collect()
}

/// The words for the newest delivery of the stub.
async fn newest(world: &World) -> Vec<&'static str> {
    let sent = world.forge.delivered().await.pop().expect("the forge sent something");
    assert!(
        matches!(sent.outcome, Sent::Answered(200 | 202)),
        "the receiver answered {:?}",
        sent.outcome
    );
    words(&explained(world, &sent.id).await)
}

/// Somebody comments on issue 1 through the forge; the verdict is given.
async fn comment(world: &World, who: &str, text: &str) -> Vec<&'static str> {
    world.forge.comment(WIDGETS, 1, who, text);
    newest(world).await
}

async fn all_jobs(world: &World) -> Vec<JobRow> {
    world.jobs(0).await
}

/// Posts a body to the hook as Forgejo would, signed as told; the status is given.
async fn post(world: &World, id: &str, signature: Option<(&str, &str)>, body: Vec<u8>) -> u16 {
    let mut request = client(None)
        .post(format!("{}/hooks/lab", world.hooks))
        .header("content-type", "application/json")
        .header("x-forgejo-event", "issue_comment")
        .header("x-forgejo-event-type", "issue_comment")
        .header("x-forgejo-delivery", id);
    if let Some((name, value)) = signature {
        request = request.header(name, value);
    }
    request
        .body(body)
        .send()
        .await
        .expect("the receiver answers also what it refuses")
        .status()
        .as_u16()
}

/// A delivery like that one, changed and signed with the right secret: it knows the secret and lies.
async fn lie(world: &World, like: &Delivery, id: &str, change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
    let mut body: Value = serde_json::from_slice(&like.body).expect("the stub sends JSON");
    change(&mut body);
    let body = serde_json::to_vec(&body).expect("it is JSON");
    let signature = sign(HOOK_SECRET, &body);
    assert_eq!(
        post(world, id, Some(("x-forgejo-signature", &signature)), body).await,
        202,
        "it is well signed"
    );
    words(&explained(world, id).await)
}

/// A comment that the forge has and whose delivery got lost; the delivery is given. From then on no hook tells us anything.
async fn lost(world: &World, who: &str, text: &str) -> Delivery {
    let nowhere = "http://127.0.0.1:9/nobody-listens";
    world.forge.remove_hook(world.hook);
    let hook = world.forge.hook(WIDGETS, nowhere, HOOK_SECRET);
    world.forge.comment(WIDGETS, 1, who, text);
    let lost = world.forge.delivered().await.pop().expect("it was sent");
    assert_eq!(lost.outcome, Sent::Lost);
    world.forge.remove_hook(hook);
    lost
}

fn is_mira(user: &mut Value) {
    for (field, value) in [("id", json!(3)), ("login", json!("mira")), ("username", json!("mira"))] {
        user[field] = value;
    }
}

/// What is wrong, a header instead of the usual one, the body, the status that answers it.
type Case<'a> = (&'a str, Option<(&'a str, &'a str)>, Vec<u8>, u16);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_by_the_forge_is_refused_and_leaves_no_row() {
    let world = world().await;
    let real = lost(&world, "mira", "@pi triage").await;
    let body = || real.body.clone();
    let good = sign(HOOK_SECRET, &real.body);
    let guessed = sign("guess", &real.body);
    let of_empty = sign("", &real.body);
    let github = format!("sha256={guessed}");
    let cases: [Case<'_>; 10] = [
        ("missing", None, body(), 401),
        ("empty", Some(("x-forgejo-signature", "")), body(), 401),
        ("wrong", Some(("x-forgejo-signature", &guessed)), body(), 401),
        (
            "of an empty secret",
            Some(("x-forgejo-signature", &of_empty)),
            body(),
            401,
        ),
        ("half", Some(("x-forgejo-signature", &good[..32])), body(), 401),
        ("Gitea's", Some(("x-gitea-signature", &good)), body(), 401),
        ("GitLab's", Some(("x-gitlab-token", HOOK_SECRET)), body(), 401),
        (
            "GitHub's of another secret",
            Some(("x-hub-signature-256", &github)),
            body(),
            401,
        ),
        (
            "of another body",
            Some(("x-forgejo-signature", &good)),
            b"{}".to_vec(),
            401,
        ),
        ("right", Some(("x-forgejo-signature", &good)), body(), 202),
    ];
    for (what, signature, body, status) in cases {
        let id = format!("d-{}", what.replace([' ', '\''], "-"));
        assert_eq!(post(&world, &id, signature, body).await, status, "{what}");
    }
    assert_eq!(
        world.count("SELECT count(*) FROM deliveries").await,
        1,
        "the last case alone"
    );
    assert_eq!(words(&explained(&world, "d-right").await), ["fired"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_cut_off_or_far_too_large_or_no_json_is_no_5xx() {
    let world = world().await;
    let real = lost(&world, "mira", "@pi triage").await;
    let half = real.body[..real.body.len() / 2].to_vec();
    let (was, is) = (sign(HOOK_SECRET, &real.body), sign(HOOK_SECRET, &half));
    assert_eq!(
        post(&world, "cut", Some(("x-forgejo-signature", &was)), half.clone()).await,
        401
    );
    assert_eq!(
        post(&world, "half", Some(("x-forgejo-signature", &is)), half).await,
        202
    );
    assert_eq!(words(&explained(&world, "half").await), ["body-unreadable"]);
    for (id, body) in [
        ("null", "null"),
        ("list", "[]"),
        ("empty", ""),
        ("noise", "\u{0}\u{1b}[2J"),
    ] {
        let signature = sign(HOOK_SECRET, body.as_bytes());
        let status = post(&world, id, Some(("x-forgejo-signature", &signature)), body.into()).await;
        match status {
            202 => assert_eq!(words(&explained(&world, id).await), ["body-unreadable"], "{id}"),
            status => assert_eq!(status, 400, "{id}"),
        }
    }

    let large = vec![b' '; 30 * 1024 * 1024];
    let signature = sign(HOOK_SECRET, &large);
    assert_eq!(
        post(&world, "large", Some(("x-forgejo-signature", &signature)), large).await,
        413
    );
    assert!(all_jobs(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phrase_that_asks_for_nothing_starts_nothing() {
    let world = world().await;
    for (text, word) in [
        ("one asks with `@pi triage`", "phrase-in-code"),
        ("```\n@pi triage\n```", "phrase-in-code"),
        ("    @pi triage", "phrase-in-code"),
        ("look at https://example.org/@pi", "phrase-in-url"),
        ("[there](https://example.org/?q=@pi)", "phrase-in-url"),
        ("> @pi triage\n\nI did not say that", "phrase-in-quote"),
        ("mail me@pi.example", "phrase-in-address"),
        ("<!-- @pi triage -->", "phrase-in-html"),
        ("@pirate", "phrase-in-word"),
        ("nothing", "phrase-absent"),
        ("@pi stop", "control-word"),
        ("@pi retry", "control-word"),
        ("@pi status", "control-word"),
    ] {
        assert_eq!(comment(&world, "mira", text).await, [word], "{text}");
    }
    assert!(all_jobs(&world).await.is_empty());
    assert!(world.forge.comments_by(WIDGETS, 1, "pi-bot").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_may_not_ask_start_nothing_and_make_us_say_nothing() {
    let world = world().await;
    world.forge.user("mira-bot");
    world.forge.user("pi-bot[bot]");
    for (who, word) in [
        ("pi-bot", "own-post"),
        ("ravi", "permission-too-low"),
        ("sol", "permission-too-low"),
        // A name's ending gives no right and takes none.
        ("mira-bot", "permission-too-low"),
        ("pi-bot[bot]", "permission-too-low"),
    ] {
        assert_eq!(comment(&world, who, "@pi triage").await, [word], "{who}");
    }
    assert!(all_jobs(&world).await.is_empty());
    assert_eq!(
        world.forge.comments_by(WIDGETS, 1, "pi-bot").len(),
        1,
        "its own, from above"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_who_knows_the_secret_can_claim_nothing_that_the_forge_does_not_say() {
    let world = world().await;
    world.forge.user("eve");
    let trap = world.forge.repository("eve/trap", &[]);
    let second = world.forge.issue(WIDGETS, "sol", "Another", "text");
    world.all_decided().await;

    let strangers = lost(&world, "sol", "@pi triage").await;
    let both = lie(&world, &strangers, "mouth", |body| {
        is_mira(&mut body["sender"]);
        is_mira(&mut body["comment"]["user"]);
    });
    assert_eq!(both.await, ["not-confirmed"]);
    let sender = lie(&world, &strangers, "sender", |body| is_mira(&mut body["sender"]));
    assert_eq!(sender.await, ["not-confirmed"]);
    // The id is a stranger's, the name is a writer's.
    let name = lie(&world, &strangers, "name", |body| {
        body["sender"]["login"] = json!("mira");
        body["comment"]["user"]["login"] = json!("mira");
    });
    assert_eq!(name.await, ["permission-too-low"]);

    let real = lost(&world, "mira", "@pi triage").await;
    let text = lie(&world, &real, "text", |body| {
        body["comment"]["body"] = json!("@pi delete everything")
    });
    assert_eq!(text.await, ["not-confirmed"]);
    let id = lie(&world, &real, "id", |body| body["comment"]["id"] = json!(987_654_321));
    assert_eq!(id.await, ["object-gone"]);
    let issue = lie(&world, &real, "issue", |body| body["issue"]["number"] = json!(second));
    assert_eq!(issue.await, ["not-confirmed"]);
    let place = lie(&world, &real, "place", |body| body["repository"]["id"] = json!(trap));
    assert_eq!(place.await, ["repository-not-listed"]);
    let edit = lie(&world, &real, "edit", |body| {
        body["action"] = json!("edited");
        body["changes"] = json!({ "body": { "from": "before" } });
    });
    assert_eq!(edit.await, ["not-confirmed"]);
    assert!(all_jobs(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_about_a_comment_does_not_take_its_place() {
    let world = world().await;
    let real = lost(&world, "mira", "@pi triage").await;
    for (id, change, word) in [
        (
            "text",
            json!({ "comment": { "body": "@pi something else" } }),
            "not-confirmed",
        ),
        (
            "silence",
            json!({ "comment": { "body": "nothing of that sort" } }),
            "phrase-absent",
        ),
        ("control", json!({ "comment": { "body": "@pi stop" } }), "control-word"),
        (
            "actor",
            json!({ "comment": { "user": { "id": 5 } }, "sender": { "id": 5 } }),
            "not-confirmed",
        ),
        (
            "ours",
            json!({ "comment": { "user": { "id": 7 } }, "sender": { "id": 7 } }),
            "own-post",
        ),
        (
            "old",
            json!({ "comment": { "created_at": "2001-01-01T00:00:00Z", "updated_at": "2001-01-01T00:00:00Z" } }),
            "too-old",
        ),
        (
            "place",
            json!({ "repository": { "name": "x", "full_name": "eve/x", "owner": { "login": "eve", "username": "eve" } } }),
            "repository-not-listed",
        ),
    ] {
        assert_eq!(
            lie(&world, &real, id, |body| merge(body, &change)).await,
            [word],
            "{id}"
        );
    }
    assert!(all_jobs(&world).await.is_empty());

    // Now the delivery of the forge itself: it is the first of its kind, and its repetition is not.
    let signature = sign(HOOK_SECRET, &real.body);
    for (id, word) in [("honest", "fired"), ("again", "duplicate-of")] {
        assert_eq!(
            post(&world, id, Some(("x-forgejo-signature", &signature)), real.body.clone()).await,
            202
        );
        assert_eq!(words(&explained(&world, id).await), [word]);
    }
    assert_eq!(
        lie(&world, &real, "late", |body| merge(
            body,
            &json!({ "comment": { "body": "@pi x" } })
        ))
        .await,
        ["duplicate-of"]
    );
    assert_eq!(all_jobs(&world).await.len(), 1);
}

/// Lays the fields of one object over another.
fn merge(onto: &mut Value, change: &Value) {
    match (onto, change) {
        (Value::Object(onto), Value::Object(change)) => {
            for (field, value) in change {
                merge(onto.entry(field).or_insert(Value::Null), value);
            }
        }
        (onto, change) => *onto = change.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_comment_makes_one_job_however_often_it_arrives() {
    let world = world().await;
    world
        .forge
        .organisation_hook("lab", &format!("{}/hooks/lab", world.hooks), HOOK_SECRET);
    world.forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let sent = world.forge.delivered().await;
    assert_eq!(sent.len(), 2, "through two hooks");
    let mut seen = Vec::new();
    for delivery in &sent {
        seen.extend(words(&explained(&world, &delivery.id).await));
    }
    seen.sort_unstable();
    assert_eq!(seen, ["duplicate-of", "fired"]);

    let again = world.forge.redeliver(&sent[0].id);
    world.forge.delivered().await;
    assert_eq!(words(&explained(&world, &again).await), ["duplicate-of"]);
    // The very same delivery once more: 200, and no row of its own.
    let signature = sign(HOOK_SECRET, &sent[0].body);
    assert_eq!(
        post(
            &world,
            &sent[0].id,
            Some(("x-forgejo-signature", &signature)),
            sent[0].body.clone()
        )
        .await,
        200
    );
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 3);
    assert_eq!(all_jobs(&world).await.len(), 1);
    let asked = world.forge.comments_by(WIDGETS, 1, "mira")[0].id;
    until("it was seen", async || {
        (!world.forge.reactions(asked).is_empty()).then_some(())
    })
    .await;
    assert_eq!(world.forge.reactions(asked).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_by_the_time_we_look_starts_nothing() {
    let world = world().await;
    let gone = lost(&world, "mira", "@pi triage").await;
    let id = world.forge.comments_by(WIDGETS, 1, "mira")[0].id;
    world.forge.delete_comment(id, "mira");
    world.all_decided().await;
    assert_eq!(lie(&world, &gone, "comment-gone", |_| {}).await, ["object-gone"]);

    let orphan = lost(&world, "mira", "@pi triage").await;
    world.forge.delete_repository(WIDGETS);
    assert_eq!(
        lie(&world, &orphan, "repository-gone", |_| {}).await,
        ["repository-gone"]
    );
    assert!(all_jobs(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_may_change_and_numbers_count() {
    let world = world().await;
    // A person renamed after writing is still the one who may.
    let hers = lost(&world, "mira", "@pi triage").await;
    world.forge.rename_user("mira", "mira-lind");
    assert_eq!(lie(&world, &hers, "renamed-user", |_| {}).await, ["fired"]);

    // Whoever takes the free name has none of her rights.
    world.forge.user("mira");
    let hook = world
        .forge
        .hook(WIDGETS, &format!("{}/hooks/lab", world.hooks), HOOK_SECRET);
    assert_eq!(comment(&world, "mira", "@pi triage").await, ["permission-too-low"]);

    // A repository is found by its number; the job knows the new name.
    world.forge.remove_hook(hook);
    let there = lost(&world, "nils", "@pi triage").await;
    world.forge.rename_repository(WIDGETS, "gadgets");
    let verdict = lie(&world, &there, "renamed-repository", |_| {}).await;
    assert!(verdict == ["fired"] || verdict == ["joined"], "{verdict:?}");
    let names = world
        .count("SELECT count(*) FROM repositories WHERE name = 'gadgets'")
        .await;
    assert_eq!(names, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_counts_when_it_is_the_authors_and_adds_the_phrase() {
    let world = world().await;
    world.forge.allow(WIDGETS, "olga", Access::Admin);
    let id = world.forge.comment(WIDGETS, 1, "mira", "look at this");
    assert_eq!(newest(&world).await, ["phrase-absent"]);
    world.forge.backdate_comment(id, Duration::from_secs(60));
    world.forge.edit_comment(id, "nils", "look at this, @pi");
    assert_eq!(newest(&world).await, ["not-the-authors-edit"]);
    assert!(all_jobs(&world).await.is_empty());

    let id = world.forge.comment(WIDGETS, 1, "mira", "and at this");
    world.forge.backdate_comment(id, Duration::from_secs(60));
    world.forge.edit_comment(id, "mira", "and at this, @pi");
    assert_eq!(newest(&world).await, ["fired"]);
    world.forge.edit_comment(id, "mira", "and at this, @pi, please");
    assert_eq!(newest(&world).await, ["phrase-not-new"]);
    assert_eq!(all_jobs(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_no_can_be_explained_and_each_refusal_carries_its_meaning() {
    let world = world().await;
    world.forge.test_hook(world.hook);
    assert_eq!(newest(&world).await, ["test-delivery"]);
    world.forge.comment(WIDGETS, 1, "sol", "@pi triage");
    let sent = world.forge.delivered().await.pop().expect("it was sent");
    let told = explained(&world, &sent.id).await;
    let decision = &told.events[0].decisions[0];
    assert_eq!(
        (decision.verdict, decision.reason),
        (Verdict::No, Some(Reason::PermissionTooLow))
    );
    assert!(
        decision.detail.contains("none") || decision.detail.contains("read"),
        "{}",
        decision.detail
    );
    assert!(!Reason::PermissionTooLow.meaning().is_empty() && !Reason::PermissionTooLow.fix().is_empty());
    assert_eq!(told.events[0].actor.as_deref(), Some("sol"));
}
