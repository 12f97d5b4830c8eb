//! The text that we post: Markdown of an agent, rebuilt so that it can only say things, not do things.
//!
//! [`rebuild`] parses the Markdown, builds a new tree from an allowlist and writes that as CommonMark. What comes
//! out holds no image, no HTML, no mention but the requester's, no closing word but for the job's own subject, no
//! line that begins with `/`, no invisible character and none of the known secrets. [`plain_line`] does the same for
//! a title. Lengths are characters.
//!
//! It never fails: what cannot be understood comes out as plain text.
//!
//! Source: DESIGN section 9, "Text that we post"; what Forgejo makes of a text is described in `disarm`.

mod check;
mod code;
mod disarm;
mod edit;
mod invisible;
mod marker;
mod secrets;
mod tree;

use secrecy::SecretString;

pub use marker::{find_marker, marker};

/// What [`rebuild`] needs to know about the job.
#[derive(Debug, Clone, Copy)]
pub struct TextRules<'a> {
    /// The login of the one who asked: the only mention that stays.
    pub requester: Option<&'a str>,
    /// The job's own subject: the only one that a closing word may name.
    pub own_subject: Option<OwnSubject<'a>>,
    /// Cut after that many characters.
    pub max_chars: usize,
    /// Where the whole text can be read, for the line that says it was cut.
    pub more_url: Option<&'a str>,
    /// What must not appear, in any of the usual spellings.
    pub secrets: &'a [SecretString],
}

/// The issue or pull request that a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnSubject<'a> {
    /// Owner of its repository.
    pub owner: &'a str,
    /// Name of its repository.
    pub name: &'a str,
    /// Its number.
    pub number: i64,
}

/// What came of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// The text to post, without footer and marker.
    pub text: String,
    /// It was longer and was cut.
    pub cut: bool,
    /// How many times a known secret was withheld.
    pub withheld: usize,
}

/// The line under each comment of ours.
#[derive(Debug, Clone, Copy)]
pub struct Footer<'a> {
    /// Provider and model, e.g. `local/qwen3-coder`.
    pub model: Option<&'a str>,
    /// Turns of the run.
    pub turns: Option<u32>,
    /// Cost in dollars, as decimal text.
    pub cost_usd: Option<&'a str>,
    /// The tools that were taken away.
    pub tools_excluded: &'a [&'a str],
    /// The page of the run.
    pub run_url: Option<&'a str>,
}

/// Rebuilds a Markdown text for posting.
#[must_use]
pub fn rebuild(markdown: &str, rules: &TextRules<'_>) -> Rebuilt {
    tree::rebuild(markdown, rules)
}

/// Makes one plain line of a text: for titles, branches' descriptions, subjects of commits. No Markdown is left in
/// force, no control or invisible character, at most `max_chars` characters.
#[must_use]
pub fn plain_line(text: &str, max_chars: usize, secrets: &[SecretString]) -> String {
    tree::plain_line(text, max_chars, secrets)
}

/// The footer line, as Markdown.
#[must_use]
pub fn footer(footer: &Footer<'_>) -> String {
    marker::footer(footer)
}

/// A whole comment: the rebuilt text, the footer line, the hidden marker.
#[must_use]
pub fn assemble(body: &str, footer: &str, marker: &str) -> String {
    marker::assemble(body, footer, marker)
}
