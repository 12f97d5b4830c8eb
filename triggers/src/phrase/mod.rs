//! Where a comment says the phrase, read as the forge shows the comment.
//!
//! The phrase is a token: it begins at the start of a line or after white space, and ends at white space, at the end
//! or before one of `,.:;!?`. What a reader does not read as the author's own words does not count: code (spans,
//! fenced and indented blocks, `<pre>` and `<code>`), quotations, links, addresses, HTML comments and tags. Letters of
//! A to Z match in either case, all others exactly.
//!
//! The scanner follows CommonMark for blocks, code spans and links as far as that decides what is shown as code or as
//! a quotation, and takes time in proportion to the text, whatever the text is. No input makes it fail.

mod blocks;
mod inline;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What a search for the phrase found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It stands there as a token. The first such place decides about the control word.
    Token {
        /// The word directly after it, if it is one of ours.
        control: Option<ControlWord>,
    },
    /// It is nowhere.
    Absent,
    /// It is only in code.
    InCode,
    /// It is only in a quotation.
    InQuote,
    /// It is only in a link.
    InUrl,
    /// It is only in an e-mail address.
    InAddress,
    /// It is only in HTML.
    InHtml,
    /// It is only a part of a longer word.
    InWord,
}

/// A word after the phrase that asks for something else than a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlWord {
    /// Stop what runs for this subject.
    Stop,
    /// Run the last one again.
    Retry,
    /// Say how it stands.
    Status,
}

impl ControlWord {
    /// The word itself.
    pub const fn word(self) -> &'static str {
        match self {
            ControlWord::Stop => "stop",
            ControlWord::Retry => "retry",
            ControlWord::Status => "status",
        }
    }
}

impl ControlWord {
    const ALL: [ControlWord; 3] = [ControlWord::Stop, ControlWord::Retry, ControlWord::Status];
}

/// A part of the text that is not the author's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    range: Range<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Quote,
    Url,
    Address,
    Html,
}

/// Looks for the phrase in a comment. An empty phrase is nowhere.
pub fn find_phrase(text: &str, phrase: &str) -> Found {
    if !occurrences(text, phrase).any(|_| true) {
        return Found::Absent;
    }

    let marks = marks(text);
    let mut marks = marks.iter().peekable();
    let mut elsewhere = None;
    for at in occurrences(text, phrase) {
        while marks.peek().is_some_and(|mark| mark.range.end <= at) {
            marks.next();
        }
        let end = at + phrase.len();
        match marks.peek().filter(|mark| mark.range.start < end) {
            Some(mark) => {
                elsewhere.get_or_insert(match mark.kind {
                    Kind::Code => Found::InCode,
                    Kind::Quote => Found::InQuote,
                    Kind::Url => Found::InUrl,
                    Kind::Address => Found::InAddress,
                    Kind::Html => Found::InHtml,
                });
            }
            None if is_token(text, at, end) => {
                return Found::Token {
                    control: control_word(&text[end..]),
                };
            }
            // Reading the whole word is worth it once only: words can be as long as the text.
            None if elsewhere.is_none() => elsewhere = Some(in_word(text, at, end)),
            None => {}
        }
    }
    elsewhere.unwrap_or(Found::Absent)
}

/// All marks, in the order of the text.
fn marks(text: &str) -> Vec<Mark> {
    let blocks = blocks::blocks(text);
    let mut marks = blocks.marks;
    for paragraph in blocks.paragraphs {
        inline::inline(text, paragraph, &mut marks);
    }
    marks.sort_by_key(|mark| mark.range.start);
    marks
}

/// Every place at which the phrase's letters stand, token or not.
fn occurrences<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let length = phrase.len();
    let last = if length == 0 {
        0
    } else {
        (text.len() + 1).saturating_sub(length)
    };
    (0..last).filter(move |at| {
        text.as_bytes()[*at..*at + length].eq_ignore_ascii_case(phrase.as_bytes())
            && text.is_char_boundary(*at)
            && text.is_char_boundary(at + length)
    })
}

fn is_token(text: &str, at: usize, end: usize) -> bool {
    let begins = text[..at].chars().next_back().is_none_or(char::is_whitespace);
    let mut behind = text[end..].chars();
    begins
        && match behind.next() {
            None => true,
            // `@pi.bot` is another account, and `pi.example` a host: a full stop ends a word only where a word can end.
            Some('.') => !behind.next().is_some_and(char::is_alphanumeric),
            Some(c) => c.is_whitespace() || ",:;!?".contains(c),
        }
}

/// What the word around a place is that is no token by itself.
fn in_word(text: &str, at: usize, end: usize) -> Found {
    let start = text[..at].rfind(char::is_whitespace).map_or(0, |before| before + 1);
    let start = (start..=at).find(|start| text.is_char_boundary(*start)).unwrap_or(at);
    let stop = text[end..]
        .find(char::is_whitespace)
        .map_or(text.len(), |length| end + length);
    let (before, after) = (&text[start..at], &text[end..stop]);
    let at_sign = (before.ends_with(char::is_alphanumeric) && text[at..end].starts_with('@'))
        || (after.starts_with('@') && after[1..].starts_with(char::is_alphanumeric));
    let host = |part: &str| part.contains("://") || part.to_ascii_lowercase().starts_with("www.");

    if host(before) || after.starts_with("://") || host(&text[start..stop]) {
        Found::InUrl
    } else if at_sign {
        Found::InAddress
    } else {
        Found::InWord
    }
}

/// The first word behind the phrase on the same line, if it is one of ours: `@pi stop`, `@pi: stop!`.
fn control_word(behind: &str) -> Option<ControlWord> {
    let behind = behind.trim_start_matches(|c| ",.:;!?".contains(c));
    let words = behind.trim_start_matches([' ', '\t']);
    if words.len() == behind.len() {
        return None;
    }
    let length = words.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(words.len());
    let (word, rest) = words.split_at(length);
    let ends = rest
        .chars()
        .next()
        .is_none_or(|c| c.is_whitespace() || ",.:;!?".contains(c));
    ControlWord::ALL
        .into_iter()
        .find(|control| ends && control.word().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
