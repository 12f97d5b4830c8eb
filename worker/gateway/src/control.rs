//! The control socket: the runner lives, proposes, is told to stop. One connection at a time, JSON lines, bounded.

use std::sync::Arc;

use contract::{CONTRACT_VERSION, ProposalVerdict, ToGateway, ToRunner, limits};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Semaphore,
    time::{Instant, timeout},
};

use crate::{DoorEvent, Proposal, Socket, json, shared::Shared, texts};

/// How a connection ended, when it was not the runner's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The peer closed it, or the door is closing.
    Ended,
    /// What it said is not of the contract.
    Refused(&'static str),
}

/// Serves a connection of the container's first process.
pub(crate) async fn serve(shared: &Arc<Shared>, living: &Semaphore, stream: UnixStream, pid: i32) {
    let Ok(_only_one) = living.try_acquire() else {
        shared.turned_away(Socket::Control, Some(pid), "second-control").await;
        return;
    };
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, shared.spec.caps.control_line_bytes);
    let end = match timeout(shared.spec.timeouts.request, greet(shared, &mut lines, &mut write)).await {
        Ok(Ok(())) => {
            shared.heard_at(Some(Instant::now()));
            shared.control.send_replace(true);
            shared.tell(DoorEvent::ControlOpened).await;
            let end = converse(shared, &mut lines, &mut write).await;
            shared.control.send_replace(false);
            shared.heard_at(None);
            shared.tell(DoorEvent::ControlClosed).await;
            end
        }
        Ok(Err(broken)) => broken,
        Err(_) => Broken::Refused("hello-late"),
    };
    if let Broken::Refused(why) = end {
        shared.turned_away(Socket::Control, Some(pid), why).await;
    }
}

/// `hello` for this job, this attempt, this contract or the one before it; then `welcome`.
async fn greet(shared: &Shared, lines: &mut Lines, write: &mut OwnedWriteHalf) -> Result<(), Broken> {
    let ToGateway::Hello { job, attempt, contract } = lines.next().await? else {
        return Err(Broken::Refused("hello-missing"));
    };
    if (job, attempt) != (shared.spec.job, shared.spec.attempt) {
        return Err(Broken::Refused("another-job"));
    }
    if contract != CONTRACT_VERSION && contract.saturating_add(1) != CONTRACT_VERSION {
        return Err(Broken::Refused("contract-version"));
    }
    say(write, &ToRunner::Welcome {}).await
}

async fn converse(shared: &Shared, lines: &mut Lines, write: &mut OwnedWriteHalf) -> Broken {
    let mut stop = shared.stop.subscribe();
    stop.mark_changed();
    let mut silent = false;
    loop {
        let heartbeat = shared.spec.timeouts.heartbeat;
        let step = tokio::select! {
            () = shared.closing.cancelled() => return Broken::Ended,
            _ = stop.changed() => {
                let reason = *stop.borrow_and_update();
                match reason {
                    Some(reason) => say(write, &ToRunner::Stop { reason }).await,
                    None => Ok(()),
                }
            }
            () = tokio::time::sleep(heartbeat), if !silent => {
                silent = true;
                shared.tell(DoorEvent::ControlSilent { seconds: heartbeat.as_secs() }).await;
                Ok(())
            }
            line = lines.next() => match line {
                Ok(line) => {
                    silent = false;
                    shared.heard_at(Some(Instant::now()));
                    answer(shared, line, write).await
                }
                Err(broken) => Err(broken),
            },
        };
        if let Err(broken) = step {
            return broken;
        }
    }
}

async fn answer(shared: &Shared, line: ToGateway, write: &mut OwnedWriteHalf) -> Result<(), Broken> {
    match line {
        ToGateway::Heartbeat {} => Ok(()),
        ToGateway::Hello { .. } => Err(Broken::Refused("hello-twice")),
        ToGateway::Propose { id, tool, arguments } => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if id.is_empty() || id.len() > 64 || tool.len() > 64 || !id.bytes().chain(tool.bytes()).all(plain) {
                return Err(Broken::Refused("proposal-name"));
            }
            let verdict = if !shared.spec.allowed_tools.contains(&tool) {
                ProposalVerdict::Refused {
                    reason: texts::NO_SUCH_TOOL.to_owned(),
                }
            } else if arguments.to_string().len() > limits::PROPOSAL {
                ProposalVerdict::Refused {
                    reason: texts::PROPOSAL_TOO_LONG.to_owned(),
                }
            } else {
                shared
                    .host
                    .propose(&Proposal {
                        id: id.clone(),
                        tool,
                        arguments,
                    })
                    .await
            };
            say(write, &ToRunner::Proposal { id, verdict }).await
        }
    }
}

async fn say(write: &mut OwnedWriteHalf, line: &ToRunner) -> Result<(), Broken> {
    // Plain data of our own types: it always becomes text.
    let mut text = serde_json::to_vec(line).map_err(|_| Broken::Ended)?;
    text.push(b'\n');
    write.write_all(&text).await.map_err(|_| Broken::Ended)
}

/// Reads lines of bounded length. [`Lines::next`] may be dropped and called again: what was read is kept.
struct Lines {
    read: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
    most: usize,
}

impl Lines {
    fn new(read: OwnedReadHalf, most: usize) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            most,
        }
    }

    async fn next(&mut self) -> Result<ToGateway, Broken> {
        let room = (self.most + 1).saturating_sub(self.line.len()) as u64;
        let end = (&mut self.read).take(room).read_until(b'\n', &mut self.line).await;
        end.map_err(|_| Broken::Ended)?;
        match self.line.strip_suffix(b"\n") {
            Some(line) => {
                // Strictly first: two readers must not understand one line differently.
                let parsed = json::read(line).ok().and_then(|_| serde_json::from_slice(line).ok());
                self.line.clear();
                parsed.ok_or(Broken::Refused("control-line"))
            }
            None if self.line.len() > self.most => Err(Broken::Refused("control-line-length")),
            None => Err(Broken::Ended),
        }
    }
}
