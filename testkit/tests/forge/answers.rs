//! The stub forge answers, refuses and sends as a real Forgejo does.

use crate::common::{Receiver, api, get, post, read, signature};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use testkit::forge::{Access, DELIVER_TIMEOUT, Encoding, Fault, Scope, Sent, StubForge};

const WIDGETS: &str = "lab/widgets";

#[tokio::test]
async fn a_bot_that_may_write_may_not_ask_what_others_may() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);
    let admin = forge.token("nils", &[Scope::ReadRepository]);
    let ask = |who: &str| format!("/repos/lab/widgets/collaborators/{who}/permission");

    assert_eq!(get(&forge, &ask("mira"), Some(&bot)).await.status, 403);
    assert_eq!(
        get(&forge, &ask("pi-bot"), Some(&bot)).await.json["permission"],
        "write",
        "about itself it may"
    );
    assert_eq!(get(&forge, &ask("mira"), None).await.status, 401);
    assert_eq!(get(&forge, &ask("mira"), Some("not-a-token")).await.status, 401);
    let expected = [
        ("olga", "owner"),
        ("nils", "admin"),
        ("MIRA", "write"),
        ("ravi", "read"),
        ("sol", "read"),
    ];
    for (who, word) in expected {
        let answer = get(&forge, &ask(who), Some(&admin)).await;
        assert_eq!(
            (answer.status, &answer.json["permission"]),
            (200, &json!(word)),
            "{who}"
        );
    }
    assert_eq!(get(&forge, &ask("mira"), Some(&admin)).await.json["user"]["id"], 3);
    assert_eq!(get(&forge, &ask("nobody"), Some(&admin)).await.status, 404);
    assert_eq!(
        get(&forge, &ask("lab"), Some(&admin)).await.json["permission"],
        "owner",
        "it is no person, though"
    );

    forge.make_private(WIDGETS);
    assert_eq!(get(&forge, &ask("sol"), Some(&admin)).await.json["permission"], "none");
}

#[tokio::test]
async fn a_token_is_only_for_what_it_was_made_for() {
    let forge = StubForge::lab();
    let reads = forge.token("pi-bot", &[Scope::ReadRepository]);

    assert_eq!(get(&forge, "/version", None).await.status, 200);
    assert_eq!(get(&forge, "/user", Some(&reads)).await.status, 403);
    assert_eq!(get(&forge, "/users/mira", Some(&reads)).await.status, 403);
    let comment = json!({ "body": "hello" });
    assert_eq!(
        post(&forge, "/repos/lab/widgets/issues/1/comments", &reads, &comment)
            .await
            .status,
        403
    );
    let bot = forge.token("pi-bot", &Scope::BOT);
    assert_eq!(get(&forge, "/user", Some(&bot)).await.json["id"], 7);
    forge.revoke_token(&bot);
    assert_eq!(get(&forge, "/user", Some(&bot)).await.status, 401);
}

#[tokio::test]
async fn a_renamed_repository_redirects_and_a_renamed_person_is_gone() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);

    forge.rename_repository(WIDGETS, "gadgets");
    forge.rename_user("mira", "mirabel");

    let moved = post(
        &forge,
        "/repos/lab/widgets/issues/1/comments",
        &bot,
        &json!({ "body": "hello" }),
    )
    .await;
    assert_eq!(moved.status, 301);
    assert_eq!(
        moved.location,
        format!("{}/repos/lab/gadgets/issues/1/comments", forge.api_url())
    );
    assert_eq!(
        get(&forge, "/repositories/1", Some(&bot)).await.json["full_name"],
        "lab/gadgets"
    );
    assert!(forge.comments("lab/gadgets", 1).is_empty(), "a redirect posts nothing");
    assert_eq!(get(&forge, "/users/mira", Some(&bot)).await.status, 404);
    assert_eq!(get(&forge, "/users/mirabel", Some(&bot)).await.json["id"], 3);
}

#[tokio::test]
async fn writing_is_refused_where_it_must_be() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);
    let (comments, hello) = ("/repos/lab/widgets/issues/1/comments", json!({ "body": "hello" }));

    assert_eq!(post(&forge, comments, &bot, &json!({ "body": " " })).await.status, 422);
    assert_eq!(
        post(&forge, "/repos/lab/widgets/issues/99/comments", &bot, &hello)
            .await
            .status,
        404
    );
    assert_eq!(
        post(
            &forge,
            "/repos/lab/widgets/issues",
            &bot,
            &json!({ "body": "no title" })
        )
        .await
        .status,
        422
    );
    forge.archive(WIDGETS);
    assert_eq!(post(&forge, comments, &bot, &hello).await.status, 423);
    assert_eq!(
        get(&forge, "/repos/lab/widgets", Some(&bot)).await.json["archived"],
        true
    );
    forge.delete_repository(WIDGETS);
    assert_eq!(post(&forge, comments, &bot, &hello).await.status, 404);
    assert_eq!(get(&forge, "/repositories/1", Some(&bot)).await.status, 404);
}

