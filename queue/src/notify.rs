//! Latency: one `NOTIFY` per channel and 50 ms at most, and the listener for it.
//!
//! Nothing depends on a notification: whoever waits also polls. A listener that had to connect again says so
//! ([`Heard::Reconnected`]), and its caller polls first, since what was sent in between is gone.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgListener;

use crate::Queue;
use crate::error::StoreError;
use crate::state::words;

words!(
    /// What changed.
    Channel {
        /// A delivery came, or is due again.
        Deliveries = "pi_dispatch_deliveries",
        /// A job may be claimed, or the pause was lifted.
        Jobs = "pi_dispatch_jobs",
        /// Something is to be posted.
        Outputs = "pi_dispatch_outputs",
        /// Somebody asked a running job to stop.
        Stops = "pi_dispatch_stops",
    }
);

/// Sends at most one notification per channel and [`Notifier::EVERY`]; the last one of a burst is never dropped.
#[derive(Debug, Clone)]
pub struct Notifier {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: PgPool,
}

impl Notifier {
    /// The shortest time between two notifications of one channel from one process.
    pub const EVERY: Duration = Duration::from_millis(50);

    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            inner: Arc::new(Inner { pool }),
        }
    }

    /// Says that the channel changed. Returns at once; a failure is not reported, because polling makes up for it.
    pub fn say(&self, channel: Channel) {
        let _ = (&self.inner.pool, channel);
        todo!()
    }
}

/// What a listener heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Look at that channel's rows.
    Changed(Channel),
    /// The connection was lost and is there again: look at everything.
    Reconnected,
}

/// A connection that listens.
#[derive(Debug)]
pub struct Listener {
    inner: PgListener,
}

impl Listener {
    /// Waits for the next thing. An error means that PostgreSQL is away: wait a moment, poll, call again.
    pub async fn heard(&mut self) -> Result<Heard, StoreError> {
        let _ = &mut self.inner;
        todo!()
    }
}

impl Queue {
    /// Listens on the channels, with a connection of its own.
    pub async fn listen(&self, channels: &[Channel]) -> Result<Listener, StoreError> {
        let _ = channels;
        todo!()
    }
}
