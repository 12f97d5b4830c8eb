//! "Yes" only to what is committed; "later" when it cannot be.

use std::time::{Duration, Instant};

use receiver::Settings;
use testkit::postgres::Scratch;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{BODY, Edge, answer, head, read_all, sign};

#[tokio::test]
async fn nothing_is_answered_with_yes_before_it_is_committed() {
    let edge = Edge::with(Settings {
        store_timeout: Duration::from_secs(20),
        ..Settings::default()
    })
    .await;
    let mut lock = edge.queue.pool().begin().await.unwrap();
    sqlx::query("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let mut answering = tokio::spawn(answer(edge.delivery("d-1", BODY)));

    // It stands before the lock, not before the socket …
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'deliveries'::regclass AND NOT granted";
    let patience = Instant::now() + Duration::from_secs(10);
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut *lock).await.unwrap() == 0 {
        assert!(Instant::now() < patience, "the delivery never came to the table");
        tokio::task::yield_now().await;
    }
    // … and for as long as it does, nobody is told anything.
    let early = tokio::time::timeout(Duration::from_millis(500), &mut answering).await;
    assert!(early.is_err(), "answered before the commit: {early:?}");

    lock.commit().await.unwrap();
    assert_eq!(answering.await.unwrap().0, 202);
    assert_eq!(edge.stored().await, 1);
}

#[tokio::test]
async fn a_delivery_that_postgresql_does_not_take_in_time_is_503_and_can_be_sent_again() {
    let edge = Edge::with(Settings {
        store_timeout: Duration::from_millis(300),
        ..Settings::default()
    })
    .await;
    let mut lock = edge.queue.pool().begin().await.unwrap();
    sqlx::query("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let response = edge.delivery("d-1", BODY).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    lock.commit().await.unwrap();
    let (status, _) = answer(edge.delivery("d-1", BODY)).await;
    assert!(status == 202 || status == 200, "{status}");
    assert_eq!(edge.stored().await, 1);
}

#[tokio::test]
async fn without_postgresql_the_answer_is_503_within_seconds_and_with_it_again_202() {
    let scratch = Scratch::private().await;
    let mut edge = Edge::over(&scratch.database().await.url, Settings::default()).await;
    assert_eq!(answer(edge.client.get(edge.url("/ready"))).await.0, 200);
    assert_eq!(answer(edge.delivery("before", BODY)).await.0, 202);

    scratch.stop().await;
    for nth in 0..3 {
        let started = Instant::now();
        let (status, json) = answer(edge.delivery(&format!("away-{nth}"), BODY)).await;
        assert_eq!((status, json["error"].as_str()), (503, Some("not-stored")));
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    }
    let (status, json) = answer(edge.client.get(edge.url("/ready"))).await;
    assert_eq!((status, json["error"].as_str()), (503, Some("not-ready")));
    assert_eq!(
        answer(edge.client.get(edge.url("/health"))).await.0,
        200,
        "the process itself is well"
    );
    // What needs no database is answered as ever.
    assert_eq!(answer(edge.client.get(edge.url("/hooks/codeberg"))).await.0, 405);

    scratch.resume().await;
    let patience = Instant::now() + Duration::from_secs(15);
    while answer(edge.delivery("after", BODY)).await.0 >= 500 {
        assert!(Instant::now() < patience, "it did not come back");
    }
    assert!(edge.stored().await >= 2);
    edge.stop();
}

#[tokio::test]
async fn an_open_request_is_answered_before_the_receiver_stops() {
    let mut edge = Edge::start().await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let request = format!("{}\r\n", head(Some(BODY.len()), "d-1", &sign("new-canary", BODY)));
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.write_all(&BODY[..10]).await.unwrap();
    // The head was read when a second connection was served after it.
    assert_eq!(answer(edge.delivery("d-0", BODY)).await.0, 202);
    edge.stop();
    stream.write_all(&BODY[10..]).await.unwrap();
    let text = read_all(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 202 "), "{text}");
    drop(stream);
    let client = std::mem::take(&mut edge.client);
    drop(client);
    tokio::time::timeout(Duration::from_secs(12), &mut edge.serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(
        TcpStream::connect(edge.address).await.is_err(),
        "nobody listens any more"
    );
}