#[tokio::test]
async fn a_comment_is_written_read_back_edited_by_another_and_deleted() {
    let forge = StubForge::lab();
    let (bot, mira) = (forge.token("pi-bot", &Scope::BOT), forge.token("mira", &Scope::BOT));
    let ravi = forge.token("ravi", &Scope::BOT);

    let made = post(
        &forge,
        "/repos/lab/widgets/issues/1/comments",
        &bot,
        &json!({ "body": "an answer" }),
    )
    .await;
    assert_eq!(made.status, 201);
    let path = format!("/repos/lab/widgets/issues/comments/{}", made.json["id"]);
    let back = get(&forge, &path, Some(&bot)).await.json;
    assert_eq!((&back["body"], &back["user"]["id"]), (&json!("an answer"), &json!(7)));
    assert_eq!(back["issue_url"], format!("{}/lab/widgets/issues/1", forge.url()));

    let patch = async |token: &str| {
        api(
            &forge,
            reqwest::Method::PATCH,
            &path,
            Some(token),
            Some(&json!({ "body": "not ours any more" })),
        )
        .await
    };
    assert_eq!(patch(&ravi).await.status, 403);
    assert_eq!(patch(&mira).await.status, 200, "another writer may edit our text");
    let listed = get(&forge, "/repos/lab/widgets/issues/1/comments?limit=1", Some(&bot)).await;
    assert_eq!(
        (&listed.json[0]["body"], listed.total.as_str()),
        (&json!("not ours any more"), "1")
    );
    let other = forge.repository("lab/other", &[]);
    assert!(other > 1);
    assert_eq!(
        get(&forge, &path.replace("widgets", "other"), Some(&bot)).await.status,
        404
    );
    assert_eq!(
        api(&forge, reqwest::Method::DELETE, &path, Some(&bot), None)
            .await
            .status,
        204
    );
    assert_eq!(get(&forge, &path, Some(&bot)).await.status, 404);
}

#[tokio::test]
async fn the_list_of_an_issue_knows_no_limit_and_that_of_a_repository_has_pages() {
    let forge = StubForge::lab();
    for number in 0..60 {
        forge.comment(WIDGETS, 1, "sol", &format!("number {number}"));
    }

    let issue = get(&forge, "/repos/lab/widgets/issues/1/comments?limit=10&page=2", None).await;
    let all = get(&forge, "/repos/lab/widgets/issues/comments?limit=50&page=2", None).await;

    assert_eq!(issue.json.as_array().map(Vec::len), Some(60));
    assert_eq!(
        (all.json.as_array().map(Vec::len), all.total.as_str()),
        (Some(10), "60")
    );
    let later = get(
        &forge,
        "/repos/lab/widgets/issues/1/comments?since=2100-01-01T00:00:00Z",
        None,
    )
    .await;
    assert_eq!(later.json, json!([]));
}

#[tokio::test]
async fn a_reaction_is_201_then_200_and_tells_nobody() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "secret");
    let bot = forge.token("pi-bot", &Scope::BOT);
    let comment = forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let path = format!("/repos/lab/widgets/issues/comments/{comment}/reactions");

    let before = forge.delivered().await.len();
    for status in [201, 200] {
        assert_eq!(
            post(&forge, &path, &bot, &json!({ "content": "eyes" })).await.status,
            status
        );
    }
    assert_eq!(
        post(&forge, &path, &bot, &json!({ "content": "shrug" })).await.status,
        403
    );

    assert_eq!(forge.reactions(comment), [("pi-bot".to_owned(), "eyes".to_owned())]);
    assert_eq!(forge.delivered().await.len(), before);
}

