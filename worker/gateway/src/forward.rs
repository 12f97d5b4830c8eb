//! One request on its way: sent, its answer passed on piece by piece, its usage read, its reservation settled.
//!
//! It runs as a task of its own, so that the settlement does not depend on whether the job still listens.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use contract::Micros;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use reqwest::Response as Answer;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    DoorEvent, ReservationId, Settlement,
    model::{Body, CheckedHead, respond},
    money::Meter,
    scan::Scanner,
    shared::Shared,
    texts::{self, Said},
    upstream::{ErrorClass, Sent},
    usage::UsageReader,
};

/// Tries to write a settlement; an unsettled reservation is charged in full, so giving up is safe.
const SETTLE_TRIES: u32 = 5;

/// A request whose reservation is committed.
pub(crate) struct Going {
    pub(crate) reservation: ReservationId,
    pub(crate) meter: Meter,
    pub(crate) head: CheckedHead,
    pub(crate) body: Vec<u8>,
    pub(crate) stream: bool,
    pub(crate) answer: oneshot::Sender<http::Response<Body>>,
    /// One of the job's places for requests at the same time.
    pub(crate) _turn: OwnedSemaphorePermit,
}

/// How it ended, and what it is charged.
struct End {
    word: &'static str,
    settlement: Settlement,
}

/// Sends the request, passes the answer on, settles.
pub(crate) async fn run(shared: Arc<Shared>, mut going: Going) {
    let reservation = going.reservation;
    let body = std::mem::take(&mut going.body);
    let sent = tokio::select! {
        () = shared.closing.cancelled() => None,
        () = going.answer.closed() => None,
        sent = shared.upstream.send(&going.head, body) => Some(sent),
    };
    let end = match sent {
        None => End {
            word: "abandoned",
            settlement: going.meter.keep(None),
        },
        Some(Sent::Unreachable) => {
            let settlement = going.meter.nothing(None);
            give_up(&shared, going, texts::UNREACHABLE, "unreachable", settlement)
        }
        Some(Sent::Lost) => {
            let settlement = going.meter.keep(None);
            give_up(&shared, going, texts::LOST, "lost", settlement)
        }
        Some(Sent::Silent) => {
            let settlement = going.meter.keep(None);
            give_up(&shared, going, texts::SILENT, "silent", settlement)
        }
        Some(Sent::Answer(answer)) if answer.status() == StatusCode::OK => pass_on(&shared, going, answer).await,
        Some(Sent::Answer(answer)) if answer.status().is_success() => {
            let settlement = going.meter.keep(Some(answer.status().as_u16()));
            give_up(&shared, going, texts::UNUSABLE, "unusable", settlement)
        }
        Some(Sent::Answer(answer)) => refused(&shared, going, answer).await,
    };
    settle(&shared, reservation, end).await;
}

fn give_up(shared: &Shared, going: Going, said: Said, word: &'static str, settlement: Settlement) -> End {
    // The job may have gone away meanwhile.
    _ = going.answer.send(respond(said, said.body(shared.spec.grant.api, None)));
    End { word, settlement }
}

/// The provider said no: its status and class go on, its words do not.
async fn refused(shared: &Shared, going: Going, mut answer: Answer) -> End {
    let status = answer.status().as_u16();
    let class = ErrorClass::of(&mut answer, &shared.spec.timeouts).await;
    let said = texts::provider_error(class, status);
    let mut response = respond(said, said.body(shared.spec.grant.api, None));
    if let Some(wait) = retry_after(&answer) {
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    _ = going.answer.send(response);
    End {
        word: texts::class_word(class),
        settlement: going.meter.refused(status),
    }
}

/// `Retry-After`, when it is a plain number of seconds.
fn retry_after(answer: &Answer) -> Option<HeaderValue> {
    let seconds: u32 = answer
        .headers()
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(HeaderValue::from(seconds))
}

/// Why an answer stopped coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// Its own end.
    End,
    /// The connection broke.
    Cut,
    /// Nothing came for too long, or it took too long in all.
    Silent,
    TooLarge,
    KeySeen,
    /// The job no longer listens, or the door closes.
    Abandoned,
}

async fn pass_on(shared: &Shared, going: Going, answer: Answer) -> End {
    let Going {
        meter,
        stream: is_stream,
        answer: give,
        ..
    } = going;
    let status = answer.status().as_u16();
    if !is_usable(&answer, is_stream) {
        let body = texts::UNUSABLE.body(shared.spec.grant.api, None);
        _ = give.send(respond(texts::UNUSABLE, body));
        return End {
            word: "unusable",
            settlement: meter.keep(Some(status)),
        };
    }
    let (reader, stopped) = if is_stream {
        pass_stream(shared, give, answer).await
    } else {
        pass_whole(shared, give, answer).await
    };
    let found = reader.finish(stopped == Stopped::End);
    let settlement = match found.usage {
        Some(usage) => meter.usage(usage, found.written, status),
        None => meter.keep(Some(status)),
    };
    let word = match stopped {
        Stopped::End if found.complete => "complete",
        Stopped::End | Stopped::Cut => "cut",
        Stopped::Silent => "silent",
        Stopped::TooLarge => "too-large",
        Stopped::KeySeen => "key-echoed",
        Stopped::Abandoned => "abandoned",
    };
    End { word, settlement }
}

/// The kind of answer that was asked for, not compressed.
fn is_usable(answer: &Answer, is_stream: bool) -> bool {
    let header = |name| {
        answer
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let kind = header(header::CONTENT_TYPE)
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let wanted = if is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    kind == wanted && matches!(header(header::CONTENT_ENCODING), "" | "identity")
}

/// Reads the answer's next piece, within its time and size.
struct Pieces<'a> {
    shared: &'a Shared,
    answer: Answer,
    deadline: Instant,
    room: usize,
}

