//! The model socket: HTTP/1.1, one kind of request, money first.
//!
//! The order is the point: control connection, head, size, strict reading, allowlist, reservation, and only then the first byte to the provider.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::UnixStream, sync::oneshot, task::spawn_blocking, time::timeout};

use crate::{
    Cap, DoorEvent, Reservation, ReservationId, Reserve,
    forward::{self, Going},
    json::{self, Json, JsonFault},
    money::{Meter, Size},
    request::{self, Asked, Head, No, Refusal, Rules},
    shared::Shared,
    texts::{self, Said},
};

/// What an answer to the job is made of.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// Bodies larger than this are read on a thread of their own.
const LARGE: usize = 128 * 1024;
/// A request may always write this much, when the model and the caps allow it at all.
const LEAST_OUTPUT: u64 = 4_096;
/// Room for an answer beside a thinking budget.
const ANSWER_ROOM: u64 = 1_024;

/// Serves a connection of the container's first process until it ends.
pub(crate) async fn serve(shared: &Arc<Shared>, stream: UnixStream) {
    let service = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.spec.timeouts.request)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = shared.closing.cancelled() => {}
        // How a connection of the job's ends is the job's affair.
        _ = connection => {}
    }
}

/// Why a request goes no further.
enum Stop {
    Refused(Refusal),
    Breach(String),
    Cap(Cap),
    HostFault(&'static str),
    Said(Said),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<No> for Stop {
    fn from(no: No) -> Self {
        match no {
            No::Refused(refusal) => Self::Refused(refusal),
            No::Breach(tool) => Self::Breach(tool),
        }
    }
}

async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    match admit(shared, request).await {
        Ok(response) => response,
        Err(stop) => refuse(shared, stop).await,
    }
}

async fn admit(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Stop> {
    if shared.is_stopping() {
        return Err(Stop::Said(texts::STOPPING));
    }
    let head = request::check_head(shared.spec.grant.api, &request)?;
    if !shared.has_control().await {
        return Err(Stop::Said(texts::NOT_READY));
    }
    let Ok(turn) = Arc::clone(&shared.parallel).try_acquire_owned() else {
        return Err(Stop::Said(texts::BUSY));
    };
    let body = collect(shared, request.into_body()).await?;
    let (body, asked, size) = check(shared, body).await?;
    let (reservation, reserved) = reserve(shared, &asked, size).await?;
    let meter = Meter::new(&shared.spec.grant, size, reserved.output_tokens);
    let body = write(shared, body, reserved.output_tokens, asked.stream).await;
    let event = DoorEvent::RequestSent {
        reservation,
        reserved,
        tools: asked.tools,
    };
    shared.tell(event).await;

    let (give, take) = oneshot::channel();
    let going = Going {
        reservation,
        meter,
        head,
        body,
        stream: asked.stream,
        answer: give,
        _turn: turn,
    };
    shared.tasks.spawn(forward::run(Arc::clone(shared), going));
    // It ends without an answer only when the door closes.
    take.await.map_err(|_| Stop::Said(texts::STOPPING))
}

async fn collect(shared: &Shared, body: Incoming) -> Result<Bytes, Stop> {
    let limited = Limited::new(body, shared.spec.caps.body_bytes).collect();
    match timeout(shared.spec.timeouts.request, limited).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(fault)) if fault.is::<LengthLimitError>() => Err(Refusal::new("body-too-large", "").into()),
        Ok(Err(_)) => Err(Refusal::new("body-incomplete", "").into()),
        Err(_) => Err(Refusal::new("body-late", "").into()),
    }
}

/// Strict reading and the allowlist.
async fn check(shared: &Arc<Shared>, body: Bytes) -> Result<(Bytes, Asked, Size), Stop> {
    let check = |shared: &Shared, body: &[u8]| -> Result<(Asked, Size), Stop> {
        let json = json::read(body).map_err(unreadable)?;
        let spec = &shared.spec;
        let rules = Rules {
            grant: &spec.grant,
            allowed: &spec.allowed_tools,
            excluded: &spec.excluded,
        };
        let asked = request::check_body(&rules, &json)?;
        let size = Size::of(&json, &asked);
        Ok((asked, size))
    };
    let (asked, size) = if body.len() > LARGE {
        let (shared, body) = (Arc::clone(shared), body.clone());
        let checked = spawn_blocking(move || check(&shared, &body)).await;
        checked.unwrap_or(Err(Stop::HostFault("read a request")))?
    } else {
        check(shared, &body)?
    };
    Ok((body, asked, size))
}

