//! The block structure of a comment, as far as it decides what is code, what is quoted, and what is text.
//!
//! One pass over the lines with CommonMark's rules for containers: list items (their content's column), block quotes
//! (with lazy continuation: a line right below a quoted paragraph is shown inside the quotation), fences, indented
//! code, and HTML comments that begin a line. Work per line is in proportion to the line.

use std::ops::Range;

use super::{Kind, Mark};

/// What the lines of a comment are.
pub(super) struct Blocks {
    /// Code, quotations and HTML comments, in the order of the text, not overlapping.
    pub(super) marks: Vec<Mark>,
    /// Runs of text in which code spans, links and tags are still to be found.
    pub(super) paragraphs: Vec<Range<usize>>,
}

/// The block that the next line may continue.
enum Open {
    Nothing,
    Paragraph(Range<usize>),
    Fence {
        fence: Fence,
        base: usize,
    },
    IndentedCode,
    /// `lazy`: the quotation ends in a paragraph, which an unmarked line would continue.
    Quote {
        lazy: bool,
        fence: Option<Fence>,
    },
    HtmlComment,
}

#[derive(Clone, Copy)]
struct Fence {
    mark: u8,
    length: usize,
}

/// Reads the blocks of a text.
pub(super) fn blocks(text: &str) -> Blocks {
    let mut reader = Reader {
        text: text.as_bytes(),
        lists: Vec::new(),
        open: Open::Nothing,
        out: Blocks {
            marks: Vec::new(),
            paragraphs: Vec::new(),
        },
    };
    for line in lines(text.as_bytes()) {
        reader.line(line);
    }
    reader.close();
    reader.out
}

/// The lines without their ends (`\n`, `\r\n` or a lone `\r`).
fn lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(rest.len());
        let line = at..at + length;
        let ending = if rest[length..].starts_with(b"\r\n") { 2 } else { 1 };
        at = line.end + ending;
        Some(line)
    })
}

struct Reader<'a> {
    text: &'a [u8],
    /// The columns at which the contents of the open list items begin, outermost first. They rise.
    lists: Vec<usize>,
    open: Open,
    out: Blocks,
}

/// A place in a line: the byte, and the column that tabs make of it.
#[derive(Clone, Copy)]
struct Place {
    byte: usize,
    column: usize,
}

