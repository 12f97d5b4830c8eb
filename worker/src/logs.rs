//! Reading a container's log: Docker's pieces become bounded lines with numbers that a second reading repeats.
//!
//! A worker that starts again reads the whole log of an adopted container from its first byte. Nothing here depends
//! on when a line was read: numbers run in the order of Docker's file, both streams together, and the rate is counted
//! in seconds of Docker's own stamps. So the second reading makes the same lines with the same numbers, and the
//! table's key drops what is already there: no gap, no repetition, and no position to remember.
//!
//! A line longer than the limit is cut. Lines over the rate are dropped, and one line with the number of the first
//! dropped one says how many. After [`Reader::over`] only what the outcome needs is kept.
//!
//! Docker's pieces have at most 16 KiB, each with its own stamp; only the last piece of a line ends in a newline.

use bollard::container::LogOutput;
use chrono::{DateTime, Utc};
use contract::{RunnerEvent, RunnerLine};

use crate::settings::LogLimits;

/// One whole line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its number in the attempt, from 1.
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
    /// Text of standard error: for people, believed by nobody.
    Text,
    /// So many lines were over the rate and are not kept.
    Dropped(u32),
}

/// Which of the container's streams a piece came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// Makes lines of pieces.
#[derive(Debug)]
pub struct Reader {
    limits: LogLimits,
    stdout: Pending,
    stderr: Pending,
    seq: i64,
    second: i64,
    in_second: u32,
    dropped: Option<(i64, u32)>,
    bytes: u64,
    unreadable: u64,
}

#[derive(Debug, Default)]
struct Pending {
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
            seq: 0,
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
        let (stream, bytes) = match piece {
            LogOutput::StdOut { message } | LogOutput::Console { message } => (Stream::Out, message),
            LogOutput::StdErr { message } => (Stream::Err, message),
            LogOutput::StdIn { .. } => return Vec::new(),
        };
        let (at, payload) = split_stamp(bytes);
        let ended = payload.last() == Some(&b'\n');
        let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
        self.bytes += on_disk(payload);
        let room = self.limits.line;
        let pending = self.pending(stream);
        let free = room.saturating_sub(pending.bytes.len());
        pending.cut |= payload.len() > free;
        pending.bytes.extend_from_slice(&payload[..payload.len().min(free)]);
        if ended { self.line(stream, at) } else { Vec::new() }
    }

    /// Gives what stands without its newline when the log has ended.
    pub fn end(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        for stream in [Stream::Out, Stream::Err] {
            if !self.pending(stream).bytes.is_empty() {
                lines.extend(self.line(stream, None));
            }
        }
        lines.extend(self.say_dropped(None));
        lines
    }

    fn pending(&mut self, stream: Stream) -> &mut Pending {
        match stream {
            Stream::Out => &mut self.stdout,
            Stream::Err => &mut self.stderr,
        }
    }

    fn line(&mut self, stream: Stream, at: Option<DateTime<Utc>>) -> Vec<Line> {
        self.seq += 1;
        let seq = self.seq;
        let pending = std::mem::take(self.pending(stream));
        let text = String::from_utf8_lossy(&pending.bytes).replace('\0', "\u{fffd}");
        let what = match stream {
            Stream::Err => What::Text,
            Stream::Out if pending.cut => What::Unreadable,
            Stream::Out => {
                serde_json::from_str::<RunnerLine>(&text).map_or(What::Unreadable, |event| What::Event(Box::new(event)))
            }
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
        let needed = matches!(&what, What::Event(line) if decides(&line.event));
        if !needed && (self.in_second > self.limits.lines_per_second || self.over()) {
            self.dropped = Some(self.dropped.map_or((seq, 1), |(first, count)| (first, count + 1)));
            return lines;
        }
        lines.push(Line { seq, at, text, what });
        lines
    }

    fn say_dropped(&mut self, at: Option<DateTime<Utc>>) -> Option<Line> {
        let (seq, count) = self.dropped.take()?;
        Some(Line {
            seq,
            at,
            text: crate::texts::job::lines_dropped(count),
            what: What::Dropped(count),
        })
    }
}

/// Docker puts `2026-11-30T23:40:00.123456789Z ` before each piece.
fn split_stamp(bytes: &[u8]) -> (Option<DateTime<Utc>>, &[u8]) {
    let Some(space) = bytes.iter().take(64).position(|byte| *byte == b' ') else {
        return (None, bytes);
    };
    match std::str::from_utf8(&bytes[..space])
        .ok()
        .and_then(|stamp| DateTime::parse_from_rfc3339(stamp).ok())
    {
        Some(at) => (Some(at.with_timezone(&Utc)), &bytes[space + 1..]),
        None => (None, bytes),
    }
}

/// What a piece takes in Docker's file, on the high side: JSON around it, and characters that JSON writes longer. The
/// total is counted so, or a job of empty lines would turn the file over before it was stopped.
fn on_disk(payload: &[u8]) -> u64 {
    let longer = if std::str::from_utf8(payload).is_ok() { 0 } else { 5 };
    let of = |byte: &u8| match byte {
        b'"' | b'\\' | b'\t' => 2,
        0..=0x1f | 0x7f | b'<' | b'>' | b'&' => 6,
        0x80.. => 1 + longer,
        _ => 1,
    };
    128 + payload.iter().map(of).sum::<u64>()
}

