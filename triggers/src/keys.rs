//! The keys of the language: which each object takes, which it takes in a later version, which it never will.
//!
//! A key that the loader does not understand must never be dropped: a file could then read as if it took a permission
//! away, and take nothing away. So a stray key is always a fault, and names the key that was probably meant.

use crate::texts;

/// An object of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The file.
    File,
    /// An element of `triggers`.
    Entry,
    /// `on` of a comment.
    Comment,
    /// `on` of `manual`.
    Manual,
    /// `on` whose type is missing or of a later version: every key of every type.
    AnyOn,
    /// `run`.
    Run,
    /// `run.outputs`.
    Outputs,
}

/// What is to be said of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The language has it.
    Known,
    /// A later version has it.
    Later,
    /// It is refused by name, with this sentence.
    Refused(&'static str),
    /// It belongs into another object.
    Elsewhere(Level),
    /// The language does not have it; the nearest that it has.
    Unknown(Option<&'static str>),
}

const COMMENT: [&str; 6] = [
    "type",
    "phrase",
    "target",
    "repositories",
    "exceptRepositories",
    "forge",
];
const COMMENT_LATER: [&str; 3] = ["any", "all", "none"];
const ON_LATER: [&str; 11] = [
    "any",
    "all",
    "none",
    "refire",
    "action",
    "number",
    "once",
    "reviewState",
    "branches",
    "paths",
    "pattern",
];
const ANY_ON: [&str; 19] = [
    "type",
    "phrase",
    "target",
    "repositories",
    "exceptRepositories",
    "forge",
    "any",
    "all",
    "none",
    "refire",
    "action",
    "number",
    "once",
    "reviewState",
    "branches",
    "paths",
    "pattern",
    "timezone",
    "missed",
];
const RUN: [&str; 16] = [
    "kind",
    "flow",
    "task",
    "instructions",
    "image",
    "excludeTools",
    "packages",
    "provider",
    "model",
    "thinking",
    "maxTurns",
    "maxTokens",
    "maxCostUsd",
    "timeoutMinutes",
    "outputs",
    "mode",
];
const RUN_LATER: [&str; 11] = [
    "command",
    "egress",
    "skillsDir",
    "profile",
    "concurrency",
    "resume",
    "replicas",
    "waitFor",
    "secrets",
    "folder",
    "repository",
];

impl Level {
    /// The keys that it takes.
    pub(crate) const fn known(self) -> &'static [&'static str] {
        match self {
            Level::File => &["triggers"],
            Level::Entry => &["id", "on", "run"],
            Level::Comment => &COMMENT,
            Level::Manual => &["type"],
            Level::AnyOn => &ANY_ON,
            Level::Run => &RUN,
            Level::Outputs => &["comment"],
        }
    }

    const fn later(self) -> &'static [&'static str] {
        match self {
            Level::File | Level::Entry | Level::Manual | Level::AnyOn => &[],
            Level::Comment => &COMMENT_LATER,
            Level::Run => &RUN_LATER,
            Level::Outputs => &["pull_request", "labels", "review", "issue", "chain"],
        }
    }

    /// What a message calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Level::File => "the file",
            Level::Entry => "a trigger",
            Level::Comment => "`on` of a comment",
            Level::Manual => "`on` of `manual`",
            Level::AnyOn => "`on`",
            Level::Run => "`run`",
            Level::Outputs => "`outputs`",
        }
    }

    /// Judges a key that stands in this object.
    pub(crate) fn judge(self, key: &str) -> Judgement {
        if self.known().contains(&key) {
            return Judgement::Known;
        }
        if let Some(sentence) = self.refused(key) {
            return Judgement::Refused(sentence);
        }
        if self.later().contains(&key) || (self.is_on() && ON_LATER.contains(&key)) {
            return Judgement::Later;
        }
        let others = [Level::Entry, Level::Comment, Level::Run];
        let belongs =
            |other: &Level| *other != self && !(self.is_on() && other.is_on()) && other.known().contains(&key);
        if let Some(other) = others.into_iter().find(belongs) {
            return Judgement::Elsewhere(other);
        }
        Judgement::Unknown(nearest(key, self.known()))
    }

    const fn is_on(self) -> bool {
        matches!(self, Level::Comment | Level::Manual | Level::AnyOn)
    }

    /// Keys that somebody who wants to take tools away could write, and that would take nothing away.
    fn refused(self, key: &str) -> Option<&'static str> {
        let plain = plain(key);
        match plain.as_str() {
            "tools" | "allowtools" | "allowedtools" | "tool" | "onlytools" | "enabledtools" | "enabletools"
            | "includetools" => Some(texts::NO_ALLOWLIST),
            "notools" | "nobuiltintools" | "nobuiltin" => Some(texts::NO_TOOLS),
            "excludetools" if self == Level::Run => Some(texts::EXCLUDE_TOOLS_SPELLING),
            "excludetools" => Some(texts::EXCLUDE_TOOLS_PLACE),
            _ if is_near_exclude_tools(&plain) && self == Level::Run => Some(texts::EXCLUDE_TOOLS_SPELLING),
            _ if is_near_exclude_tools(&plain) => Some(texts::EXCLUDE_TOOLS_PLACE),
            _ => None,
        }
    }
}

/// Other words for the same wish, and slips of the pen.
fn is_near_exclude_tools(plain: &str) -> bool {
    const WORDS: [&str; 14] = [
        "excludedtools",
        "excludetool",
        "excludedtool",
        "excludingtools",
        "toolsexclude",
        "toolsexcluded",
        "disallowtools",
        "disallowedtools",
        "disabletools",
        "disabledtools",
        "denytools",
        "deniedtools",
        "blockedtools",
        "removetools",
    ];
    WORDS.contains(&plain) || strsim::damerau_levenshtein(plain, "excludetools") <= 3
}

/// A key without what people vary: case, hyphens, underscores.
fn plain(key: &str) -> String {
    key.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The nearest of some words, when one is near enough to have been meant.
pub(crate) fn nearest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    let word = plain(word);
    if word.is_empty() {
        return None;
    }
    let begins = |other: &str| word.len() >= 3 && (other.starts_with(&word) || word.starts_with(other));
    if let Some(whole) = words.iter().find(|other| begins(&plain(other))) {
        return Some(whole);
    }
    let distances = words
        .iter()
        .map(|other| (*other, strsim::damerau_levenshtein(&word, &plain(other))));
    let (best, distance) = distances.min_by_key(|(_, distance)| *distance)?;
    (distance <= word.len().div_ceil(3)).then_some(best)
}
