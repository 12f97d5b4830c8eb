//! What the edge writes into its log.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::support::{Edge, answer, sign};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_payload_no_header_and_no_secret_reaches_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let collector = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // The test and the receiver share this one thread; the tests beside it have threads of their own.
    let _collecting = tracing::subscriber::set_default(collector);

    let edge = Edge::start().await;
    let body = br#"{"secret":"new-canary","comment":{"body":"payload-canary"}}"#;
    let full = |id: &str| edge.delivery(id, body).header("authorization", "Bearer auth-canary");
    assert_eq!(answer(full("d-1")).await.0, 202);
    assert_eq!(answer(full("d-1")).await.0, 200);
    assert_eq!(answer(full("d-2").header("x-forgejo-signature", "again")).await.0, 401);
    assert_eq!(answer(edge.client.get(edge.url("/hooks/codeberg"))).await.0, 405);
    edge.queue.pool().close().await;
    assert_eq!(answer(full("d-3")).await.0, 503);

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    // The client and the driver of this test log into the same collector: only our own lines count.
    let ours: Vec<&str> = text.lines().filter(|line| line.contains("receiver")).collect();
    assert!(ours.iter().any(|line| line.contains("could not be stored")), "{ours:?}");
    for canary in [
        "payload-canary",
        "new-canary",
        "old-canary",
        "auth-canary",
        &sign("new-canary", body),
    ] {
        assert!(!ours.iter().any(|line| line.contains(canary)), "{canary} in the log");
    }
}
