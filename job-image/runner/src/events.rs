//! The one queue that everything outside the main thread writes into.
//!
//! Threads: one reads pi's standard output, one its standard error, one the control socket, one takes signals. The
//! main thread alone decides; so there is no state behind a lock.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use contract::{ProposalVerdict, StopReason};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::fault::Fault;
use crate::rpc::FromPi;

/// Something happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// pi said something.
    Pi(FromPi),
    /// pi closed its standard output.
    PiSilent,
    /// A line of pi's standard error.
    PiComplains(String),
    /// The gateway wants the run to end.
    Stop(StopReason),
    /// The worker answered a proposal.
    Verdict {
        /// The proposal's id.
        id: String,
        /// The answer.
        verdict: ProposalVerdict,
    },
    /// The control connection is there again.
    ControlBack,
    /// The control connection was lost; the control thread tries to open it anew.
    ControlLost,
    /// It could not be opened anew for too long.
    ControlGone,
    /// We were told to end.
    Terminate,
    /// Some child ended.
    Child,
}

/// Where threads leave their events.
pub(crate) type Post = Sender<Event>;

/// The main thread's end of the queue.
pub(crate) struct Mailbox(Receiver<Event>);

/// A queue.
pub(crate) fn mailbox() -> (Post, Mailbox) {
    let (post, mailbox) = channel();
    (post, Mailbox(mailbox))
}

impl Mailbox {
    /// The next event, or `None` when `until` has come.
    pub(crate) fn next(&self, until: Instant) -> Option<Event> {
        let wait = until.saturating_duration_since(Instant::now());
        // An error is the time-out: the run holds a sender itself, so the queue is never without one.
        self.0.recv_timeout(wait).ok()
    }
}

/// Takes signals from now on and leaves them as events.
///
/// PID 1 has no default handlers: without this, `docker stop` would wait for its whole grace time.
pub(crate) fn take_signals(post: Post) -> Result<(), Fault> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGCHLD]).map_err(|error| Fault::host("signals cannot be taken", error))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = if signal == SIGCHLD {
                Event::Child
            } else {
                Event::Terminate
            };
            if post.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}
