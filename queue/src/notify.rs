//! Latency: one `NOTIFY` per channel and 50 ms at most, and the listener for it.
//!
//! Nothing depends on a notification: whoever waits also polls. A listener that had to connect again says so
//! ([`Heard::Reconnected`]), and its caller polls first, since what was sent in between is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

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
    /// Per channel, whether a notification is already on its way that will cover what was said by now.
    pending: [AtomicBool; Channel::ALL.len()],
    /// Per channel, when the last one was sent.
    last: [Mutex<Option<Instant>>; Channel::ALL.len()],
}

impl Notifier {
    /// The shortest time between two notifications of one channel from one process.
    pub const EVERY: Duration = Duration::from_millis(50);

    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            inner: Arc::new(Inner {
                pool,
                pending: Default::default(),
                last: Default::default(),
            }),
        }
    }

    /// Says that the channel changed. Returns at once; a failure is not reported, because polling makes up for it.
    pub fn say(&self, channel: Channel) {
        let slot = channel as usize;
        if self.inner.pending[slot].swap(true, Ordering::AcqRel) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            self.inner.pending[slot].store(false, Ordering::Release);
            return;
        };
        let inner = Arc::clone(&self.inner);
        runtime.spawn(async move {
            let mut last = inner.last[slot].lock().await;
            if let Some(last) = *last {
                sleep_until(last + Self::EVERY).await;
            }
            // cleared before it is sent: what is said from now on gets a notification of its own
            inner.pending[slot].store(false, Ordering::Release);
            *last = Some(Instant::now());
            let sent = sqlx::query!("SELECT pg_notify($1, '')", channel.word()).execute(&inner.pool).await;
            if let Err(error) = sent {
                tracing::debug!(channel = channel.word(), %error, "a notification was not sent; polling makes up for it");
            }
        });
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
        loop {
            match self.inner.try_recv().await? {
                None => return Ok(Heard::Reconnected),
                Some(notification) => {
                    if let Some(channel) = Channel::from_word(notification.channel()) {
                        return Ok(Heard::Changed(channel));
                    }
                }
            }
        }
    }
}

impl Queue {
    /// Listens on the channels, with one connection of the pool for as long as the listener lives.
    pub async fn listen(&self, channels: &[Channel]) -> Result<Listener, StoreError> {
        let mut inner = PgListener::connect_with(&self.pool).await?;
        inner.listen_all(channels.iter().map(|channel| channel.word())).await?;
        Ok(Listener { inner })
    }
}
