//! pi's process: started over socketpairs, spoken to in lines, ended in steps.
//!
//! Socketpairs and not pipes, because a pipe can be opened anew through `/proc/<pid>/fd` and a socket cannot; three
//! and not one, because closing a shared one ends pi with an unhandled error.

use std::fs;
use std::io::{BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use contract::{FaultReason, limits, paths};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde_json::Value;

use crate::argv::{self, Start};
use crate::events::{Event, Post};
use crate::fault::Fault;
use crate::lines::{self, Line};
use crate::rpc::{self, FromPi};

/// How long a write to pi may block. It reads all the time, so this is only met when it hangs.
const WRITE: Duration = Duration::from_secs(20);
/// Lines of its standard error that are passed on.
const MOST_COMPLAINTS: usize = 50;

/// A running pi.
pub(crate) struct Pi {
    pid: Pid,
    stdin: UnixStream,
    ended: Option<String>,
}

impl Pi {
    /// Writes pi's agent directory and starts it.
    pub(crate) fn start(start: &Start, models: &[u8], post: Post) -> Result<Pi, Fault> {
        furnish(models)?;
        let pair = || UnixStream::pair().map_err(|error| Fault::host("no socketpair", error));
        let ((stdin, stdin_of_pi), (stdout, stdout_of_pi), (stderr, stderr_of_pi)) = (pair()?, pair()?, pair()?);
        stdin
            .set_write_timeout(Some(WRITE))
            .map_err(|error| Fault::host("no write time-out", error))?;
        let child = Command::new(paths::NODE)
            .args(argv::arguments(start))
            .env_clear()
            .envs(argv::environment(start))
            .current_dir(paths::WORKSPACE)
            .stdin(Stdio::from(OwnedFd::from(stdin_of_pi)))
            .stdout(Stdio::from(OwnedFd::from(stdout_of_pi)))
            .stderr(Stdio::from(OwnedFd::from(stderr_of_pi)))
            .spawn()
            .map_err(|error| Fault::new(FaultReason::PiUnusable, format!("pi cannot be started: {error}")))?;
        let raw = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = raw.ok_or_else(|| Fault::host("pi has no process id", child.id()))?;
        listen(stdout, post.clone());
        listen_to_complaints(stderr, post);
        Ok(Pi {
            pid,
            stdin,
            ended: None,
        })
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: &Value) -> Result<(), Fault> {
        let mut line = command.to_string().into_bytes();
        line.push(b'\n');
        self.stdin
            .write_all(&line)
            .map_err(|error| Fault::new(FaultReason::PiEnded, format!("pi takes no more commands: {error}")))
    }

    /// Tells pi that nothing more comes: it ends by itself.
    pub(crate) fn close(&self) {
        let _already_closed = self.stdin.shutdown(std::net::Shutdown::Write);
    }

    /// Sends a signal, unless it is gone (its number might be another's by now).
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _just_ended = kill_process(self.pid, signal);
        }
    }

    /// Takes in every child that ended. As PID 1 we get those of others too.
    pub(crate) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.pid {
                self.ended = Some(match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => format!("pi ended with code {code}"),
                    (None, Some(signal)) => format!("pi was killed by signal {signal}"),
                    (None, None) => "pi ended".to_owned(),
                });
            }
        }
    }

    /// How it ended, when it has.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }
}

/// pi's agent directory: the runner's settings and the worker's models.
fn furnish(models: &[u8]) -> Result<(), Fault> {
    let folder = Path::new(paths::AGENT_DIR);
    let host = |error| Fault::host("pi's agent directory cannot be written", error);
    fs::create_dir_all(folder).map_err(host)?;
    fs::write(folder.join("models.json"), models).map_err(host)?;
    fs::write(folder.join("settings.json"), argv::settings().to_string()).map_err(host)
}

fn listen(stdout: UnixStream, post: Post) {
    std::thread::spawn(move || {
        let mut reader = BufReader::with_capacity(64 * 1024, stdout);
        while let Ok(Some(line)) = lines::next(&mut reader, rpc::LONGEST_LINE) {
            let said = match line {
                Line::Whole(line) => rpc::read(&line),
                Line::TooLong(size) => FromPi::Odd("pi-line-too-long", format!("{size} bytes")),
            };
            if post.send(Event::Pi(said)).is_err() {
                return;
            }
        }
        let _main_is_gone = post.send(Event::PiSilent);
    });
}

fn listen_to_complaints(stderr: UnixStream, post: Post) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stderr);
        let mut left = MOST_COMPLAINTS;
        while let Ok(Some(line)) = lines::next(&mut reader, limits::EXCERPT) {
            let text = match line {
                Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
                Line::TooLong(size) => format!("a line of {size} bytes"),
            };
            if left > 0 && !text.trim().is_empty() {
                left -= 1;
                if post.send(Event::PiComplains(text)).is_err() {
                    return;
                }
            }
        }
    });
}
