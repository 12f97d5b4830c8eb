//! Whether something that happened fires a trigger, and if not, why not.

use serde::{Deserialize, Serialize};

use crate::language::{CommentOn, On, RunKind, Target, Trigger, TriggerFile, TriggerGlobs};
use crate::phrase::{ControlWord, Found, find_phrase};
use crate::texts;

/// Something that happened on a forge, as far as triggers look at it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The forge's configured name.
    pub forge: &'a str,
    /// The forge's kind.
    pub kind: RunKind,
    /// `owner/name`.
    pub repository: &'a str,
    /// What happened.
    pub what: What<'a>,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// A comment was written, or edited by its author.
    Comment {
        /// Its text as it is now.
        text: &'a str,
        /// Its text before the edit; `None` for a new comment.
        previous_text: Option<&'a str>,
        /// What it stands under.
        target: Target,
    },
}

/// A trigger's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It fires. With a control word the comment asks for something else than a job.
    Fires {
        /// The word directly after the phrase, if it is one of ours.
        control: Option<ControlWord>,
    },
    /// It does not.
    No(NoMatch),
}

/// Why a trigger did not fire. The order is that in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoMatch {
    /// It is for another type of event.
    OtherType,
    /// It serves another kind of forge.
    OtherKind,
    /// It names another forge.
    OtherForge,
    /// Its `repositories` do not name this one.
    OtherRepository,
    /// Its `exceptRepositories` name this one.
    RepositoryExcepted,
    /// It wants comments on the other of issue and pull request.
    OtherTarget,
    /// The phrase is nowhere in the text.
    PhraseAbsent,
    /// The phrase stands only in code.
    PhraseInCode,
    /// The phrase stands only in a quotation.
    PhraseInQuote,
    /// The phrase stands only in a link.
    PhraseInUrl,
    /// The phrase stands only in an e-mail address.
    PhraseInAddress,
    /// The phrase stands only in HTML: a comment or a tag, where no reader sees it.
    PhraseInHtml,
    /// The phrase is only a part of a longer word.
    PhraseInWord,
    /// The text was edited, and said the phrase before.
    PhraseNotNew,
}

impl NoMatch {
    /// Every reason.
    pub const ALL: [NoMatch; 14] = [
        NoMatch::OtherType,
        NoMatch::OtherKind,
        NoMatch::OtherForge,
        NoMatch::OtherRepository,
        NoMatch::RepositoryExcepted,
        NoMatch::OtherTarget,
        NoMatch::PhraseAbsent,
        NoMatch::PhraseInCode,
        NoMatch::PhraseInQuote,
        NoMatch::PhraseInUrl,
        NoMatch::PhraseInAddress,
        NoMatch::PhraseInHtml,
        NoMatch::PhraseInWord,
        NoMatch::PhraseNotNew,
    ];

    /// The kebab-case word, as it is kept in a decision's row.
    pub const fn word(self) -> &'static str {
        match self {
            NoMatch::OtherType => "other-type",
            NoMatch::OtherKind => "other-kind",
            NoMatch::OtherForge => "other-forge",
            NoMatch::OtherRepository => "other-repository",
            NoMatch::RepositoryExcepted => "repository-excepted",
            NoMatch::OtherTarget => "other-target",
            NoMatch::PhraseAbsent => "phrase-absent",
            NoMatch::PhraseInCode => "phrase-in-code",
            NoMatch::PhraseInQuote => "phrase-in-quote",
            NoMatch::PhraseInUrl => "phrase-in-url",
            NoMatch::PhraseInAddress => "phrase-in-address",
            NoMatch::PhraseInHtml => "phrase-in-html",
            NoMatch::PhraseInWord => "phrase-in-word",
            NoMatch::PhraseNotNew => "phrase-not-new",
        }
    }

    /// The sentence that a person reads.
    pub const fn sentence(self) -> &'static str {
        texts::no_match(self)
    }
}

impl TriggerFile {
    /// Asks every trigger of the file, in the file's order.
    pub fn verdicts(&self, candidate: &Candidate<'_>) -> Vec<(&Trigger, Match)> {
        self.triggers
            .iter()
            .zip(&self.globs)
            .map(|(trigger, globs)| (trigger, ask(trigger, globs, candidate)))
            .collect()
    }
}

/// The free checks first: reading the text is the dearest.
fn ask(trigger: &Trigger, globs: &TriggerGlobs, candidate: &Candidate<'_>) -> Match {
    let on = match &trigger.on {
        On::Comment(on) => on,
        On::Manual => return Match::No(NoMatch::OtherType),
    };
    if trigger.run.kind != candidate.kind {
        return Match::No(NoMatch::OtherKind);
    }
    if on.forge.as_deref().is_some_and(|forge| forge != candidate.forge) {
        return Match::No(NoMatch::OtherForge);
    }
    if globs
        .only
        .as_ref()
        .is_some_and(|only| !only.matches(candidate.repository))
    {
        return Match::No(NoMatch::OtherRepository);
    }
    if globs
        .except
        .as_ref()
        .is_some_and(|except| except.matches(candidate.repository))
    {
        return Match::No(NoMatch::RepositoryExcepted);
    }
    match candidate.what {
        What::Comment {
            text,
            previous_text,
            target,
        } => ask_text(on, text, previous_text, target),
    }
}

fn ask_text(on: &CommentOn, text: &str, previous_text: Option<&str>, target: Target) -> Match {
    if on.target.is_some_and(|wanted| wanted != target) {
        return Match::No(NoMatch::OtherTarget);
    }
    let control = match find_phrase(text, &on.phrase) {
        Found::Token { control } => control,
        Found::Absent => return Match::No(NoMatch::PhraseAbsent),
        Found::InCode => return Match::No(NoMatch::PhraseInCode),
        Found::InQuote => return Match::No(NoMatch::PhraseInQuote),
        Found::InUrl => return Match::No(NoMatch::PhraseInUrl),
        Found::InAddress => return Match::No(NoMatch::PhraseInAddress),
        Found::InHtml => return Match::No(NoMatch::PhraseInHtml),
        Found::InWord => return Match::No(NoMatch::PhraseInWord),
    };
    if previous_text.is_some_and(|previous| matches!(find_phrase(previous, &on.phrase), Found::Token { .. })) {
        return Match::No(NoMatch::PhraseNotNew);
    }
    Match::Fires { control }
}
