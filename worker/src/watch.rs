//! A started container, watched until it has ended: its log, its clocks, its disk, and the switch that ends it.
//!
//! Four clocks (set-up, silence, total, and the grace after a stop) run here, outside the box, each with its own
//! reason. The runner counts the same ones and ends in good order; ours come a grace later and then kill.
//! They are monotonic. After an adoption the total begins anew here, while the runner's own goes on.
//!
//! When Docker goes away the container may live on: waiting is repeated and the log is read again from its start,
//! which makes the same lines ([`crate::logs`]).

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use contract::{RunnerEvent, StopReason};
use futures_util::StreamExt;
use gateway::Door;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use crate::{
    container::{Engine, EngineError, Exit, Folders},
    disk::{self, Bounds, Measured},
    ledger::Ledger,
    logs::{Line, Reader, What},
    outcome::{Expected, Told},
    settings::{ContainerSettings, LogLimits, Timing},
    stop::{StopCause, Switch},
};

/// How long a container that has ended may take to hand out the rest of its log.
const DRAIN: Duration = Duration::from_secs(30);
/// Lines that are written together.
const BATCH: usize = 256;
/// How long a line waits for company.
const BATCH_WAIT: Duration = Duration::from_millis(150);
/// How exact the clocks are.
const TICK: Duration = Duration::from_millis(500);
/// Between two tries when Docker is away.
const AGAIN: Duration = Duration::from_secs(1);

/// What is watched, and against what.
pub(crate) struct Watched<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) container: &'a str,
    pub(crate) door: &'a Door,
    pub(crate) ledger: &'a Arc<Ledger>,
    pub(crate) switch: &'a Switch,
    pub(crate) expected: &'a Expected,
    pub(crate) folders: &'a Folders,
    pub(crate) settings: &'a ContainerSettings,
    pub(crate) log: &'a LogLimits,
    pub(crate) timing: &'a Timing,
    pub(crate) total: Duration,
}

/// What the log has told so far, shared with the clocks.
struct Heard {
    told: Told,
    /// The prompt was sent, whatever is read again: the clock of the set-up does not run twice.
    started: bool,
    last: Instant,
}

impl Heard {
    fn new() -> Self {
        Self {
            told: Told::default(),
            started: false,
            last: Instant::now(),
        }
    }

    fn note(&mut self, event: &RunnerEvent, expected: &Expected) {
        self.last = Instant::now();
        self.told.note(event, expected);
        self.started |= self.told.started;
    }

    /// The log is read again from its start: what it told is told anew.
    fn again(&mut self) {
        self.told = Told::default();
    }
}

type Shared = Arc<Mutex<Heard>>;

