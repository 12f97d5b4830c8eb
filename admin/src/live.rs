//! The live log of a run: server-sent events, resumable by `Last-Event-ID`, with an explicit end.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use queue::{JobId, LogId};
use serde::Deserialize;

use crate::Admin;
use crate::error::PageError;
use crate::pages::run::line_html;
use crate::people::SignedIn;

/// Live logs at the same time, over all people.
pub const STREAMS: usize = 64;
/// Lines of one look.
const BATCH: i64 = 200;
/// Between two looks while nothing new comes.
const PAUSE: Duration = Duration::from_millis(500);

/// Where to begin when the browser does not say.
#[derive(Deserialize)]
pub struct After {
    after: Option<i64>,
}

/// `GET /runs/{job}/live`: `line` events with the line's number as id, then one `end`.
pub async fn log(
    State(admin): State<Admin>,
    _who: SignedIn,
    Path(job): Path<i64>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageError> {
    let job = JobId(job);
    if admin.queue.is_finished(job).await?.is_none() {
        return Err(PageError::NotFound(format!("run {job}")));
    }
    let permit = admin
        .streams
        .clone()
        .try_acquire_owned()
        .map_err(|_| PageError::TooManyStreams)?;
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let after = LogId(last.or(after.after).unwrap_or(0));
    let tail = Tail {
        admin,
        job,
        after,
        ready: Vec::new().into_iter(),
        over: false,
        _permit: permit,
    };
    Ok(Sse::new(stream::unfold(tail, Tail::next)).keep_alive(KeepAlive::default()))
}

struct Tail {
    admin: Admin,
    job: JobId,
    after: LogId,
    ready: std::vec::IntoIter<Event>,
    over: bool,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Tail {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.ready.next() {
                return Some((Ok(event), self));
            }
            if self.over || self.admin.streams.is_closed() {
                return None;
            }
            // Finished is asked before the lines: then no line can come between the two looks.
            let finished = self.admin.queue.is_finished(self.job).await;
            let lines = self.admin.queue.job_log(self.job, self.after, BATCH).await;
            match (finished, lines) {
                (Ok(finished), Ok(lines)) => {
                    if let Some(last) = lines.last() {
                        self.after = last.id;
                    } else if finished != Some(false) {
                        self.over = true;
                        return Some((Ok(Event::default().event("end").data("the run is over")), self));
                    } else {
                        tokio::time::sleep(PAUSE).await;
                    }
                    let events: Vec<Event> = lines
                        .iter()
                        .filter_map(|line| {
                            Some(
                                Event::default()
                                    .event("line")
                                    .id(line.id.to_string())
                                    .data(line_html(line).ok()?),
                            )
                        })
                        .collect();
                    self.ready = events.into_iter();
                }
                // PostgreSQL is away for a moment: the browser keeps its place.
                (Err(_), _) | (_, Err(_)) => tokio::time::sleep(PAUSE * 4).await,
            }
        }
    }
}
