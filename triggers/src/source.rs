//! The file's text itself: what may stand in it at all, and where a byte of it is.

use std::cell::Cell;

use crate::fault::{Fault, FaultKind, Span};
use crate::texts;

/// A triggers file has at most so many bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// Brackets may be nested so deep. The language itself needs six.
const MAX_DEPTH: usize = 32;

/// A quoted piece of the file in a fault has at most so many characters.
const MAX_FOUND: usize = 80;

/// A text with so many bad characters is not read any further.
const MAX_BAD_CHARACTERS: usize = 500;

/// A file's text, and what is needed to name places in it.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    line_starts: Vec<usize>,
    /// The place asked for last, and its column: faults come in the order of the file, and lines can be long.
    last: Cell<(usize, usize)>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Source {
            text,
            line_starts,
            last: Cell::new((0, 1)),
        }
    }

    /// Line and column, both from 1, the column in characters.
    pub(crate) fn place(&self, at: usize) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let (from, before) = match self.last.get() {
            (last, column) if last >= start && last <= at => (last, column),
            _ => (start, 1),
        };
        let column = before + self.text.get(from..at).map_or(0, |between| between.chars().count());
        self.last.set((at, column));
        (narrow(line), narrow(column))
    }

    /// A fault at these bytes.
    pub(crate) fn fault(
        &self,
        start: usize,
        end: usize,
        kind: FaultKind,
        message: String,
        help: Option<String>,
    ) -> Fault {
        let (line, column) = self.place(start);
        let found = self.text.get(start..end).unwrap_or_default();
        let cut: String = found.chars().take(MAX_FOUND).collect();
        let mut found_text = visible(&cut);
        if cut.len() < found.len() {
            found_text.push('…');
        }
        Fault {
            line,
            column,
            span: Span { start, end },
            kind,
            message,
            help,
            found: found_text,
        }
    }

    /// Everything that is wrong with the text before it is read as JSON, and whether it is worth reading.
    ///
    /// The JSON parser takes raw control characters and exotic white space; a file that says what may run must not
    /// have characters that a reviewer does not see.
    pub(crate) fn check(&self) -> (Vec<Fault>, bool) {
        if self.text.len() > MAX_BYTES {
            let message = texts::too_large(self.text.len(), MAX_BYTES);
            return (vec![self.fault(0, 0, FaultKind::TooLarge, message, None)], false);
        }

        let mut faults = Vec::new();
        let mut worth_reading = true;
        let mut within = Within::Json;
        let mut depth = 0_usize;
        let mut chars = self.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            let end = at + c.len_utf8();
            if at == 0 && c == '\u{feff}' {
                let help = Some(texts::BYTE_ORDER_MARK_HELP.to_owned());
                faults.push(self.fault(
                    at,
                    end,
                    FaultKind::ByteOrderMark,
                    texts::BYTE_ORDER_MARK.to_owned(),
                    help,
                ));
                continue;
            }
            let plain = c == '\n' || c == '\t' || (c == '\r' && next == Some('\n'));
            if is_invisible(c) && !plain {
                let message = texts::invisible_character(c);
                let help = Some(texts::INVISIBLE_CHARACTER_HELP.to_owned());
                faults.push(self.fault(at, end, FaultKind::InvisibleCharacter, message, help));
            } else if !c.is_ascii() && within == Within::Json {
                let message = texts::outside_a_string(c);
                faults.push(self.fault(at, end, FaultKind::Syntax, message, None));
            }
            within = match (within, c, next) {
                (Within::Json, '"', _) => Within::Text,
                (Within::Json, '/', Some('/')) => Within::LineComment,
                (Within::Json, '/', Some('*')) => {
                    chars.next();
                    Within::BlockComment
                }
                (Within::Text, '\\', Some('"' | '\\')) => {
                    chars.next();
                    Within::Text
                }
                (Within::Text, '"' | '\n', _) | (Within::LineComment, '\n', _) => Within::Json,
                (Within::BlockComment, '*', Some('/')) => {
                    chars.next();
                    Within::Json
                }
                (within, ..) => within,
            };
            if within == Within::Json {
                match c {
                    '{' | '[' => depth += 1,
                    '}' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            if faults.len() >= MAX_BAD_CHARACTERS {
                worth_reading = false;
                break;
            }
            if depth > MAX_DEPTH {
                let message = texts::too_deep(MAX_DEPTH);
                faults.push(self.fault(at, end, FaultKind::TooDeep, message, None));
                worth_reading = false;
                break;
            }
        }
        (faults, worth_reading)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Json,
    Text,
    LineComment,
    BlockComment,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Makes every character visible that a terminal would obey or that no reader sees: `\u{1b}`, `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Control characters (line feed and tab included), bidirectional controls, zero-width characters, tag characters
/// and variation selectors: nothing that a triggers file needs, and everything that can hide in one.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
