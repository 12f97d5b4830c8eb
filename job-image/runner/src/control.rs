//! The control connection to the gateway: opened before pi starts, opened anew after a worker's restart.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contract::{FaultReason, ToGateway, ToRunner, limits, paths};

use crate::events::{Event, Post};
use crate::fault::Fault;
use crate::lines::{self, Line};

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a welcome may take.
const WELCOME: Duration = Duration::from_secs(10);
/// How long a write may block.
const WRITE: Duration = Duration::from_secs(5);

/// The writing end. A thread of its own reads.
#[derive(Clone)]
pub(crate) struct Control {
    stream: Arc<Mutex<Option<UnixStream>>>,
}

impl Control {
    /// Connects, says hello and waits for the welcome, until `until` at the latest.
    pub(crate) fn open(hello: ToGateway, until: Instant, post: Post) -> Result<Control, Fault> {
        let (stream, reader) = loop {
            match connect(&hello) {
                Ok(connected) => break connected,
                Err(error) if Instant::now() >= until => {
                    return Err(Fault::new(FaultReason::GatewayUnreachable, error.to_string()));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        let control = Control {
            stream: Arc::new(Mutex::new(Some(stream))),
        };
        let reading = control.clone();
        std::thread::spawn(move || reading.keep_reading(reader, &hello, &post));
        Ok(control)
    }

    /// Sends a line. A connection on which that fails is given up; the reading thread notices and opens a new one.
    pub(crate) fn send(&self, message: &ToGateway) {
        let mut held = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = held.as_ref()
            && write(stream, message).is_err()
        {
            let _already_gone = stream.shutdown(std::net::Shutdown::Both);
            *held = None;
        }
    }

    fn replace(&self, stream: Option<UnixStream>) {
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    fn keep_reading(&self, mut reader: BufReader<UnixStream>, hello: &ToGateway, post: &Post) {
        loop {
            while let Ok(Some(line)) = lines::next(&mut reader, limits::CONTROL_LINE) {
                let Line::Whole(line) = line else { break };
                // Only the gateway writes here; what does not read is of another contract, and the connection ends.
                let Ok(message) = serde_json::from_slice::<ToRunner>(&line) else {
                    break;
                };
                if post.send(event(message)).is_err() {
                    return;
                }
            }
            self.replace(None);
            let lost = Instant::now();
            if post.send(Event::ControlLost).is_err() {
                return;
            }
            reader = loop {
                if lost.elapsed() >= Duration::from_secs(limits::GATEWAY_GONE_SECONDS) {
                    let _main_is_gone = post.send(Event::ControlGone);
                    return;
                }
                std::thread::sleep(PAUSE);
                if let Ok((stream, reader)) = connect(hello) {
                    self.replace(Some(stream));
                    break reader;
                }
            };
            if post.send(Event::ControlBack).is_err() {
                return;
            }
        }
    }
}

fn event(message: ToRunner) -> Event {
    match message {
        // A second welcome says nothing new.
        ToRunner::Welcome {} => Event::ControlBack,
        ToRunner::Stop { reason } => Event::Stop(reason),
        ToRunner::Proposal { id, verdict } => Event::Verdict { id, verdict },
    }
}

fn connect(hello: &ToGateway) -> io::Result<(UnixStream, BufReader<UnixStream>)> {
    let stream = UnixStream::connect(paths::CONTROL_SOCKET)?;
    stream.set_write_timeout(Some(WRITE))?;
    stream.set_read_timeout(Some(WELCOME))?;
    write(&stream, hello)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let welcomed = match lines::next(&mut reader, limits::CONTROL_LINE)? {
        Some(Line::Whole(line)) => matches!(serde_json::from_slice(&line), Ok(ToRunner::Welcome {})),
        Some(Line::TooLong(_)) | None => false,
    };
    if !welcomed {
        return Err(io::Error::other("the gateway did not welcome the runner"));
    }
    stream.set_read_timeout(None)?;
    Ok((stream, reader))
}

fn write(mut stream: &UnixStream, message: &ToGateway) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}
