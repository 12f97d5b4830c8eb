//! Runs that a person asks for by hand are decided like deliveries: with a verdict and a reason.

use queue::RunRequest;
use triggers::Target;

use crate::world::{WIDGETS, World, only, word};

const MANUAL: &str = r#"{ "id": "nightly", "on": { "type": "manual" }, "run": { "kind": "forgejo", "flow": "tidy" } }"#;
const ISSUES_ONLY: &str = r#"{ "id": "issues", "on": { "type": "comment", "phrase": "@pi", "target": "pull_request" }, "run": { "kind": "forgejo", "flow": "tidy" } }"#;

fn request(trigger: &str, repository: &str, subject: Option<i64>) -> RunRequest {
    RunRequest {
        trigger: trigger.into(),
        forge: "codeberg".to_owned(),
        repository: repository.to_owned(),
        subject,
        subject_kind: None,
        who: "cli:olga".to_owned(),
    }
}

#[tokio::test]
async fn a_person_starts_a_trigger_by_hand_and_each_request_is_a_job() {
    let world = World::with_triggers(&[MANUAL]).await;
    for subject in [None, Some(1), Some(1)] {
        let id = world
            .queue
            .request_run(&request("nightly", WIDGETS, subject))
            .await
            .unwrap();
        world.decide().await;
        assert_eq!(word(&world.delivery(id).await), "fired");
    }
    assert_eq!(world.jobs().await, 3);
    assert_eq!(
        world.count("SELECT count(*) FROM outputs").await,
        0,
        "nothing is posted for it"
    );
}

#[tokio::test]
async fn a_request_that_names_something_unknown_says_what() {
    let world = World::with_triggers(&[MANUAL, ISSUES_ONLY]).await;
    let wrong_kind = RunRequest {
        subject_kind: Some(Target::PullRequest),
        ..request("nightly", WIDGETS, Some(1))
    };
    let cases = [
        (request("weekly", WIDGETS, None), "run-request-unknown"),
        (request("nightly", "lab", None), "run-request-unknown"),
        (request("nightly", "lab/nothing", None), "repository-gone"),
        (request("nightly", WIDGETS, Some(99)), "object-gone"),
        (request("issues", WIDGETS, Some(1)), "other-target"),
        (wrong_kind, "run-request-unknown"),
    ];
    for (request, expected) in cases {
        let id = world.queue.request_run(&request).await.unwrap();
        world.decide().await;
        let delivery = world.delivery(id).await;
        assert_eq!(word(&delivery), expected, "{request:?}: {:?}", only(&delivery));
    }
    assert_eq!(world.jobs().await, 0);
}
