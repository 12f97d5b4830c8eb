//! Standard output: one [`RunnerLine`] a line, numbered, bounded.

use std::io::{self, Write};

use contract::{RunnerEvent, RunnerLine, limits};

/// How many warnings a run may print. A hostile job must not fill the log through us.
const MOST_WARNINGS: u32 = 100;

/// Numbers and writes lines.
pub(crate) struct Out<W> {
    to: W,
    seq: u64,
    warnings: u32,
}

impl<W: Write> Out<W> {
    /// Lines go to `to`, numbered from 1.
    pub(crate) fn new(to: W) -> Out<W> {
        Out {
            to,
            seq: 0,
            warnings: 0,
        }
    }

    /// Writes one line. An error means that nobody reads any more; the run goes on, the gateway still knows of it.
    pub(crate) fn say(&mut self, event: RunnerEvent) {
        let text = self.line(event);
        let _nobody_reads = self.write(&text);
    }

    /// Writes a warning, at most [`MOST_WARNINGS`] of them.
    pub(crate) fn warn(&mut self, word: &str, detail: &str) {
        self.warnings += 1;
        if self.warnings <= MOST_WARNINGS {
            self.say(RunnerEvent::Warning {
                word: word.to_owned(),
                detail: excerpt(detail),
            });
        }
    }

    fn line(&mut self, event: RunnerEvent) -> String {
        self.seq += 1;
        let seq = self.seq;
        match serde_json::to_string(&RunnerLine { seq, event }) {
            Ok(text) if text.len() <= limits::RUNNER_LINE => text,
            Ok(text) => replaced(
                seq,
                "line-too-long",
                &text[..text.floor_char_boundary(limits::EXCERPT / 2)],
            ),
            Err(error) => replaced(seq, "line-unwritable", &error.to_string()),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())?;
        self.to.write_all(b"\n")?;
        self.to.flush()
    }
}

fn replaced(seq: u64, word: &str, detail: &str) -> String {
    let event = RunnerEvent::Warning {
        word: word.to_owned(),
        detail: excerpt(detail),
    };
    serde_json::to_string(&RunnerLine { seq, event }).unwrap_or_default()
}

/// The beginning of a text for a line of the log.
pub(crate) fn excerpt(text: &str) -> String {
    cut(text, limits::EXCERPT).0
}

/// The beginning of a text that takes at most `most` bytes *as JSON*, and whether anything was left out: a text of
/// control characters grows sixfold when it is escaped.
pub(crate) fn cut(text: &str, most: usize) -> (String, bool) {
    let mut size = 0_usize;
    for (at, character) in text.char_indices() {
        size += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\u{0}'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if size > most {
            return (text[..at].to_owned(), true);
        }
    }
    (text.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use contract::{ReportedUsage, ResultOutcome};

    use super::*;

    fn written(events: impl IntoIterator<Item = RunnerEvent>) -> Vec<String> {
        let mut out = Out::new(Vec::new());
        events.into_iter().for_each(|event| out.say(event));
        String::from_utf8(out.to).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_numbered_from_one() {
        let lines = written([RunnerEvent::Started {}, RunnerEvent::Turn { turn: 1 }]);
        assert_eq!(
            lines,
            [r#"{"seq":1,"event":"started"}"#, r#"{"seq":2,"event":"turn","turn":1}"#]
        );
    }

    #[test]
    fn the_longest_reply_of_control_characters_still_fits_a_line() {
        for reply in [
            "\u{1}".repeat(400_000),
            "\n".repeat(400_000),
            "é\u{2028}".repeat(100_000),
        ] {
            let (reply, reply_cut) = cut(&reply, limits::REPLY);
            assert!(reply_cut);
            let usage = ReportedUsage::default();
            let event = RunnerEvent::Result {
                outcome: ResultOutcome::Completed,
                turns: 1,
                usage,
                reply,
                reply_cut,
                reason: None,
            };
            let lines = written([event]);
            assert_eq!(lines.len(), 1);
            assert!(lines[0].len() <= limits::RUNNER_LINE && lines[0].contains(r#""replyCut":true"#));
        }
    }

    #[test]
    fn a_line_that_would_be_too_long_becomes_a_warning_under_its_number() {
        let text = "x".repeat(limits::RUNNER_LINE);
        let event = RunnerEvent::ToolStart {
            call: "1".into(),
            tool: text,
            arguments: String::new(),
        };
        let lines = written([event]);
        assert!(
            lines[0].starts_with(r#"{"seq":1,"event":"warning","word":"line-too-long""#),
            "{}",
            &lines[0][..80]
        );
        assert!(lines[0].len() < 2 * limits::EXCERPT);
    }

    #[test]
    fn warnings_end_after_a_hundred() {
        let mut out = Out::new(Vec::new());
        (0..1_000).for_each(|_| out.warn("odd", "again"));
        assert_eq!(String::from_utf8(out.to).unwrap().lines().count(), 100);
    }
}
