//! Words that make a forge do something: mentions, and closing words with what they close.
//!
//! What a forge makes of them, and why they are put into code spans: Forgejo and Gitea look for mentions twice. For
//! the notification they strip the Markdown, which leaves out code, and look at what is left; for the page they look
//! at the text nodes of the finished HTML, outside `code` and `pre`. A backslash (`\@all`) or an entity (`&#64;all`)
//! is resolved before the second look, so it is linked; a zero-width character is what we remove ourselves. A code
//! span is left out by both looks, and by GitHub and GitLab too. The same holds for `#7` behind a closing word. Where
//! the reference is a link, the word before it goes into the code span instead, so that the link stays usable.
//!
//! Emphasis does not help a word to hide: the text is looked at with all marks taken away.

use super::OwnSubject;

/// The closing and reopening words of Forgejo, Gitea, GitHub and GitLab, lower case.
const CLOSING: [&str; 22] = [
    "close",
    "closes",
    "closed",
    "closing",
    "fix",
    "fixes",
    "fixed",
    "fixing",
    "resolve",
    "resolves",
    "resolved",
    "resolving",
    "implement",
    "implements",
    "implemented",
    "implementing",
    "reopen",
    "reopens",
    "reopened",
    "reopening",
    "duplicate",
    "duplicates",
];

/// Stands for a link in the text that is looked at: the address itself is not read as words.
pub(super) const LINK: char = '\u{FFFC}';

/// What is to be put into a code span: byte ranges of the looked-at text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Armed {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A character that a login, an owner or a repository may have.
fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Mentions in one piece of text, the requester's aside. The piece's edges count as edges of words: forges look at
/// each piece by itself.
pub(super) fn mentions(piece: &str, requester: Option<&str>) -> Vec<Armed> {
    let mut armed = Vec::new();
    let mut before = None;
    let mut chars = piece.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c != '@' || before.is_some_and(|c: char| c.is_ascii_alphanumeric()) {
            before = Some(c);
            continue;
        }
        let mut end = start + 1;
        while let Some((at, next)) = chars.peek().copied() {
            if !is_name_char(next) && next != '/' && next != '@' {
                break;
            }
            end = at + next.len_utf8();
            before = Some(next);
            chars.next();
        }
        let name = piece[start + 1..end].trim_end_matches(['.', '/', '@']);
        let ours = requester.is_some_and(|login| !login.is_empty() && login.eq_ignore_ascii_case(name));
        let end = start + 1 + name.len();
        // A bare `@` stays, but not at the end of a piece: the name may stand in the next one.
        let bare = name.is_empty() && end < piece.len();
        if !ours && !bare {
            armed.push(Armed { start, end });
        }
    }
    armed
}

/// References behind closing words, in the whole text. A word closes everything in the list that follows it.
///
/// `flat` is the text without marks, in which [`LINK`] stands for a link; `is_issue_link` says whether the n-th of
/// those points to an issue or pull request.
pub(super) fn closers(flat: &str, own: Option<OwnSubject<'_>>, is_issue_link: impl Fn(usize) -> bool) -> Vec<Armed> {
    let mut armed = Vec::new();
    let links: Vec<usize> = flat.match_indices(LINK).map(|(at, _)| at).collect();
    for (start, end) in words(flat) {
        if !CLOSING.contains(&flat[start..end].to_lowercase().as_str()) {
            continue;
        }
        let mut at = end;
        let mut word_armed = false;
        while let Some(next) = skip_between(flat, at) {
            let rest = &flat[next..];
            if rest.starts_with(LINK) {
                let nth = links.partition_point(|at| *at < next);
                if !is_issue_link(nth) {
                    break;
                }
                if !word_armed {
                    armed.push(Armed { start, end });
                    word_armed = true;
                }
                at = next + LINK.len_utf8();
                continue;
            }
            let Some(length) = reference(rest) else { break };
            if !names_own(&rest[..length], own) {
                armed.push(Armed {
                    start: next,
                    end: next + length,
                });
            }
            at = next + length;
        }
    }
    armed.sort_by_key(|armed| armed.start);
    armed.dedup();
    armed
}

/// The words of a text: runs of letters, as byte ranges.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut open = None;
    for (at, c) in text.char_indices() {
        match (c.is_alphabetic(), open) {
            (true, None) => open = Some(at),
            (false, Some(start)) => {
                words.push((start, at));
                open = None;
            }
            _ => {}
        }
    }
    if let Some(start) = open {
        words.push((start, text.len()));
    }
    words
}

/// Skips what may stand between a closing word and a reference, or between two references: white space, commas,
/// colons, brackets and quotes, `and`, `issue`. `None` at the end of the text.
fn skip_between(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let c = rest.chars().next()?;
        if c.is_whitespace() || matches!(c, ',' | ':' | ';' | '(' | '[' | '"' | '\'' | '&' | '-' | '*') {
            at += c.len_utf8();
            continue;
        }
        let word_end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let word = rest[..word_end].to_lowercase();
        if at > from
            && matches!(
                word.as_str(),
                "and" | "or" | "issue" | "issues" | "of" | "pull" | "request" | "pr"
            )
        {
            at += word_end;
            continue;
        }
        return Some(at);
    }
}

/// The length of a reference at the start of a text: `#7`, `!7`, `owner/repo#7`, `GH-7`, `ABC-12`, or the address of
/// an issue.
fn reference(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| c.is_whitespace() || c == LINK)
        .unwrap_or(text.len());
    let token = &text[..end];
    if token.contains("://") {
        let token = token.trim_end_matches(['.', ',', ';', ':', ')', ']', '"', '\'', '!', '?']);
        return is_issue_address(token).then_some(token.len());
    }
    if let Some(mark) = token.find(['#', '!']) {
        let path = &token[..mark];
        let digits = token[mark + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let path_ok = path.is_empty() || path.chars().all(|c| is_name_char(c) || c == '/');
        return (path_ok && digits > 0).then_some(mark + 1 + digits);
    }
    let dash = token.find('-')?;
    let digits = token[dash + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let letters = dash > 0
        && token[..dash]
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (letters && digits > 0).then_some(dash + 1 + digits)
}

/// Whether an address is that of an issue or pull request on any forge: `…/issues/7`, `…/pulls/7#comment`.
pub(super) fn is_issue_address(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.windows(2).any(|pair| {
        let number = !pair[1].is_empty() && pair[1].bytes().all(|byte| byte.is_ascii_digit());
        number
            && matches!(
                pair[0],
                "issues" | "issue" | "pulls" | "pull" | "merge_requests" | "work_items"
            )
    })
}

/// Whether a short reference names the job's own subject.
fn names_own(reference: &str, own: Option<OwnSubject<'_>>) -> bool {
    let Some(own) = own else { return false };
    let Some((path, number)) = reference.split_once(['#', '!']) else {
        return false;
    };
    let here = path.is_empty() || path.eq_ignore_ascii_case(&format!("{}/{}", own.owner, own.name));
    here && number == own.number.to_string()
}
