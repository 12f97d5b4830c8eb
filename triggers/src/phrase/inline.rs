//! What inside a paragraph is not the author's own words: code spans, links' addresses, HTML tags and comments.

use std::collections::HashMap;
use std::ops::Range;

use super::blocks::find;
use super::{Kind, Mark};

/// Marks them, in the order of the text, not overlapping.
pub(super) fn inline(text: &str, paragraph: Range<usize>, marks: &mut Vec<Mark>) {
    let mut reader = Reader {
        text: &text.as_bytes()[..paragraph.end],
        runs: BacktickRuns::of(text.as_bytes(), paragraph.clone()),
        absent: Absent::default(),
        last_parenthesis: text.as_bytes()[paragraph.clone()]
            .iter()
            .rposition(|byte| *byte == b')'),
    };
    reader.last_parenthesis = reader.last_parenthesis.map(|at| paragraph.start + at);
    let mut at = paragraph.start;
    while let Some(byte) = reader.text.get(at) {
        let found = match byte {
            b'\\' => {
                at += 1 + usize::from(reader.text.get(at + 1).is_some_and(u8::is_ascii_punctuation));
                continue;
            }
            b'`' => reader.code_span(at),
            b'<' => reader.tag(at),
            b']' => reader.link(at),
            _ => Step::Over(at + 1),
        };
        match found {
            Step::Over(next) => at = next,
            Step::Marked(kind, end) => {
                marks.push(Mark { range: at..end, kind });
                at = end;
            }
        }
    }
}

enum Step {
    /// Nothing here; go on at that byte.
    Over(usize),
    /// Something of that kind, up to that byte.
    Marked(Kind, usize),
}

struct Reader<'a> {
    text: &'a [u8],
    runs: BacktickRuns,
    absent: Absent,
    /// Behind it no link can end.
    last_parenthesis: Option<usize>,
}

/// What was looked for up to the end and is not there: it need not be looked for again. This keeps hostile text
/// (`<<<<…`, `](](…`) from being read once per character.
#[derive(Default)]
struct Absent {
    comment_end: bool,
    angle: bool,
    elements: Vec<&'static [u8]>,
}

/// Elements whose text is shown as it stands, or not at all: their ends, and how they count.
const RAW_ELEMENTS: [(&[u8], &[u8], Kind); 6] = [
    (b"pre", b"</pre", Kind::Code),
    (b"code", b"</code", Kind::Code),
    (b"samp", b"</samp", Kind::Code),
    (b"blockquote", b"</blockquote", Kind::Quote),
    (b"script", b"</script", Kind::Html),
    (b"style", b"</style", Kind::Html),
];

impl Reader<'_> {
    fn code_span(&mut self, at: usize) -> Step {
        let length = self.text[at..].iter().take_while(|byte| **byte == b'`').count();
        match self.runs.next_of(length, at + length) {
            Some(closer) => Step::Marked(Kind::Code, closer + length),
            None => Step::Over(at + length),
        }
    }

    fn tag(&mut self, at: usize) -> Step {
        let rest = &self.text[at..];
        if rest.starts_with(b"<!--") {
            if self.absent.comment_end {
                return Step::Over(at + 4);
            }
            return match find(&rest[4..], b"-->") {
                Some(found) => Step::Marked(Kind::Html, at + 4 + found + 3),
                None => {
                    self.absent.comment_end = true;
                    Step::Over(at + 4)
                }
            };
        }
        let begins_a_tag = rest
            .get(1)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?'));
        if !begins_a_tag || self.absent.angle {
            return Step::Over(at + 1);
        }
        let Some(end) = rest.iter().position(|byte| *byte == b'>') else {
            self.absent.angle = true;
            return Step::Over(at + 1);
        };
        let inside = &rest[1..end];
        if !inside.iter().any(u8::is_ascii_whitespace) && inside.iter().any(|byte| matches!(byte, b':' | b'@')) {
            return Step::Marked(
                if inside.contains(&b':') {
                    Kind::Url
                } else {
                    Kind::Address
                },
                at + end + 1,
            );
        }
        self.raw_element(at, inside)
            .unwrap_or(Step::Marked(Kind::Html, at + end + 1))
    }

    /// An opened `<pre>`, `<code>` and the like: up to its end.
    fn raw_element(&mut self, at: usize, inside: &[u8]) -> Option<Step> {
        let name_length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = &inside[..name_length];
        let (_, close, kind) = RAW_ELEMENTS
            .into_iter()
            .find(|(raw, ..)| raw.eq_ignore_ascii_case(name))?;
        if self.absent.elements.contains(&close) {
            return None;
        }
        let from = at + 1 + inside.len();
        let found = self.text[from..]
            .windows(close.len())
            .position(|window| window.eq_ignore_ascii_case(close));
        let Some(found) = found else {
            self.absent.elements.push(close);
            return None;
        };
        let closed = from + found + close.len();
        let end = self.text[closed..]
            .iter()
            .position(|byte| *byte == b'>')
            .map_or(self.text.len(), |end| closed + end + 1);
        Some(Step::Marked(kind, end))
    }

    /// `](address "title")` behind a link's text.
    fn link(&mut self, at: usize) -> Step {
        let next = Step::Over(at + 1);
        if self.text.get(at + 1) != Some(&b'(') || self.last_parenthesis.is_none_or(|last| last < at) {
            return next;
        }
        match link_end(&self.text[at + 2..]) {
            Some(length) => Step::Marked(Kind::Url, at + 2 + length),
            None => next,
        }
    }
}

