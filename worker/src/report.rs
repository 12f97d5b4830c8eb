//! What a run says on the forge: the answer, the refusal, the failure, the stop, and the status comment.
//!
//! Each function gives a whole Markdown text with its footer line, without the hidden marker, which the outbox adds
//! when it posts. The agent's own words are rebuilt ([`forges::text::rebuild`]); the rest are fixed words of
//! [`crate::texts`] and of [`queue::Reason`].
//!
//! Nothing here fails and nothing is posted from here.

use contract::{Micros, Tool};
use forges::text::{Footer, OwnSubject, TextRules, rebuild};
use queue::Reason;
use secrecy::SecretString;

use crate::texts;

/// The longest text of an agent that is posted, in characters; the rest is behind the link to the run.
pub const MAX_CHARS: usize = 60_000;
/// The longest detail of a refusal, in characters.
const MAX_DETAIL: usize = 400;

/// The run that a text is about.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The job's number.
    pub job: i64,
    /// The panel's address (`public_url`), when there is one.
    pub public_url: Option<&'a str>,
    /// The login of the one who asked: the only mention that stays.
    pub requester: Option<&'a str>,
    /// Owner of the repository.
    pub owner: &'a str,
    /// Name of the repository.
    pub name: &'a str,
    /// Number of the issue or pull request: the only one that closing words may name.
    pub subject: i64,
    /// `provider/model`, when it got so far.
    pub model: Option<&'a str>,
    /// Answers of the model, when it got so far.
    pub turns: Option<u32>,
    /// What it cost, when it got so far.
    pub cost: Option<Micros>,
    /// The tools that it did not have.
    pub excluded: &'a [Tool],
    /// What no text of ours may carry.
    pub withhold: &'a [SecretString],
}

/// The answer: what the agent proposed, or its last words.
#[must_use]
pub fn answer(run: &Run<'_>, text: &str) -> String {
    let body = run.rebuilt(text);
    let body = if body.trim().is_empty() {
        texts::NO_WORDS.to_owned()
    } else {
        body
    };
    run.signed(&body)
}

/// A gate said no. Nothing was started, nothing was spent.
#[must_use]
pub fn refusal(run: &Run<'_>, reason: Reason, detail: &str) -> String {
    run.signed(&texts::refusal(
        reason.word(),
        reason.meaning(),
        &run.line(detail),
        reason.fix(),
    ))
}

/// The run broke: its class, and where to read on.
#[must_use]
pub fn failure(run: &Run<'_>, reason: Reason, detail: &str) -> String {
    run.signed(&texts::failure(
        reason.word(),
        reason.meaning(),
        &run.line(detail),
        reason.fix(),
    ))
}

/// A cap or a person ended the run. `partial` is what the agent had said until then.
#[must_use]
pub fn stopped(run: &Run<'_>, reason: Reason, detail: &str, partial: Option<&str>) -> String {
    let mut body = texts::stopped(reason.word(), reason.meaning(), &run.line(detail), reason.fix());
    let partial = partial
        .map(|text| run.rebuilt(text))
        .filter(|text| !text.trim().is_empty());
    body.push_str(&partial.map_or_else(|| texts::NOTHING_YET.to_owned(), |text| texts::until_then(&text)));
    run.signed(&body)
}

/// The status comment while the run goes on.
#[must_use]
pub fn working(run: &Run<'_>) -> String {
    run.signed(texts::WORKING)
}

/// The status comment after the run: how it ended.
#[must_use]
pub fn ended(run: &Run<'_>, reason: Reason) -> String {
    run.signed(&texts::ended(reason.word(), reason.meaning()))
}

impl Run<'_> {
    /// The page of the run.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        self.public_url
            .map(|base| format!("{}/runs/{}", base.trim_end_matches('/'), self.job))
    }

    fn rebuilt(&self, text: &str) -> String {
        let url = self.url();
        let rules = TextRules {
            requester: self.requester,
            own_subject: Some(OwnSubject {
                owner: self.owner,
                name: self.name,
                number: self.subject,
            }),
            max_chars: MAX_CHARS,
            more_url: url.as_deref(),
            secrets: self.withhold,
        };
        rebuild(text, &rules).text
    }

    /// A detail in one paragraph. It may name what a repository or an image chose, so it is rebuilt like the rest.
    fn line(&self, detail: &str) -> String {
        let words = detail.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut = words
            .char_indices()
            .nth(MAX_DETAIL)
            .map_or(words.as_str(), |(end, _)| &words[..end]);
        self.rebuilt(cut).trim_end().to_owned()
    }

    /// The text with the footer line under it.
    fn signed(&self, body: &str) -> String {
        let url = self.url();
        let cost = self.cost.map(|cost| cost.to_string());
        let excluded: Vec<&str> = self.excluded.iter().map(|tool| tool.name()).collect();
        let footer = forges::text::footer(&Footer {
            model: self.model,
            turns: self.turns,
            cost_usd: cost.as_deref(),
            tools_excluded: &excluded,
            run_url: url.as_deref(),
        });
        format!("{}\n\n{footer}", body.trim_end())
    }
}

#[cfg(test)]
mod tests;