impl<'a> Pieces<'a> {
    fn new(shared: &'a Shared, answer: Answer) -> Self {
        let deadline = Instant::now() + shared.spec.timeouts.response;
        Self {
            shared,
            answer,
            deadline,
            room: shared.spec.caps.response_bytes,
        }
    }

    async fn next(&mut self) -> Result<Bytes, Stopped> {
        let silence = Instant::now() + self.shared.spec.timeouts.silence;
        let piece = tokio::select! {
            () = self.shared.closing.cancelled() => return Err(Stopped::Abandoned),
            piece = timeout_at(silence.min(self.deadline), self.answer.chunk()) => piece,
        };
        match piece {
            Ok(Ok(Some(piece))) if piece.len() <= self.room => {
                self.room -= piece.len();
                Ok(piece)
            }
            Ok(Ok(Some(_))) => Err(Stopped::TooLarge),
            Ok(Ok(None)) => Err(Stopped::End),
            Ok(Err(_)) => Err(Stopped::Cut),
            Err(_) => Err(Stopped::Silent),
        }
    }
}

/// A stream goes on piece by piece; what goes wrong in its middle is its last event.
async fn pass_stream(
    shared: &Shared,
    give: oneshot::Sender<http::Response<Body>>,
    answer: Answer,
) -> (UsageReader, Stopped) {
    let api = shared.spec.grant.api;
    let mut reader = UsageReader::new(api, true);
    let mut scanner = Scanner::new(shared.spec.grant.key.as_ref());
    let (pass, passed) = mpsc::channel(8);
    if give.send(streaming(passed)).is_err() {
        return (reader, Stopped::Abandoned);
    }
    let mut pieces = Pieces::new(shared, answer);
    let stopped = loop {
        let piece = tokio::select! {
            () = pass.closed() => break Stopped::Abandoned,
            piece = pieces.next() => piece,
        };
        let piece = match piece {
            Ok(piece) => piece,
            Err(stopped) => break stopped,
        };
        reader.push(&piece);
        match scanner.push(&piece) {
            Ok(clear) if clear.is_empty() => {}
            Ok(clear) => match timeout_at(pieces.deadline, pass.send(Bytes::from(clear))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break Stopped::Abandoned,
            },
            Err(_) => break Stopped::KeySeen,
        }
    };
    let last = match stopped {
        Stopped::End => scanner.finish(),
        Stopped::Cut => texts::CUT.stream_event(api).into_bytes(),
        Stopped::Silent => texts::STALLED.stream_event(api).into_bytes(),
        Stopped::TooLarge => texts::TOO_LARGE.stream_event(api).into_bytes(),
        Stopped::KeySeen => texts::WITHHELD.stream_event(api).into_bytes(),
        Stopped::Abandoned => Vec::new(),
    };
    if !last.is_empty() {
        // A job that reads slowly may miss the end; it must not hold up the settlement.
        _ = timeout(Duration::from_secs(5), pass.send(Bytes::from(last))).await;
    }
    (reader, stopped)
}

fn streaming(passed: mpsc::Receiver<Bytes>) -> http::Response<Body> {
    let frames = stream::unfold(passed, |mut passed| async move {
        passed
            .recv()
            .await
            .map(|bytes| (Ok::<_, Infallible>(Frame::data(bytes)), passed))
    });
    let mut response = http::Response::new(StreamBody::new(frames).boxed());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// An answer that is no stream is passed on whole, or not at all.
async fn pass_whole(
    shared: &Shared,
    give: oneshot::Sender<http::Response<Body>>,
    answer: Answer,
) -> (UsageReader, Stopped) {
    let api = shared.spec.grant.api;
    let mut reader = UsageReader::new(api, false);
    let mut scanner = Scanner::new(shared.spec.grant.key.as_ref());
    let mut whole = Vec::new();
    let mut pieces = Pieces::new(shared, answer);
    let stopped = loop {
        match pieces.next().await {
            Ok(piece) => {
                reader.push(&piece);
                match scanner.push(&piece) {
                    Ok(clear) => whole.extend_from_slice(&clear),
                    Err(_) => break Stopped::KeySeen,
                }
            }
            Err(stopped) => break stopped,
        }
    };
    let said = match stopped {
        Stopped::End => {
            whole.extend_from_slice(&scanner.finish());
            let mut response = http::Response::new(Full::new(Bytes::from(whole)).boxed());
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            _ = give.send(response);
            return (reader, stopped);
        }
        Stopped::Cut => texts::LOST,
        Stopped::Silent => texts::SILENT,
        Stopped::TooLarge => texts::TOO_LARGE,
        Stopped::KeySeen => texts::WITHHELD,
        Stopped::Abandoned => texts::STOPPING,
    };
    _ = give.send(respond(said, said.body(api, None)));
    (reader, stopped)
}

async fn settle(shared: &Shared, reservation: ReservationId, end: End) {
    let End { word, settlement } = end;
    debug_assert!(settlement.cost >= Micros::ZERO);
    for tries in 0..SETTLE_TRIES {
        if shared.host.settle(reservation, settlement).await.is_ok() {
            break;
        }
        if tries + 1 == SETTLE_TRIES || shared.closing.is_cancelled() {
            shared
                .tell(DoorEvent::HostFailed {
                    asked: "settle".to_owned(),
                })
                .await;
            break;
        }
        sleep(Duration::from_millis(200) * 2u32.pow(tries)).await;
    }
    shared
        .tell(DoorEvent::RequestEnded {
            reservation,
            settlement,
            end: word.to_owned(),
        })
        .await;
}