fn unreadable(fault: JsonFault) -> Stop {
    let why = match fault {
        JsonFault::Encoding | JsonFault::Syntax(_) => "body-not-json",
        JsonFault::DuplicateKey(_) => "duplicate-key",
        JsonFault::Depth => "body-too-deep",
        JsonFault::Size => "body-too-large",
    };
    Refusal::new(why, fault).into()
}

/// The request as it leaves: read again, the limits written in, and serialised from the parse.
async fn write(shared: &Arc<Shared>, body: Bytes, output: u64, stream: bool) -> Vec<u8> {
    let write = move |shared: &Shared, body: &[u8]| {
        let mut text = Vec::with_capacity(body.len() + 64);
        // It was read once already: it cannot fail now, and an empty body would only be refused by the provider.
        if let Ok(mut json) = json::read(body) {
            request::write_limits(&shared.spec.grant, &mut json, output, stream);
            Json::write(&json, &mut text);
        }
        text
    };
    if body.len() > LARGE {
        let (shared, body) = (Arc::clone(shared), body.clone());
        spawn_blocking(move || write(&shared, &body)).await.unwrap_or_default()
    } else {
        write(shared, &body)
    }
}

/// Reserves the worst case. Where it does not fit, it is asked again with half the output, so that the last cents of a cap can be used too.
async fn reserve(shared: &Shared, asked: &Asked, size: Size) -> Result<(ReservationId, Reservation), Stop> {
    let spec = &shared.spec;
    let most = spec.grant.max_tokens.min(spec.caps.output_tokens).max(1);
    let mut output = asked.output.unwrap_or(most).clamp(1, most);
    let least = output.min(LEAST_OUTPUT.max(asked.budget.saturating_add(ANSWER_ROOM)));
    let request = shared.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
    if request > spec.caps.requests {
        return Err(Stop::Cap(Cap::RunRequests));
    }
    loop {
        let (input_tokens, worst) = Meter::new(&spec.grant, size, output).worst();
        let priced = spec.grant.is_priced();
        let wanted = Reservation {
            request,
            input_tokens,
            output_tokens: output,
            worst,
            priced,
        };
        match shared.host.reserve(&wanted).await {
            Ok(Reserve::Yes(reservation)) => return Ok((reservation, wanted)),
            Ok(Reserve::No(_)) if output > least => output = (output / 2).max(least),
            Ok(Reserve::No(cap)) => return Err(Stop::Cap(cap)),
            Err(_) => return Err(Stop::HostFault("reserve")),
        }
    }
}

async fn refuse(shared: &Shared, stop: Stop) -> Response<Body> {
    let api = shared.spec.grant.api;
    match stop {
        Stop::Refused(refusal) => {
            shared.refused(&refusal).await;
            respond(texts::REFUSED, texts::REFUSED.body(api, Some(refusal.why)))
        }
        Stop::Breach(tool) => {
            // Shut before anybody hears of it: the next request must not find the door open.
            shared.stop(contract::StopReason::ExcludeToolsBreached);
            shared.tell(DoorEvent::Breach { tool }).await;
            respond(texts::REFUSED, texts::REFUSED.body(api, Some("exclude-tools-breached")))
        }
        Stop::Cap(cap) => {
            if shared.stop(cap.stop_reason()) {
                shared.tell(DoorEvent::CapReached { cap }).await;
            }
            respond(
                texts::OVER_CAP,
                texts::OVER_CAP.body(api, Some(cap.stop_reason().word())),
            )
        }
        Stop::HostFault(asked) => {
            shared
                .tell_refusal(DoorEvent::HostFailed {
                    asked: asked.to_owned(),
                })
                .await;
            respond(texts::NOT_READY, texts::NOT_READY.body(api, None))
        }
        Stop::Said(said) => respond(said, said.body(api, None)),
    }
}

/// An answer of the door's own.
pub(crate) fn respond(said: Said, body: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = StatusCode::from_u16(said.status).unwrap_or(StatusCode::BAD_GATEWAY);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What [`forward`] needs to know of the head.
pub(crate) type CheckedHead = Head;
