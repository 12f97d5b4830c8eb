//! What is inside the box: a runner on the control socket, and anything at all on the model socket.

use std::{path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// An answer of the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("{fault}: {}", self.body))
    }
}

/// A request with the headers that pi's SDK sends, and further ones.
pub fn post(path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:18080\r\nconnection: close\r\nauthorization: Bearer held-by-the-gateway\r\n\
         x-stainless-lang: js\r\nuser-agent: pi/1.6.0\r\naccept: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    [head.as_bytes(), b"\r\n", body.as_bytes()].concat()
}

/// Sends bytes and reads until the door closes.
pub async fn send(dir: &Path, bytes: &[u8]) -> Reply {
    let mut stream = UnixStream::connect(dir.join("model.sock")).await.unwrap();
    // The door may answer and close before it has read everything.
    _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    // A reset after the answer is an end like another.
    _ = timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("the door answers");
    read(&answer)
}

fn read(answer: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(answer).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Reply {
            status: 0,
            head: text.clone(),
            body: String::new(),
        };
    };
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = if head.contains("transfer-encoding: chunked") {
        dechunk(body)
    } else {
        body.to_owned()
    };
    Reply { status, head, body }
}

fn dechunk(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// A connection to the control socket.
pub struct Control {
    stream: BufReader<UnixStream>,
}

impl Control {
    pub async fn connect(dir: &Path) -> Self {
        Self {
            stream: BufReader::new(UnixStream::connect(dir.join("control.sock")).await.unwrap()),
        }
    }

    pub async fn say(&mut self, line: &str) {
        // Somebody who is turned away may find the connection closed.
        _ = self.stream.write_all(format!("{line}\n").as_bytes()).await;
    }

    /// The next line, or `None` when the door closed the connection.
    pub async fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.stream.read_line(&mut line))
            .await
            .expect("the door speaks or closes");
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }
}