#[tokio::test]
async fn a_comment_is_delivered_signed_over_its_raw_bytes() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "it-is-a-secret");

    forge.comment(WIDGETS, 1, "mira", "@pi triage this");
    forge.delivered().await;

    let (headers, body) = receiver.one();
    let expected = signature("it-is-a-secret", &body);
    for name in ["x-forgejo-signature", "x-gitea-signature", "x-gogs-signature"] {
        assert_eq!(headers[name], expected);
    }
    assert_eq!(headers["x-hub-signature-256"], format!("sha256={expected}"));
    assert_eq!(headers["x-forgejo-event"], "issue_comment");
    assert_eq!(headers["x-forgejo-delivery"], headers["x-github-delivery"]);
    assert_eq!(headers["content-type"], "application/json");
    let json = read(&body);
    assert_eq!((&json["action"], &json["is_pull"]), (&json!("created"), &json!(false)));
    assert_eq!(json["comment"]["body"], "@pi triage this");
    assert_eq!(
        (&json["sender"]["id"], &json["repository"]["full_name"]),
        (&json!(3), &json!(WIDGETS))
    );
}

#[tokio::test]
async fn a_delivery_has_the_fields_of_a_captured_one() {
    let Some(captured) = testkit::need::shared("payloads/forgejo-captured") else {
        return;
    };
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "secret");
    forge.commit(WIDGETS, "fix/turn", &[], "Turn right");
    forge.delivered().await;
    let compare = async |file: &str| {
        forge.delivered().await;
        let (_, ours) = receiver.last();
        let theirs = std::fs::read(captured.join(file)).expect("the captured file");
        let (ours, theirs) = (shape(&read(&ours)), shape(&read(&theirs)));
        let odd: Vec<_> = ours.symmetric_difference(&theirs).collect();
        assert!(odd.is_empty(), "{file}: {odd:?}");
    };

    let comment = forge.comment(WIDGETS, 1, "mira", "@pi triage this, please");
    compare("05-comment-by-writer.body").await;
    forge.edit_comment(comment, "mira", "@pi triage this now");
    compare("08-comment-edited.body").await;
    forge.issue(WIDGETS, "sol", "Another", "one");
    compare("02-issue-opened.body").await;
    let pull = forge.pull_request(WIDGETS, "mira", "fix/turn", "Turn right", "Fixes #1");
    compare("27-pull-request-opened.body").await;
    forge.comment(WIDGETS, pull, "mira", "@pi look");
    compare("28-pull-request-comment.body").await;
}

/// The paths of all fields, arrays and emptiness aside.
fn shape(value: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        into.insert(path.to_owned());
        if let Value::Object(fields) = value {
            for (name, value) in fields {
                walk(value, &format!("{path}/{name}"), into);
            }
        }
    }
    let mut paths = BTreeSet::new();
    walk(value, "", &mut paths);
    paths
}

#[tokio::test]
async fn two_hooks_and_a_redelivery_tell_the_same_under_other_ids() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "one");
    forge.organisation_hook("lab", &receiver.url, "two");
    forge.comment(WIDGETS, 1, "mira", "@pi triage");
    let first = forge.delivered().await[0].id.clone();

    let again = forge.redeliver(&first);
    let all = forge.delivered().await;

    assert_ne!(first, again);
    assert_eq!(all.len(), 3);
    assert_eq!(receiver.all().len(), 3);
    assert_eq!(all[0].body, all[2].body);
    assert_eq!(receiver.last().0["x-forgejo-delivery"], again);
    assert_eq!(all[0].body, all[1].body);
    assert_ne!(
        receiver.all()[0].0["x-hub-signature-256"],
        receiver.all()[1].0["x-hub-signature-256"]
    );
}

#[tokio::test]
async fn our_own_comment_comes_back_to_us() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "secret");
    let bot = forge.token("pi-bot", &Scope::BOT);

    post(
        &forge,
        "/repos/lab/widgets/issues/1/comments",
        &bot,
        &json!({ "body": "an answer" }),
    )
    .await;
    forge.delivered().await;

    assert_eq!(read(&receiver.one().1)["sender"]["login"], "pi-bot");
}

#[tokio::test]
async fn a_hook_can_be_unsigned_form_encoded_and_tested() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    let hook = forge.hook(WIDGETS, &receiver.url, "");
    forge.comment(WIDGETS, 1, "mira", "one");
    forge.delivered().await;
    assert_eq!(receiver.last().0["x-hub-signature-256"], "sha256=");
    assert_eq!(receiver.last().0["x-forgejo-signature"], "");

    forge.configure_hook(hook, Encoding::Form, Some("Bearer of a secret"));
    forge.comment(WIDGETS, 1, "mira", "two & three");
    forge.delivered().await;
    let (headers, body) = receiver.last();
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(headers["authorization"], "Bearer of a secret");
    assert!(body.starts_with(b"payload=%7B"));

    forge.configure_hook(hook, Encoding::Json, None);
    forge.test_hook(hook);
    forge.delivered().await;
    let (headers, body) = receiver.last();
    assert_eq!(
        (
            &*headers["x-forgejo-event"],
            read(&body)["before"] == read(&body)["after"]
        ),
        ("push", true)
    );
}

