//! Reading a container's log: Docker's pieces become bounded lines with numbers that a second reading repeats.
//!
//! A worker that starts again reads the whole log of an adopted container from its first byte. Nothing here depends
//! on when a line was read: numbers run per stream, and the rate is counted in seconds of Docker's own stamps. So the
//! second reading makes the same lines with the same numbers, and the table's key drops what is already there:
//! no gap, no repetition, and no position to remember.
//!
//! A line longer than the limit is cut. Lines over the rate are dropped, and one line with the number of the first
//! dropped one says how many. After [`Reader::over`] only what the outcome needs is kept.
//!
//! Docker's pieces have at most 16 KiB, each with its own stamp; only the last piece of a line ends in a newline.

use bollard::container::LogOutput;
use chrono::{DateTime, Utc};
use contract::RunnerLine;

use crate::settings::LogLimits;

/// Which of the container's streams a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The runner's events.
    Stdout,
    /// Text for people, believed by nobody.
    Stderr,
}

/// One whole line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its stream.
    pub source: Source,
    /// Its number in that stream, from 0.
    pub seq: i64,
    /// Docker's stamp of its last piece.
    pub at: Option<DateTime<Utc>>,
    /// Its text without the newline, valid UTF-8 without NUL.
    pub text: String,
    /// What it is.
    pub what: What,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An event of the runner.
    Event(Box<RunnerLine>),
    /// A line of standard output that is no event of the contract: kept, counted, not believed.
    Unreadable,
    /// Text of standard error.
    Text,
    /// So many lines were over the rate and are not kept.
    Dropped(u32),
}

/// Makes lines of pieces.
#[derive(Debug)]
pub struct Reader {
    limits: LogLimits,
    stdout: Pending,
    stderr: Pending,
    second: i64,
    in_second: u32,
    dropped: Option<(Source, i64, u32)>,
    bytes: u64,
    unreadable: u64,
}

#[derive(Debug, Default)]
struct Pending {
    seq: i64,
    bytes: Vec<u8>,
    cut: bool,
}

impl Reader {
    /// A reader that is at the first byte.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            stdout: Pending::default(),
            stderr: Pending::default(),
            second: i64::MIN,
            in_second: 0,
            dropped: None,
            bytes: 0,
            unreadable: 0,
        }
    }

    /// More was printed than one attempt may.
    #[must_use]
    pub fn over(&self) -> bool {
        self.bytes > self.limits.total
    }

    /// Lines of standard output that were no events.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Takes one piece and gives the lines that it completed.
    pub fn take(&mut self, piece: &LogOutput) -> Vec<Line> {
        let (source, bytes) = match piece {
            LogOutput::StdOut { message } | LogOutput::Console { message } => (Source::Stdout, message),
            LogOutput::StdErr { message } => (Source::Stderr, message),
            LogOutput::StdIn { .. } => return Vec::new(),
        };
        let (at, payload) = split_stamp(bytes);
        let ended = payload.last() == Some(&b'\n');
        let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
        self.bytes += payload.len() as u64 + 1;
        let room = self.limits.line;
        let pending = self.pending(source);
        let free = room.saturating_sub(pending.bytes.len());
        pending.cut |= payload.len() > free;
        pending.bytes.extend_from_slice(&payload[..payload.len().min(free)]);
        if ended { self.line(source, at) } else { Vec::new() }
    }

    /// Gives what stands without its newline when the log has ended.
    pub fn end(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        for source in [Source::Stdout, Source::Stderr] {
            if !self.pending(source).bytes.is_empty() {
                lines.extend(self.line(source, None));
            }
        }
        lines.extend(self.say_dropped(None));
        lines
    }

    fn pending(&mut self, source: Source) -> &mut Pending {
        match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        }
    }

    fn line(&mut self, source: Source, at: Option<DateTime<Utc>>) -> Vec<Line> {
        let pending = self.pending(source);
        let seq = pending.seq;
        pending.seq += 1;
        let cut = std::mem::take(&mut pending.cut);
        let text = String::from_utf8_lossy(&std::mem::take(&mut pending.bytes)).replace('\0', "\u{fffd}");
        let what = match source {
            Source::Stderr => What::Text,
            Source::Stdout if cut => What::Unreadable,
            Source::Stdout => serde_json::from_str::<RunnerLine>(&text)
                .map_or(What::Unreadable, |event| What::Event(Box::new(event))),
        };
        if what == What::Unreadable {
            self.unreadable += 1;
        }

        let mut lines = Vec::new();
        let second = at.map_or(self.second, |at| at.timestamp());
        if second != self.second {
            lines.extend(self.say_dropped(at));
            self.second = second;
            self.in_second = 0;
        }
        self.in_second += 1;
        let needed = matches!(&what, What::Event(event) if event.decides());
        if !needed && (self.in_second > self.limits.lines_per_second || self.over()) {
            match &mut self.dropped {
                Some((_, _, count)) => *count += 1,
                None => self.dropped = Some((source, seq, 1)),
            }
            return lines;
        }
        lines.push(Line { source, seq, at, text, what });
        lines
    }

    fn say_dropped(&mut self, at: Option<DateTime<Utc>>) -> Option<Line> {
        let (source, seq, count) = self.dropped.take()?;
        Some(Line { source, seq, at, text: crate::texts::lines_dropped(count), what: What::Dropped(count) })
    }
}

/// Docker puts `2026-11-30T23:40:00.123456789Z ` before each piece.
fn split_stamp(bytes: &[u8]) -> (Option<DateTime<Utc>>, &[u8]) {
    let Some(space) = bytes.iter().take(64).position(|byte| *byte == b' ') else {
        return (None, bytes);
    };
    match std::str::from_utf8(&bytes[..space]).ok().and_then(|stamp| DateTime::parse_from_rfc3339(stamp).ok()) {
        Some(at) => (Some(at.with_timezone(&Utc)), &bytes[space + 1..]),
        None => (None, bytes),
    }
}