/// Events that the outcome needs: kept whatever else was printed.
fn decides(event: &RunnerEvent) -> bool {
    matches!(
        event,
        RunnerEvent::Runner { .. }
            | RunnerEvent::Readback { .. }
            | RunnerEvent::ToolsExcluded { .. }
            | RunnerEvent::Started {}
            | RunnerEvent::Stopping { .. }
            | RunnerEvent::Fault { .. }
            | RunnerEvent::Result { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: &str = "2026-11-30T23:40:00.000000001Z";

    fn reader() -> Reader {
        Reader::new(LogLimits {
            line: 40_000,
            lines_per_second: 3,
            total: 100_000,
        })
    }

    fn out(text: &str) -> LogOutput {
        LogOutput::StdOut {
            message: format!("{STAMP} {text}").into_bytes().into(),
        }
    }

    fn err(text: &str) -> LogOutput {
        LogOutput::StdErr {
            message: format!("{STAMP} {text}").into_bytes().into(),
        }
    }

    #[test]
    fn a_line_that_docker_cut_into_pieces_is_joined() {
        let mut reader = reader();
        assert_eq!(reader.take(&out(&"a".repeat(16_384))), []);
        assert_eq!(reader.take(&out(&"b".repeat(16_384))), []);
        let lines = reader.take(&out("c\n"));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].text.len(), 2 * 16_384 + 1);
    }

    #[test]
    fn a_line_of_the_contract_is_an_event_and_any_other_is_kept_and_counted() {
        let mut reader = reader();
        let event = reader.take(&out("{\"seq\":1,\"event\":\"started\"}\n")).remove(0);
        let forged = reader.take(&out("{\"event\":\"started\"}\n")).remove(0);
        let text = reader.take(&err("{\"seq\":1,\"event\":\"started\"}\n")).remove(0);

        assert!(matches!(&event.what, What::Event(line) if line.event == RunnerEvent::Started {}));
        assert_eq!(forged.what, What::Unreadable);
        assert_eq!(text.what, What::Text, "standard error yields no events");
        assert_eq!(reader.unreadable(), 1);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_believed_by_nobody() {
        let mut reader = reader();
        for _ in 0..4 {
            reader.take(&out(&"x".repeat(16_384)));
        }
        let line = reader.take(&out("\n")).remove(0);
        assert_eq!((line.text.len(), line.what), (40_000, What::Unreadable));
    }

    #[test]
    fn lines_over_the_rate_are_dropped_counted_and_said() {
        let mut reader = reader();
        let kept: usize = (0..10).map(|n| reader.take(&err(&format!("{n}\n"))).len()).sum();
        let said = reader.end();

        assert_eq!(kept, 3);
        assert_eq!((said[0].seq, &said[0].what), (4, &What::Dropped(7)));
    }

    #[test]
    fn empty_lines_count_for_what_they_take_in_dockers_file() {
        let mut reader = reader();
        for _ in 0..1000 {
            reader.take(&err("\n"));
        }
        assert!(reader.over(), "1000 empty lines of a limit of 100,000 bytes");
    }

    #[test]
    fn what_the_outcome_needs_is_kept_over_the_rate_and_over_the_total() {
        let mut reader = reader();
        for _ in 0..10 {
            reader.take(&err(&format!("{}\n", "x".repeat(16_000))));
        }
        assert!(reader.over());
        let lines = reader.take(&out(
            "{\"seq\":9,\"event\":\"fault\",\"reason\":\"host-fault\",\"detail\":\"\"}\n",
        ));
        assert!(matches!(lines.last().unwrap().what, What::Event(_)), "{lines:?}");
    }

    #[test]
    fn reading_again_makes_the_same_lines_with_the_same_numbers() {
        let pieces: Vec<LogOutput> = (0..50)
            .map(|n| {
                let stamp = format!("2026-11-30T23:40:{:02}.5Z", n / 8);
                let text = if n % 5 == 4 {
                    format!("{stamp} tail {n}")
                } else {
                    format!("{stamp} line {n}\n")
                };
                let message = text.into_bytes().into();
                if n % 3 == 0 {
                    LogOutput::StdErr { message }
                } else {
                    LogOutput::StdOut { message }
                }
            })
            .collect();
        let read = |reader: &mut Reader| {
            let mut lines: Vec<Line> = pieces.iter().flat_map(|piece| reader.take(piece)).collect();
            lines.extend(reader.end());
            lines
        };

        let first = read(&mut reader());

        assert_eq!(first, read(&mut reader()));
        let mut numbers: Vec<i64> = first.iter().map(|line| line.seq).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), first.len(), "no number stands twice");
    }

    #[test]
    fn bytes_that_no_row_can_hold_are_replaced() {
        let mut reader = reader();
        let message = [STAMP.as_bytes(), b" a\0b\xff\n"].concat().into();
        let line = reader.take(&LogOutput::StdErr { message }).remove(0);
        assert_eq!(line.text, "a\u{fffd}b\u{fffd}");
    }
}