/// CommonMark lets an implementation stop here, and hostile text must not make us read on.
const MAX_PARENTHESES: usize = 32;

/// The length of `address "title")` and the blanks around, when it is that.
fn link_end(rest: &[u8]) -> Option<usize> {
    let mut at = blanks(rest, 0);
    if rest.get(at) == Some(&b'<') {
        at += 1 + rest[at + 1..]
            .iter()
            .position(|byte| matches!(byte, b'>' | b'<' | b'\n'))?;
        at += usize::from(rest.get(at) == Some(&b'>'));
    } else {
        let mut depth = 0_usize;
        while let Some(byte) = rest.get(at).filter(|byte| !byte.is_ascii_whitespace()) {
            match byte {
                b'(' if depth == MAX_PARENTHESES => return None,
                b'(' => depth += 1,
                b')' if depth == 0 => break,
                b')' => depth -= 1,
                b'\\' => at += 1,
                _ => {}
            }
            at += 1;
        }
    }
    let gap = blanks(rest, at);
    let closing = match rest.get(gap)? {
        b')' => return Some(gap + 1),
        b'"' if gap > at => b'"',
        b'\'' if gap > at => b'\'',
        b'(' if gap > at => b')',
        _ => return None,
    };
    let title = gap + 1;
    let mut end = title;
    loop {
        match rest.get(end)? {
            b'\\' => end += 1,
            byte if *byte == closing => break,
            b'(' if closing == b')' => return None,
            _ => {}
        }
        end += 1;
    }
    let behind = blanks(rest, end + 1);
    (rest.get(behind) == Some(&b')')).then_some(behind + 1)
}

fn blanks(rest: &[u8], mut at: usize) -> usize {
    while rest.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The runs of backticks of a paragraph by length, so that the end of a code span is found without a search.
struct BacktickRuns {
    by_length: HashMap<usize, Vec<usize>>,
}

impl BacktickRuns {
    fn of(text: &[u8], paragraph: Range<usize>) -> Self {
        let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut at = paragraph.start;
        while at < paragraph.end {
            let length = text[at..paragraph.end].iter().take_while(|byte| **byte == b'`').count();
            if length > 0 {
                by_length.entry(length).or_default().push(at);
            }
            at += length.max(1);
        }
        // Taken from the end as the reader goes on.
        by_length.values_mut().for_each(|runs| runs.reverse());
        BacktickRuns { by_length }
    }

    /// The next run of exactly that length at or behind `from`. Asked with rising `from` only.
    fn next_of(&mut self, length: usize, from: usize) -> Option<usize> {
        let runs = self.by_length.get_mut(&length)?;
        while runs.last().is_some_and(|run| *run < from) {
            runs.pop();
        }
        runs.last().copied()
    }
}