#[tokio::test]
async fn deliveries_go_out_one_at_a_time_and_never_again() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    receiver.answer(500);
    forge.hook(WIDGETS, &receiver.url, "secret");
    for number in 0..5 {
        forge.comment(WIDGETS, 1, "mira", &format!("number {number}"));
    }

    let all = forge.delivered().await;

    assert!(all.iter().all(|delivery| delivery.outcome == Sent::Answered(500)));
    assert_eq!((receiver.all().len(), receiver.most_at_once()), (5, 1));
    let told: Vec<String> = receiver
        .all()
        .iter()
        .map(|(_, body)| read(body)["comment"]["body"].to_string())
        .collect();
    assert_eq!(
        told,
        (0..5).map(|number| format!("\"number {number}\"")).collect::<Vec<_>>(),
        "in order"
    );
}

#[tokio::test]
async fn a_receiver_that_is_silent_or_away_loses_the_delivery() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    receiver.be_silent();
    forge.hook(WIDGETS, &receiver.url, "secret");
    let (started, away) = (Instant::now(), "http://127.0.0.1:9/hooks/x");
    forge.comment(WIDGETS, 1, "mira", "to the silent one");

    assert_eq!(forge.delivered().await[0].outcome, Sent::Lost);
    assert!(
        started.elapsed() >= DELIVER_TIMEOUT - Duration::from_millis(50),
        "it waits its five seconds"
    );

    forge.remove_hook(forge.deliveries()[0].hook);
    forge.hook(WIDGETS, away, "secret");
    forge.comment(WIDGETS, 1, "mira", "to nobody");
    assert_eq!(forge.delivered().await[1].outcome, Sent::Lost);
}

#[tokio::test]
async fn a_label_delivery_does_not_say_which_label_but_the_timeline_does() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    let label = forge.label(WIDGETS, "bug");
    forge.hook(WIDGETS, &receiver.url, "secret");
    let mira = forge.token("mira", &Scope::BOT);
    let path = "/repos/lab/widgets/issues/1/labels";

    let answer = post(&forge, path, &mira, &json!({ "labels": ["bug", "no-such", 999] })).await;
    assert_eq!(
        (answer.status, answer.json.as_array().map(Vec::len)),
        (200, Some(1)),
        "unknown ones are ignored"
    );
    post(&forge, path, &mira, &json!({ "labels": [label] })).await;
    forge.delivered().await;

    assert_eq!(
        receiver.all().len(),
        2,
        "a label that was there already tells all the same"
    );
    assert_eq!(receiver.last().0["x-forgejo-event-type"], "issue_label");
    assert_eq!(read(&receiver.last().1)["action"], "label_updated");
    let timeline = get(&forge, "/repos/lab/widgets/issues/1/timeline", Some(&mira))
        .await
        .json;
    assert_eq!(timeline.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&timeline[0]["label"]["name"], &timeline[0]["body"]),
        (&json!("bug"), &json!("1"))
    );
    let reader = forge.token("ravi", &Scope::BOT);
    assert_eq!(
        post(&forge, path, &reader, &json!({ "labels": [label] })).await.status,
        403
    );
}

#[tokio::test]
async fn what_goes_wrong_goes_wrong_where_and_as_often_as_asked() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);
    let comments = "/repos/lab/widgets/issues/1/comments";
    let write = async || {
        api(
            &forge,
            reqwest::Method::POST,
            comments,
            Some(&bot),
            Some(&json!({ "body": "x" })),
        )
        .await
    };

    forge.fault(Fault::lose_the_answer().on("POST", "/comments").times(1));
    assert_eq!(write().await.status, 0, "no answer came");
    assert_eq!(forge.comments(WIDGETS, 1).len(), 1, "and yet it was performed");
    forge.fault(Fault::cut().on("POST", "/comments").times(1));
    assert_eq!(write().await.status, 0);
    assert_eq!(forge.comments(WIDGETS, 1).len(), 1, "this one was not");
    forge.fault(Fault::forbidden());
    assert_eq!(write().await.status, 403);
    assert_eq!(get(&forge, "/version", None).await.status, 403);
    forge.heal();
    forge.fault(Fault::page(502).at("/issues"));
    assert_eq!(
        (write().await.status, get(&forge, "/version", None).await.status),
        (502, 200)
    );
    forge.heal();
    forge.fault(Fault::hang().times(1));
    let hung = tokio::time::timeout(Duration::from_millis(100), write()).await;
    assert!(hung.is_err());
    let started = Instant::now();
    forge.fault(Fault::slow(Duration::from_millis(80)).times(1));
    assert_eq!(write().await.status, 201);
    assert!(started.elapsed() >= Duration::from_millis(80));
}

