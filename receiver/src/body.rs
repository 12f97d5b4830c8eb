//! Reading a body: bounded in size, in time, and in how many large ones there are at once.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::Settings;

/// Up to here a body is small and needs no permit.
const SMALL: usize = 256 * 1024;
/// How much of a body that nobody wants is read before its sender is answered anyway.
const DISMISS_MAX: usize = 64 * 1024 * 1024;
/// How long that may take.
const DISMISS_TIME: Duration = Duration::from_secs(10);

/// Why there is no whole body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// 413.
    #[error("the body is larger than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// 400: the connection ended in the middle, or the transfer was no HTTP.
    #[error("the body ended before its time")]
    Broken,
    /// 408.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// 503.
    #[error("too many large bodies at once: send it again")]
    Full,
}

/// A body on its way in.
pub(crate) struct Incoming {
    body: Body,
    /// What the sender says it is going to send.
    length: Option<usize>,
    /// The sender waits for our word before it sends the body.
    waits: bool,
    /// Nothing more comes, or nothing more can be read.
    ended: bool,
    /// How much room among the large bodies it has. Held until the answer.
    room: Option<OwnedSemaphorePermit>,
}

impl Incoming {
    pub(crate) fn new(body: Body, headers: &HeaderMap) -> Self {
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        Self {
            body,
            length,
            waits: headers.contains_key(EXPECT),
            ended: false,
            room: None,
        }
    }

    /// The whole body.
    pub(crate) async fn read(&mut self, settings: &Settings, large: &Arc<Semaphore>) -> Result<Bytes, BodyError> {
        let max = settings.max_body;
        let deadline = Instant::now() + settings.body_timeout;
        if self.length.is_some_and(|length| length > max) {
            return Err(BodyError::TooLarge { max });
        }
        if let Some(length) = self.length.filter(|length| *length > SMALL) {
            self.take_room(length, large, settings, deadline).await?;
        }
        self.waits = false;
        let mut whole = BytesMut::with_capacity(self.length.unwrap_or_default());
        while let Some(chunk) = self.chunk(deadline).await? {
            if whole.len() + chunk.len() > max {
                return Err(BodyError::TooLarge { max });
            }
            if whole.len() + chunk.len() > SMALL && self.room.is_none() {
                // It did not say how long it is: it may become as long as any.
                self.take_room(max, large, settings, deadline).await?;
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// Reads and drops what is still coming, within bounds, so that the sender gets to read the answer.
    pub(crate) async fn dismiss(&mut self, settings: &Settings) {
        self.room = None;
        let deadline = Instant::now() + DISMISS_TIME.min(settings.body_timeout);
        let mut dropped = 0;
        while !self.waits && !self.ended && dropped < DISMISS_MAX {
            match self.chunk(deadline).await {
                Ok(Some(chunk)) => dropped += chunk.len(),
                Ok(None) | Err(_) => break,
            }
        }
    }

    async fn take_room(
        &mut self,
        bytes: usize,
        large: &Arc<Semaphore>,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<(), BodyError> {
        // Long enough for those before it to be stored, short enough for the sender's patience.
        let deadline = deadline.min(Instant::now() + settings.store_timeout);
        let wanted = u32::try_from(permits(bytes)).unwrap_or(u32::MAX);
        match timeout_at(deadline, Arc::clone(large).acquire_many_owned(wanted)).await {
            Ok(Ok(room)) => {
                self.room = Some(room);
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(BodyError::Full),
        }
    }

    /// The next piece; `None` at the end.
    async fn chunk(&mut self, deadline: Instant) -> Result<Option<Bytes>, BodyError> {
        loop {
            let frame = match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Err(BodyError::TooSlow),
                Ok(None) => {
                    self.ended = true;
                    return Ok(None);
                }
                Ok(Some(Err(_))) => {
                    self.ended = true;
                    return Err(BodyError::Broken);
                }
                Ok(Some(Ok(frame))) => frame,
            };
            // Anything else is a trailer.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// Permits for so many bytes: one per KiB begun.
pub(crate) fn permits(bytes: usize) -> usize {
    bytes.div_ceil(1024).min(Semaphore::MAX_PERMITS)
}