impl Reader<'_> {
    fn line(&mut self, line: Range<usize>) {
        if matches!(self.open, Open::HtmlComment) {
            return self.html_comment(line.start, line);
        }
        let start = self.skip_blanks(
            Place {
                byte: line.start,
                column: 0,
            },
            line.end,
        );
        let blank = start.byte == line.end;

        if let Open::Fence { fence, base } = self.open {
            if blank || start.column >= base {
                self.mark(line.clone(), Kind::Code);
                if !blank && start.column < base + 4 && closes(&self.text[start.byte..line.end], fence) {
                    self.open = Open::Nothing;
                }
                return;
            }
            self.open = Open::Nothing;
        }
        if blank {
            if !matches!(self.open, Open::IndentedCode) {
                self.close();
            }
            return;
        }

        let matched = self.lists.iter().take_while(|column| start.column >= **column).count();
        self.starters(line, start, matched);
    }

    /// Looks at what the line begins with, through any number of list markers.
    fn starters(&mut self, line: Range<usize>, mut at: Place, mut matched: usize) {
        // Where the last look for a thematic break met something else: up to there no other look of the same mark can
        // succeed. Without it a line of a million list markers would take a million looks at its end.
        let mut no_rule: Option<(u8, usize)> = None;
        loop {
            let base = matched
                .checked_sub(1)
                .and_then(|last| self.lists.get(last))
                .copied()
                .unwrap_or(0);
            let rest = &self.text[at.byte..line.end];
            let indent = at.column.saturating_sub(base);
            let continues = matches!(self.open, Open::Paragraph(_) | Open::Quote { lazy: true, .. });

            if indent >= 4 {
                if continues {
                    return self.text_line(line, at);
                }
                self.enter(matched);
                self.mark(line, Kind::Code);
                self.open = Open::IndentedCode;
                return;
            }
            if rest.first() == Some(&b'>') {
                return self.quote_line(line, at, matched);
            }
            if let Some(fence) = opens(rest) {
                self.enter(matched);
                self.mark(line, Kind::Code);
                self.open = Open::Fence { fence, base };
                return;
            }
            if rest.starts_with(b"<!--") {
                self.enter(matched);
                return self.html_comment(at.byte, line);
            }
            if is_heading(rest) {
                self.enter(matched);
                self.out.paragraphs.push(at.byte..line.end);
                return;
            }
            if !no_rule.is_some_and(|(mark, until)| rest.first() == Some(&mark) && at.byte <= until) {
                match rule(rest) {
                    Rule::Yes => return self.enter(matched),
                    Rule::No => {}
                    Rule::BrokenAt(offset) => no_rule = rest.first().map(|mark| (*mark, at.byte + offset)),
                }
            }
            let own_paragraph = matches!(self.open, Open::Paragraph(_)) && matched == self.lists.len();
            let Some(width) = list_marker(rest, own_paragraph) else {
                if !continues {
                    self.enter(matched);
                }
                return self.text_line(line, at);
            };

            self.enter(matched);
            let after = Place {
                byte: at.byte + width,
                column: at.column + width,
            };
            let content = self.skip_blanks(after, line.end);
            let gap = content.column - after.column;
            let empty = content.byte == line.end;
            self.lists.push(if empty || gap > 4 {
                after.column + 1
            } else {
                content.column
            });
            if empty {
                return;
            }
            matched += 1;
            at = content;
        }
    }

    /// A line of plain text: it begins a paragraph, or continues the open one, or the one in the quotation above.
    fn text_line(&mut self, line: Range<usize>, at: Place) {
        match &mut self.open {
            Open::Paragraph(range) => range.end = line.end,
            Open::Quote { lazy: true, .. } => self.mark(line, Kind::Quote),
            Open::Nothing | Open::Fence { .. } | Open::IndentedCode | Open::Quote { .. } | Open::HtmlComment => {
                self.open = Open::Paragraph(at.byte..line.end);
            }
        }
    }

    fn quote_line(&mut self, line: Range<usize>, at: Place, matched: usize) {
        let fence = match self.open {
            Open::Quote { fence, .. } if matched == self.lists.len() => fence,
            Open::Nothing
            | Open::Paragraph(_)
            | Open::Fence { .. }
            | Open::IndentedCode
            | Open::Quote { .. }
            | Open::HtmlComment => None,
        };
        let inner_paragraph = matches!(self.open, Open::Quote { lazy: true, .. });
        self.enter(matched);
        let (lazy, fence) = quoted(&self.text[at.byte..line.end], fence, inner_paragraph);
        self.mark(at.byte..line.end, Kind::Quote);
        self.open = Open::Quote { lazy, fence };
    }

    /// Marks the comment that begins at `from` or before; what follows it on its last line is text again.
    fn html_comment(&mut self, from: usize, line: Range<usize>) {
        let search = if matches!(self.open, Open::HtmlComment) {
            from
        } else {
            (from + 4).min(line.end)
        };
        match find(&self.text[search..line.end], b"-->") {
            Some(found) => {
                let end = search + found + 3;
                self.mark(from..end, Kind::Html);
                self.open = Open::Nothing;
                if end < line.end {
                    self.out.paragraphs.push(end..line.end);
                }
            }
            None => {
                self.mark(from..line.end, Kind::Html);
                self.open = Open::HtmlComment;
            }
        }
    }

    /// Ends the open block and the list items that this line is not in.
    fn enter(&mut self, matched: usize) {
        self.close();
        self.lists.truncate(matched);
    }

    fn close(&mut self) {
        if let Open::Paragraph(range) = std::mem::replace(&mut self.open, Open::Nothing) {
            self.out.paragraphs.push(range);
        }
    }

    fn mark(&mut self, range: Range<usize>, kind: Kind) {
        self.out.marks.push(Mark { range, kind });
    }

    fn skip_blanks(&self, mut at: Place, end: usize) -> Place {
        while at.byte < end {
            match self.text[at.byte] {
                b' ' => at.column += 1,
                b'\t' => at.column += 4 - at.column % 4,
                _ => break,
            }
            at.byte += 1;
        }
        at
    }
}

