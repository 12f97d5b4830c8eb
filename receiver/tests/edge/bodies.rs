//! Bodies that are too long, too short or too slow, and many of them at once.

use std::time::{Duration, Instant};

use receiver::Settings;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{BODY, Edge, answer, head, read_all, sign};

#[tokio::test]
async fn a_body_that_ends_before_its_time_is_400_and_not_stored() {
    let edge = Edge::start().await;
    let signature = sign("new-canary", BODY);
    let mut short = format!("{}\r\n", head(Some(BODY.len() + 10), "d-1", &signature)).into_bytes();
    short.extend_from_slice(BODY);
    let mut chunked = format!("{}\r\n20\r\n", head(None, "d-2", &signature)).into_bytes();
    chunked.extend_from_slice(&BODY[..5]);
    let no_hex = format!("{}\r\nnot-a-length\r\n", head(None, "d-3", &signature)).into_bytes();
    for request in [short, chunked, no_hex] {
        let text = edge.raw(&request).await;
        assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
        assert!(text.contains("broken-body"), "{text}");
    }
    assert_eq!(edge.stored().await, 0);
}

#[tokio::test]
async fn thirty_megabytes_are_answered_with_413_that_the_sender_gets_to_read() {
    let edge = Edge::start().await;
    let large = vec![b'x'; 30 * 1024 * 1024];
    let (status, json) = answer(edge.delivery("d-1", &large)).await;
    assert_eq!(
        (status, json["error"].as_str()),
        (413, Some("too-large")),
        "with a length"
    );

    let signature = sign("new-canary", &large);
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    stream
        .write_all(format!("{}\r\n", head(None, "d-2", &signature)).as_bytes())
        .await
        .unwrap();
    for chunk in large.chunks(1024 * 1024) {
        stream
            .write_all(format!("{:x}\r\n", chunk.len()).as_bytes())
            .await
            .expect("it is still read");
        stream.write_all(chunk).await.expect("it is still read");
        stream.write_all(b"\r\n").await.expect("it is still read");
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let text = read_all(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 413 "), "without a length: {text}");
    assert!(text.to_lowercase().contains("connection: close"), "{text}");

    // One that waits for our word never gets to send it.
    let waiting = format!(
        "{}expect: 100-continue\r\n\r\n",
        head(Some(large.len()), "d-3", &signature)
    );
    let started = Instant::now();
    let text = edge.raw(waiting.as_bytes()).await;
    assert!(
        text.starts_with("HTTP/1.1 413 ") && started.elapsed() < Duration::from_secs(2),
        "{text}"
    );
    assert_eq!(edge.stored().await, 0);
}

#[tokio::test]
async fn a_body_just_under_the_limit_is_taken_whole() {
    let edge = Edge::start().await;
    let large = vec![b' '; 25 * 1024 * 1024];
    assert_eq!(answer(edge.delivery("d-1", &large)).await.0, 202);
    let length: i32 = sqlx::query_scalar("SELECT octet_length(body) FROM deliveries")
        .fetch_one(edge.queue.pool())
        .await
        .unwrap();
    assert_eq!(usize::try_from(length).unwrap(), large.len());
    let over = vec![b' '; 25 * 1024 * 1024 + 1];
    assert_eq!(answer(edge.delivery("d-2", &over)).await.0, 413);
}

#[tokio::test]
async fn a_refusal_is_readable_also_while_a_large_body_is_on_its_way() {
    let edge = Edge::start().await;
    let large = vec![b'x'; 8 * 1024 * 1024];
    let unknown = edge.client.post(edge.url("/hooks/nobody")).body(large.clone());
    assert_eq!(answer(unknown).await.0, 404);
    let form = edge
        .client
        .post(edge.url("/hooks/codeberg"))
        .header("content-type", "text/plain")
        .body(large);
    assert_eq!(answer(form).await.0, 415);
}

#[tokio::test]
async fn a_sender_that_dawdles_is_sent_away() {
    let edge = Edge::with(Settings {
        body_timeout: Duration::from_millis(300),
        ..Settings::default()
    })
    .await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let signature = sign("new-canary", BODY);
    let request = format!("{}\r\n{{", head(Some(BODY.len()), "d-1", &signature));
    stream.write_all(request.as_bytes()).await.unwrap();
    let text = read_all(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert_eq!(edge.stored().await, 0);
}

#[tokio::test]
async fn large_bodies_in_flight_are_limited_and_small_ones_pass_by() {
    let large = vec![b' '; 900 * 1024];
    let edge = Edge::with(Settings {
        max_body: 1024 * 1024,
        large_in_flight: 1024 * 1024,
        store_timeout: Duration::from_millis(400),
        ..Settings::default()
    })
    .await;
    let mut first = TcpStream::connect(edge.address).await.unwrap();
    let request = format!("{}\r\n", head(Some(large.len()), "d-1", &sign("new-canary", &large)));
    first.write_all(request.as_bytes()).await.unwrap();
    first.write_all(&large[..600 * 1024]).await.unwrap();

    // The first holds the room only once its head was read: ask until that is so.
    let mut nth = 1;
    loop {
        nth += 1;
        let (status, json) = answer(edge.delivery(&format!("d-{nth}"), &large)).await;
        if status == 503 {
            assert_eq!(json["error"], "too-many-large-bodies");
            break;
        }
        assert!(status == 202 && nth < 50, "{status} {json}");
    }
    assert_eq!(answer(edge.delivery("small", BODY)).await.0, 202);

    first.write_all(&large[600 * 1024..]).await.unwrap();
    first.shutdown().await.unwrap();
    let text = read_all(&mut first).await;
    assert!(text.starts_with("HTTP/1.1 202 "), "{text}");
    assert_eq!(answer(edge.delivery("after", &large)).await.0, 202);
}