impl Watched<'_> {
    /// Watches until the container has ended and its log was read to the end.
    pub(crate) async fn to_its_end(&self) -> (Exit, Told) {
        let heard: Shared = Arc::new(Mutex::new(Heard::new()));
        let exit = {
            let (log, end) = (self.follow(&heard), self.wait());
            let (stop, clocks, disk) = (self.stop_when_told(), self.clocks(&heard), self.disk());
            tokio::pin!(log, end, stop, clocks, disk);
            let mut drained = false;
            let exit = loop {
                tokio::select! {
                    exit = &mut end => break exit,
                    // The log ends with the container; its exit code follows at once.
                    () = &mut log, if !drained => drained = true,
                    never = &mut stop => match never {},
                    never = &mut clocks => match never {},
                    never = &mut disk => match never {},
                }
            };
            // What is not here by then is lost with the container; the outcome then misses it and says so.
            if !drained && timeout(DRAIN, log).await.is_err() {
                tracing::warn!(
                    job.id = self.ledger.job(),
                    "the log of an ended container was not read to its end"
                );
            }
            exit
        };
        let told = lock(&heard).told.clone();
        (exit, told)
    }

    async fn wait(&self) -> Exit {
        loop {
            match self.engine.wait(self.container).await {
                Ok(exit) => return exit,
                // Somebody removed it by hand: it ended, and nobody knows how.
                Err(EngineError::NoSuchContainer) => {
                    return Exit {
                        code: -1,
                        out_of_memory: false,
                    };
                }
                Err(fault) => {
                    tracing::warn!(job.id = self.ledger.job(), %fault, "waiting for a container failed, trying again");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// Reads the log to its end; from the start again when the engine breaks off.
    async fn follow(&self, heard: &Shared) {
        let (send, receive) = mpsc::channel::<Line>(BATCH * 4);
        let read = async {
            let send = send;
            loop {
                match self.read_once(heard, &send).await {
                    Err(EngineError::NoSuchContainer) => return,
                    Err(fault) => {
                        tracing::warn!(job.id = self.ledger.job(), %fault, "the log broke off, reading it again");
                    }
                    // A daemon that goes away may close the stream in good order while the container lives on.
                    Ok(()) => match self.engine.pid(self.container).await {
                        Ok(0) | Err(EngineError::NoSuchContainer) => return,
                        _ => tracing::warn!(
                            job.id = self.ledger.job(),
                            "the log ended before its container, reading it again"
                        ),
                    },
                }
                sleep(AGAIN).await;
                lock(heard).again();
            }
        };
        tokio::join!(read, self.write(receive));
    }

    async fn read_once(&self, heard: &Shared, send: &mpsc::Sender<Line>) -> Result<(), EngineError> {
        let mut reader = Reader::new(self.log.clone());
        let mut pieces = Box::pin(self.engine.logs(self.container));
        while let Some(piece) = pieces.next().await {
            let lines = reader.take(&piece?);
            self.note(heard, &lines);
            if reader.over() {
                self.switch.pull(StopReason::LogCap);
            }
            self.hand_on(send, lines).await;
        }
        let lines = reader.end();
        self.note(heard, &lines);
        self.hand_on(send, lines).await;
        if reader.unreadable() > 0 {
            self.ledger
                .note("warning", crate::texts::job::unreadable_lines(reader.unreadable()))
                .await;
        }
        Ok(())
    }

    fn note(&self, heard: &Shared, lines: &[Line]) {
        let mut heard = lock(heard);
        for line in lines {
            if let What::Event(event) = &line.what {
                heard.note(&event.event, self.expected);
                if heard.told.unproven(self.expected) {
                    self.switch.pull(StopReason::ToolsNotProven);
                }
            }
        }
    }

    async fn hand_on(&self, send: &mpsc::Sender<Line>, lines: Vec<Line>) {
        for line in lines {
            // The writer ends only after this sender is gone.
            let _ = send.send(line).await;
        }
    }

    async fn write(&self, mut lines: mpsc::Receiver<Line>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(line) = lines.recv().await {
            batch.push(line);
            let until = Instant::now() + BATCH_WAIT;
            while batch.len() < BATCH {
                match tokio::time::timeout_at(until, lines.recv()).await {
                    Ok(Some(line)) => batch.push(line),
                    Ok(None) | Err(_) => break,
                }
            }
            self.ledger.append(std::mem::take(&mut batch)).await;
        }
    }

    /// Asks, waits, kills, and kills again until it is dead.
    async fn stop_when_told(&self) -> std::convert::Infallible {
        let cause = self.switch.pulled().await;
        tracing::info!(
            job.id = self.ledger.job(),
            reason = cause.reason.word(),
            "stopping a job"
        );
        if cause.reason != StopReason::WorkerStopping {
            self.door.stop(cause.reason);
            tokio::select! {
                () = sleep(self.timing.grace) => {}
                () = self.switch.lease_ends() => {}
            }
        }
        loop {
            if let Err(fault) = self.engine.kill(self.container).await {
                tracing::warn!(job.id = self.ledger.job(), %fault, "killing a container failed, trying again");
            }
            sleep(AGAIN).await;
        }
    }

    async fn clocks(&self, heard: &Shared) -> std::convert::Infallible {
        let begin = Instant::now();
        let grace = self.timing.grace;
        let total = begin + self.total + grace;
        let set_up = begin + self.timing.setup + grace;
        loop {
            let (started, last) = {
                let heard = lock(heard);
                (heard.started, heard.last)
            };
            let idle = last + self.timing.idle + grace;
            let now = Instant::now();
            if now >= total {
                self.switch.pull(StopReason::TimeCap);
            } else if !started && now >= set_up {
                self.switch.pull(StopReason::SetupCap);
            } else if started && now >= idle {
                self.switch.pull(StopReason::IdleCap);
            }
            sleep(TICK).await;
        }
    }

    async fn disk(&self) -> std::convert::Infallible {
        let bounds = [
            (
                &self.folders.workspace,
                "/workspace",
                Bounds {
                    bytes: self.settings.workspace_bytes,
                    files: self.settings.workspace_files,
                },
            ),
            (
                &self.folders.session,
                "/session",
                Bounds {
                    bytes: self.settings.session_bytes,
                    files: self.settings.session_files,
                },
            ),
        ];
        loop {
            sleep(self.timing.disk).await;
            for (folder, shown, bounds) in bounds {
                if let Some(detail) = too_much(folder.clone(), shown, bounds).await {
                    self.switch.pull(StopCause {
                        reason: StopReason::DiskCap,
                        detail: Some(detail),
                    });
                }
            }
            if disk::free(&self.folders.workspace).is_ok_and(|free| free < self.settings.free_floor / 2) {
                let detail = Some("the host's disk runs full".to_owned());
                self.switch.pull(StopCause {
                    reason: StopReason::DiskCap,
                    detail,
                });
            }
        }
    }
}

async fn too_much(folder: impl AsRef<Path> + Send + 'static, shown: &str, bounds: Bounds) -> Option<String> {
    match tokio::task::spawn_blocking(move || disk::measure(folder.as_ref(), bounds)).await {
        Ok(Ok(Measured::Over(bound))) => Some(format!("{shown} holds too many or too large files ({bound:?})")),
        Ok(Ok(Measured::Fits { .. }) | Err(_)) | Err(_) => None,
    }
}

fn lock(heard: &Shared) -> std::sync::MutexGuard<'_, Heard> {
    // A panic while it was held leaves plain values behind, none of them half written.
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_read_again_does_not_begin_the_set_up_again() {
        let expected = Expected::default();
        let mut heard = Heard::new();
        heard.note(&RunnerEvent::Started {}, &expected);

        heard.again();

        assert_eq!(heard.told, Told::default(), "it is told anew");
        assert!(heard.started, "the prompt was sent all the same");
    }
}
