//! The two sockets: who may speak, the control conversation, and a door that is made anew.

use crate::world::{Control, World, openai_text};
use contract::{ApiShape, StopReason};
use gateway::{Door, DoorEvent, Socket};

const API: ApiShape = ApiShape::OpenaiCompletions;

fn usage() -> Option<serde_json::Value> {
    Some(serde_json::json!({ "prompt_tokens": 100, "completion_tokens": 10 }))
}

async fn open() -> (World, Control) {
    World::new(API, |_| openai_text("hi", usage())).await
}

#[tokio::test]
async fn only_the_containers_first_process_is_served_on_either_socket() {
    let world = World::shut(API, |_| openai_text("hi", usage()), |_| {}).await;
    world.door.expect_pid(1);

    let reply = world.ask(&world.good()).await;
    let mut control = Control::connect(&world.dir).await;
    control
        .say(r#"{"type":"hello","job":7,"attempt":1,"contract":1}"#)
        .await;

    assert_eq!(reply.status, 0, "{reply:?}");
    assert_eq!(control.hear().await, None);
    let own = i32::try_from(std::process::id()).unwrap();
    for socket in [Socket::Model, Socket::Control] {
        let refused = DoorEvent::ConnectionRefused {
            socket,
            pid: Some(own),
            why: "not-the-runner".into(),
        };
        world.books.wait_for("refusal", |event| *event == refused).await;
    }
    assert_eq!(world.provider.seen().len(), 0);
}

#[tokio::test]
async fn a_connection_that_is_early_waits_for_the_process_id_but_not_for_ever() {
    let world = World::shut(API, |_| openai_text("hi", usage()), |_| {}).await;
    let mut early = Control::connect(&world.dir).await;
    early.say(r#"{"type":"hello","job":7,"attempt":1,"contract":1}"#).await;
    world.door.expect_pid(i32::try_from(std::process::id()).unwrap());
    assert_eq!(early.hear().await.as_deref(), Some(r#"{"type":"welcome"}"#));

    let never = World::shut(API, |_| Vec::new(), |_| {}).await;
    let mut late = Control::connect(&never.dir).await;
    assert_eq!(late.hear().await, None);
    let is_it =
        |event: &DoorEvent| matches!(event, DoorEvent::ConnectionRefused { why, .. } if why == "runner-unknown");
    never.books.wait_for("refusal", is_it).await;
}

#[tokio::test]
async fn a_second_control_connection_is_refused_while_the_first_lives() {
    let (world, mut first) = open().await;
    let mut second = Control::connect(&world.dir).await;
    second.say(r#"{"type":"hello","job":7,"attempt":1,"contract":1}"#).await;
    assert_eq!(second.hear().await, None);
    let is_it =
        |event: &DoorEvent| matches!(event, DoorEvent::ConnectionRefused { why, .. } if why == "second-control");
    world.books.wait_for("refusal", is_it).await;

    first
        .say(r#"{"type":"propose","id":"p1","tool":"forge_comment","arguments":{"body":"x"}}"#)
        .await;
    assert_eq!(
        first.hear().await.as_deref(),
        Some(r#"{"type":"proposal","id":"p1","verdict":"accepted"}"#)
    );
    drop(first);
    world
        .books
        .wait_for("close", |event| *event == DoorEvent::ControlClosed)
        .await;
    world.control().await;
}

#[tokio::test]
async fn a_hello_of_another_job_attempt_or_contract_is_not_welcomed() {
    let (world, control) = open().await;
    drop(control);
    world
        .books
        .wait_for("close", |event| *event == DoorEvent::ControlClosed)
        .await;
    for (line, why) in [
        (r#"{"type":"hello","job":8,"attempt":1,"contract":1}"#, "another-job"),
        (r#"{"type":"hello","job":7,"attempt":2,"contract":1}"#, "another-job"),
        (
            r#"{"type":"hello","job":7,"attempt":1,"contract":9}"#,
            "contract-version",
        ),
        (r#"{"type":"heartbeat"}"#, "hello-missing"),
        (
            r#"{"type":"hello","job":7,"attempt":1,"contract":1,"job":7}"#,
            "control-line",
        ),
        ("hello", "control-line"),
    ] {
        let mut control = Control::connect(&world.dir).await;
        control.say(line).await;
        assert_eq!(control.hear().await, None, "{line}");
        let is_it = |event: &DoorEvent| matches!(event, DoorEvent::ConnectionRefused { why: said, .. } if said == why);
        world.books.wait_for(why, is_it).await;
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_ends_the_control_connection() {
    let (world, mut control) = open().await;
    control
        .say(&format!(
            "{{\"type\":\"heartbeat\",\"x\":\"{}\"}}",
            "a".repeat(contract::limits::CONTROL_LINE)
        ))
        .await;
    assert_eq!(control.hear().await, None);
    let is_it =
        |event: &DoorEvent| matches!(event, DoorEvent::ConnectionRefused { why, .. } if why == "control-line-length");
    world.books.wait_for("refusal", is_it).await;
}

#[tokio::test]
async fn a_proposal_reaches_the_worker_once_and_its_answer_the_runner() {
    let (world, mut control) = open().await;
    let line = r#"{"type":"propose","id":"p-1","tool":"forge_comment","arguments":{"body":"It is the cache."}}"#;
    for _ in 0..2 {
        control.say(line).await;
        assert_eq!(
            control.hear().await.as_deref(),
            Some(r#"{"type":"proposal","id":"p-1","verdict":"accepted"}"#)
        );
    }
    assert_eq!(world.books.proposals().len(), 1);

    control.say(&line.replace("p-1", "p-2")).await;
    let refused = r#"{"type":"proposal","id":"p-2","verdict":"refused","reason":"one comment only"}"#;
    assert_eq!(control.hear().await.as_deref(), Some(refused));
    control
        .say(&line.replace("p-1", "p-3").replace("forge_comment", "forge_merge"))
        .await;
    assert!(
        control
            .hear()
            .await
            .unwrap()
            .contains("there is no proposing tool of that name")
    );
    control.say(&line.replace("p-1", "p 4")).await;
    assert_eq!(control.hear().await, None);
}

#[tokio::test]
async fn a_silence_of_the_runner_is_said_once_and_a_heartbeat_ends_it() {
    let (world, mut control) = open().await;
    let silent = |event: &DoorEvent| matches!(event, DoorEvent::ControlSilent { .. });
    world.books.wait_for("silence", silent).await;
    let before = world.door.heard().unwrap();
    control.say(r#"{"type":"heartbeat"}"#).await;
    for _ in 0..500 {
        if world.door.heard().unwrap() < before {
            break;
        }
        tokio::task::yield_now().await;
    }
    let again = async {
        while world.books.events().iter().filter(|event| silent(event)).count() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), again)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_runner_is_told_to_stop_at_once_or_as_soon_as_it_connects() {
    let (world, mut control) = open().await;
    world.door.stop(StopReason::StoppedByPerson);
    world.door.stop(StopReason::TimeCap);
    assert_eq!(
        control.hear().await.as_deref(),
        Some(r#"{"type":"stop","reason":"stopped-by-person"}"#)
    );
    assert_eq!(world.ask(&world.good()).await.status, 403);

    drop(control);
    world
        .books
        .wait_for("close", |event| *event == DoorEvent::ControlClosed)
        .await;
    let mut again = world.control().await;
    assert_eq!(
        again.hear().await.as_deref(),
        Some(r#"{"type":"stop","reason":"stopped-by-person"}"#)
    );
    assert_eq!(world.provider.seen().len(), 0);
}

#[tokio::test]
async fn without_a_control_connection_no_model_request_goes_through() {
    let (world, control) = open().await;
    drop(control);
    world
        .books
        .wait_for("close", |event| *event == DoorEvent::ControlClosed)
        .await;
    assert_eq!(world.ask(&world.good()).await.status, 503);
    assert_eq!(world.provider.seen().len(), 0);
}

#[tokio::test]
async fn a_door_made_anew_on_the_same_directory_serves_the_runner_that_was_there_before() {
    let (world, control) = open().await;
    let second = Door::open(world.spec.clone(), world.books.clone()).await.unwrap();
    drop(control);
    second.expect_pid(i32::try_from(std::process::id()).unwrap());
    world.control().await;
    assert_eq!(
        world.ask(&world.good()).await.status,
        503,
        "its control connection is gone again"
    );
    let _living = world.control().await;
    assert_eq!(world.ask(&world.good()).await.status, 200);
}

#[tokio::test]
async fn a_closed_door_has_handed_over_its_last_event_and_left_no_socket() {
    let (world, _control) = World::new(API, |_| vec![crate::world::Act::Hang]).await;
    let good = world.good();
    let (reply, ()) = tokio::join!(world.ask(&good), async {
        world
            .books
            .wait_for("request", |event| matches!(event, DoorEvent::RequestSent { .. }))
            .await;
        // `close` takes the door; the world keeps the rest.
    });
    assert_eq!(reply.status, 504);
    let World { door, books, dir, .. } = world;
    door.close().await;
    assert!(books.events().contains(&DoorEvent::ControlClosed));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
}