/// A fence of three or more backticks (with none in its info string) or tildes.
fn opens(rest: &[u8]) -> Option<Fence> {
    let mark = *rest.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = run(rest, mark);
    let clean = mark == b'~' || !rest[length..].contains(&b'`');
    (length >= 3 && clean).then_some(Fence { mark, length })
}

fn closes(rest: &[u8], fence: Fence) -> bool {
    let length = run(rest, fence.mark);
    length >= fence.length && rest[length..].iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn is_heading(rest: &[u8]) -> bool {
    let length = run(rest, b'#');
    (1..=6).contains(&length) && matches!(rest.get(length), None | Some(b' ' | b'\t'))
}

enum Rule {
    Yes,
    No,
    /// It began like one, up to this byte.
    BrokenAt(usize),
}

/// A thematic break, or the line under a heading: both end a paragraph.
fn rule(rest: &[u8]) -> Rule {
    let Some(&mark) = rest.first().filter(|byte| matches!(byte, b'-' | b'*' | b'_' | b'=')) else {
        return Rule::No;
    };
    let mut marks = 0;
    for (offset, byte) in rest.iter().enumerate() {
        match byte {
            b' ' | b'\t' => {}
            byte if *byte == mark => marks += 1,
            _ => return Rule::BrokenAt(offset),
        }
    }
    if marks >= 3 || mark == b'=' {
        Rule::Yes
    } else {
        Rule::No
    }
}

/// The width of a list marker, without the white space behind it. Within a paragraph only a marker with text behind
/// it begins a list, and a numbered one only with the number 1.
fn list_marker(rest: &[u8], in_paragraph: bool) -> Option<usize> {
    let width = match rest.first()? {
        b'-' | b'+' | b'*' => 1,
        b'0'..=b'9' => {
            let digits = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
            let one = &rest[..digits] == b"1";
            if digits > 9 || !matches!(rest.get(digits), Some(b'.' | b')')) || (in_paragraph && !one) {
                return None;
            }
            digits + 1
        }
        _ => return None,
    };
    let blank_behind = matches!(rest.get(width), None | Some(b' ' | b'\t'));
    let text_behind = rest[width..].iter().any(|byte| !matches!(byte, b' ' | b'\t'));
    (blank_behind && (text_behind || !in_paragraph)).then_some(width)
}

/// Whether a quoted line ends in a paragraph, and the fence that is open behind it.
fn quoted(line: &[u8], fence: Option<Fence>, in_paragraph: bool) -> (bool, Option<Fence>) {
    let mut rest = line;
    let mut indent = 0;
    loop {
        rest = match rest.first() {
            Some(b'>') => rest[1..].strip_prefix(b" ").unwrap_or(&rest[1..]),
            _ => break,
        };
        indent = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if indent < 4 {
            rest = &rest[indent..];
        }
    }
    if let Some(fence) = fence {
        return (false, (!closes(rest, fence)).then_some(fence));
    }
    if indent >= 4 {
        return (in_paragraph, None);
    }
    while let Some(width) = list_marker(rest, false) {
        let behind = &rest[width..];
        rest = &behind[run(behind, b' ')..];
    }
    if let Some(fence) = opens(rest) {
        return (false, Some(fence));
    }
    let text = rest.iter().any(|byte| !matches!(byte, b' ' | b'\t'));
    (
        text && !is_heading(rest) && !matches!(rule(rest), Rule::Yes) && !rest.starts_with(b"<!--"),
        None,
    )
}

fn run(rest: &[u8], mark: u8) -> usize {
    rest.iter().take_while(|byte| **byte == mark).count()
}

/// The first place of a short needle.
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
