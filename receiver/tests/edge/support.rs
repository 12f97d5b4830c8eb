//! A receiver on a real socket over a real PostgreSQL, and a sender that may behave badly.

use std::net::SocketAddr;
use std::time::Duration;

use forges::ForgeKind;
use hmac::{Hmac, KeyInit, Mac};
use queue::{Connect, Queue};
use receiver::{HookDoor, Receiver, Settings};
use secrecy::SecretString;
use serde_json::Value;
use sha2::Sha256;
use testkit::postgres::Scratch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A body like any other.
pub(crate) const BODY: &[u8] = br#"{"action":"created","comment":{"body":"payload-canary"}}"#;

/// A running receiver with the hooks `codeberg` (Forgejo, two secrets) and `tea` (Gitea).
pub(crate) struct Edge {
    pub(crate) address: SocketAddr,
    pub(crate) queue: Queue,
    pub(crate) client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

pub(crate) fn doors() -> Vec<HookDoor> {
    let door = |name: &str, kind, secrets: &[&str]| HookDoor {
        name: name.to_owned(),
        kind,
        secrets: secrets.iter().map(|secret| SecretString::from(*secret)).collect(),
    };
    vec![
        door("codeberg", ForgeKind::Forgejo, &["new-canary", "old-canary"]),
        door("tea", ForgeKind::Gitea, &["tea-canary"]),
    ]
}

impl Edge {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::over(&Scratch::shared().await.database().await.url, settings).await
    }

    pub(crate) async fn over(url: &str, settings: Settings) -> Self {
        let connect = Connect {
            acquire_timeout: Duration::from_secs(3),
            ..Connect::new(url, "receiver")
        };
        let queue = Queue::connect(&connect).await.unwrap();
        queue.migrate().await.unwrap();
        let receiver = Receiver::new(queue.clone(), doors(), settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(receiver.serve(listener, async {
            let _ = stopped.await;
        }));
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        Self {
            address,
            queue,
            client,
            stop: Some(stop),
            serving,
        }
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A well-signed delivery, ready to be changed.
    pub(crate) fn delivery(&self, id: &str, body: &[u8]) -> reqwest::RequestBuilder {
        self.client
            .post(self.url("/hooks/codeberg"))
            .header("content-type", "application/json")
            .header("x-forgejo-event", "issue_comment")
            .header("x-forgejo-event-type", "issue_comment")
            .header("x-forgejo-delivery", id)
            .header("x-forgejo-signature", sign("new-canary", body))
            .body(body.to_vec())
    }

    /// How many deliveries are stored.
    pub(crate) async fn stored(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM deliveries")
            .fetch_one(self.queue.pool())
            .await
            .unwrap()
    }

    /// Everything that is stored of the deliveries, as one text.
    pub(crate) async fn rows(&self) -> String {
        sqlx::query_scalar(
            "SELECT coalesce(string_agg(concat_ws(' ', to_json(d), convert_from(d.body, 'UTF8')), E'\\n' ORDER BY d.id), '')
             FROM deliveries d",
        )
        .fetch_one(self.queue.pool())
        .await
        .unwrap()
    }

    /// Sends raw bytes, ends its side, and reads everything that comes back.
    pub(crate) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        read_all(&mut stream).await
    }
}

pub(crate) async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The head of a well-signed delivery over a socket, without the empty line at its end.
pub(crate) fn head(length: Option<usize>, id: &str, signature: &str) -> String {
    let length = length.map_or("transfer-encoding: chunked".to_owned(), |length| {
        format!("content-length: {length}")
    });
    format!(
        "POST /hooks/codeberg HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-forgejo-event: push\r\n\
         x-forgejo-delivery: {id}\r\nx-forgejo-signature: {signature}\r\n{length}\r\n"
    )
}

pub(crate) fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// Status and JSON of an answer.
pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer, and no reset");
    let status = response.status().as_u16();
    (status, response.json().await.expect("each answer is JSON"))
}