#[tokio::test]
async fn a_forge_that_is_down_refuses_and_comes_back_with_everything() {
    let forge = StubForge::lab();

    forge.down();
    assert_eq!(get(&forge, "/version", None).await.status, 0);
    forge.up();

    assert_eq!(get(&forge, "/repos/lab/widgets/issues/1", None).await.json["number"], 1);
}

#[tokio::test]
async fn calls_are_written_down_with_who_made_them() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);

    post(
        &forge,
        "/repos/lab/widgets/issues/1/comments",
        &bot,
        &json!({ "body": "x" }),
    )
    .await;

    let calls = forge.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (calls[0].method.as_str(), calls[0].who.as_deref(), calls[0].status),
        ("POST", Some("pi-bot"), Some(201))
    );
    assert_eq!(calls[0].path, "/api/v1/repos/lab/widgets/issues/1/comments");
    assert_eq!(calls[0].body, r#"{"body":"x"}"#);
    forge.forget_calls();
    assert!(forge.calls().is_empty());
}

#[tokio::test]
async fn hooks_are_for_administrators_and_keep_their_secret() {
    let forge = StubForge::lab();
    let (bot, nils) = (forge.token("pi-bot", &Scope::BOT), forge.token("nils", &Scope::BOT));
    let hook =
        json!({ "type": "forgejo", "active": true, "config": { "url": "http://127.0.0.1:9/", "secret": "s3cret" } });

    assert_eq!(post(&forge, "/repos/lab/widgets/hooks", &bot, &hook).await.status, 403);
    let made = post(&forge, "/repos/lab/widgets/hooks", &nils, &hook).await;

    assert_eq!(made.status, 201);
    let listed = get(&forge, "/repos/lab/widgets/hooks", Some(&nils)).await;
    assert!(!listed.json.to_string().contains("s3cret"));
    assert_eq!(
        post(
            &forge,
            &format!("/repos/lab/widgets/hooks/{}/tests", made.json["id"]),
            &nils,
            &json!({})
        )
        .await
        .status,
        204
    );
}

#[tokio::test]
async fn branches_and_pull_requests_show_real_commits() {
    let forge = StubForge::lab();
    let bot = forge.token("pi-bot", &Scope::BOT);
    let head = forge.commit(
        WIDGETS,
        "fix/turn",
        &[testkit::forge::File::text("NEWS", "right is right")],
        "Turn right",
    );
    let number = forge.pull_request(WIDGETS, "mira", "fix/turn", "Turn right", "Fixes #1");

    let main = get(&forge, "/repos/lab/widgets/branches/main", Some(&bot)).await.json;
    let pull = get(&forge, &format!("/repos/lab/widgets/pulls/{number}"), Some(&bot))
        .await
        .json;

    assert_eq!(
        main["commit"]["id"].as_str().map(str::to_owned),
        forge.head(WIDGETS, "main")
    );
    assert_eq!(main["user_can_push"], true);
    assert_eq!(
        (&pull["head"]["sha"], &pull["base"]["sha"]),
        (&json!(head), &main["commit"]["id"])
    );
    assert_eq!(
        get(&forge, "/repos/lab/widgets/branches/fix/turn", Some(&bot))
            .await
            .json["commit"]["id"],
        head
    );
    assert_eq!(
        get(&forge, "/repos/lab/widgets/pulls/1", Some(&bot)).await.status,
        404,
        "an issue is no pull request"
    );
    assert_eq!(
        get(&forge, "/repos/lab/widgets/branches/none", Some(&bot)).await.status,
        404
    );
    forge.allow(WIDGETS, "pi-bot", Access::None);
    assert_eq!(
        get(&forge, "/repos/lab/widgets/branches/main", Some(&bot)).await.json["user_can_push"],
        false
    );
}
