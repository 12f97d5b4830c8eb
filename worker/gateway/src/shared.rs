//! What the two sockets of one door share: its spec, the worker behind it, and what has happened so far.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use contract::StopReason;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{DoorEvent, DoorSpec, Host, Socket, request::Refusal, upstream::Upstream};

/// After so many refusals a line for each helps nobody.
const LISTED_REFUSALS: u64 = 200;
/// What a further refusal waits, so that a loop costs the job and not the host.
const REFUSAL_PAUSE: Duration = Duration::from_millis(250);

/// One door's state.
pub(crate) struct Shared {
    pub(crate) spec: DoorSpec,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) upstream: Upstream,
    /// The container's first process, once it is known.
    pub(crate) pid: watch::Sender<Option<i32>>,
    /// Whether the runner is connected and welcomed.
    pub(crate) control: watch::Sender<bool>,
    /// Why the job is being stopped.
    pub(crate) stop: watch::Sender<Option<StopReason>>,
    /// When the runner's last line came.
    pub(crate) heard: Mutex<Option<Instant>>,
    pub(crate) parallel: Arc<Semaphore>,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) requests: AtomicU64,
    events: mpsc::Sender<DoorEvent>,
    refusals: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        spec: DoorSpec,
        host: Arc<dyn Host>,
        upstream: Upstream,
        events: mpsc::Sender<DoorEvent>,
    ) -> Arc<Self> {
        Arc::new(Self {
            parallel: Arc::new(Semaphore::new(spec.caps.parallel)),
            connections: Arc::new(Semaphore::new(spec.caps.connections)),
            spec,
            host,
            upstream,
            pid: watch::Sender::new(None),
            control: watch::Sender::new(false),
            stop: watch::Sender::new(None),
            heard: Mutex::new(None),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            requests: AtomicU64::new(0),
            events,
            refusals: AtomicU64::new(0),
        })
    }

    /// Hands an event over, in order.
    pub(crate) async fn tell(&self, event: DoorEvent) {
        // Only a closed door has no reader, and then nobody asks any more.
        _ = self.events.send(event).await;
    }

    /// Notes a refusal: a line each for the first ones, then a pause each.
    pub(crate) async fn tell_refusal(&self, event: DoorEvent) {
        match self.refusals.fetch_add(1, Ordering::Relaxed) {
            before if before < LISTED_REFUSALS => self.tell(event).await,
            LISTED_REFUSALS => self.tell(DoorEvent::RefusalsUnlisted).await,
            _ => sleep(REFUSAL_PAUSE).await,
        }
    }

    /// Notes a refused request.
    pub(crate) async fn refused(&self, refusal: &Refusal) {
        let event = DoorEvent::RequestRefused {
            why: refusal.why.to_owned(),
            place: refusal.place.clone(),
        };
        self.tell_refusal(event).await;
    }

    /// Notes a refused connection.
    pub(crate) async fn turned_away(&self, socket: Socket, pid: Option<i32>, why: &str) {
        self.tell_refusal(DoorEvent::ConnectionRefused {
            socket,
            pid,
            why: why.to_owned(),
        })
        .await;
    }

    /// Lets nothing more through and tells the runner. True for the first who says so.
    pub(crate) fn stop(&self, reason: StopReason) -> bool {
        self.stop.send_if_modified(|now| {
            let first = now.is_none();
            now.get_or_insert(reason);
            first
        })
    }

    /// Whether the job is being stopped.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Notes that the runner spoke, or with `None` that it is gone.
    pub(crate) fn heard_at(&self, when: Option<Instant>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = when;
    }

    /// Waits a bounded time for the container's first process to be known.
    pub(crate) async fn expected_pid(&self) -> Option<i32> {
        let mut pid = self.pid.subscribe();
        let known = timeout(self.spec.timeouts.pid, pid.wait_for(Option::is_some)).await;
        known.ok()?.ok().and_then(|pid| *pid)
    }

    /// Waits a bounded time for the runner's control connection.
    pub(crate) async fn has_control(&self) -> bool {
        let mut control = self.control.subscribe();
        matches!(
            timeout(self.spec.timeouts.control, control.wait_for(|open| *open)).await,
            Ok(Ok(_))
        )
    }
}
