//! A provider that plays a script byte by byte, so that it can break off, fall silent and lie.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// Request line and headers.
    pub head: String,
    pub body: String,
}

impl Request {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// One thing that the provider does.
#[derive(Debug, Clone)]
pub enum Act {
    Say(String),
    /// Says nothing more, and keeps the connection.
    Hang,
}

type Script = dyn Fn(&Request) -> Vec<Act> + Send + Sync;

pub struct Provider {
    port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
    serving: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    pub async fn start(script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let serving = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
                }
            }
        });
        Self { port, seen, serving }
    }

    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests that arrived.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, seen: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read(&mut stream).await else { return };
    seen.lock().unwrap().push(request.clone());
    for act in script(&request) {
        match act {
            Act::Say(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
                _ = stream.flush().await;
            }
            Act::Hang => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(Request {
                    head: head.to_owned(),
                    body: body.to_owned(),
                });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The beginning of a chunked answer.
pub fn head(status: &str, kind: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n{more}\r\n")
}

/// A piece of a chunked answer; an empty one ends it.
pub fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A whole answer in JSON.
pub fn json_answer(status: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![Act::Say(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))]
}

/// A good stream of chat completions; `usage` is the last chunk's, when there is one.
pub fn openai_text(text: &str, usage: Option<serde_json::Value>) -> Vec<Act> {
    let chunk = |choices: serde_json::Value, usage: Option<&serde_json::Value>| {
        let mut chunk = serde_json::json!({ "id": "c1", "object": "chat.completion.chunk", "choices": choices });
        if let Some(usage) = usage {
            chunk["usage"] = usage.clone();
        }
        chunked(&format!("data: {chunk}\n\n"))
    };
    let mut acts = vec![
        Act::Say(head("200 OK", "text/event-stream; charset=utf-8", "")),
        Act::Say(chunk(
            serde_json::json!([{ "index": 0, "delta": { "content": text } }]),
            None,
        )),
        Act::Say(chunk(
            serde_json::json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]),
            None,
        )),
    ];
    if let Some(usage) = usage {
        acts.push(Act::Say(chunk(serde_json::json!([]), Some(&usage))));
    }
    acts.push(Act::Say(chunked("data: [DONE]\n\n") + &chunked("")));
    acts
}

/// A good stream of messages; usage comes in two parts, as Anthropic sends it.
pub fn anthropic_text(text: &str, start: serde_json::Value, delta: serde_json::Value) -> Vec<Act> {
    let event = |kind: &str, mut data: serde_json::Value| {
        data["type"] = kind.into();
        Act::Say(chunked(&format!("event: {kind}\ndata: {data}\n\n")))
    };
    vec![
        Act::Say(head("200 OK", "text/event-stream", "")),
        event(
            "message_start",
            serde_json::json!({ "message": { "id": "m1", "usage": start } }),
        ),
        event(
            "content_block_start",
            serde_json::json!({ "index": 0, "content_block": { "type": "text", "text": "" } }),
        ),
        event(
            "content_block_delta",
            serde_json::json!({ "index": 0, "delta": { "type": "text_delta", "text": text } }),
        ),
        event("content_block_stop", serde_json::json!({ "index": 0 })),
        event(
            "message_delta",
            serde_json::json!({ "delta": { "stop_reason": "end_turn" }, "usage": delta }),
        ),
        event("message_stop", serde_json::json!({})),
        Act::Say(chunked("")),
    ]
}
