//! The prompt of a job: one system prompt that replaces pi's own, and the fenced event as the first message.
//!
//! Everything that we or the repository's owners say is system prompt; everything that somebody wrote on the forge is
//! in the first message, between two lines that nobody could have guessed, and named as untrusted. Characters that a
//! reader does not see are written as their code points, so that what the model reads is what a person would.
//!
//! Nothing here fails and nothing is read: the same input makes the same prompt, byte for byte.

use contract::{JobLimits, ProposalTool, Tool};
use triggers::{Outputs, Target};

use crate::repo::{Flow, Listing, RepoContext};

/// What a prompt is made of.
#[derive(Debug, Clone)]
pub struct PromptInput<'a> {
    /// The flow's skill.
    pub flow: &'a Flow,
    /// The overlay's `persona.md`; ours when `None`.
    pub persona: Option<&'a str>,
    /// What the default branch says.
    pub context: &'a RepoContext,
    /// The trigger's `task`.
    pub task: Option<&'a str>,
    /// The trigger's `instructions`.
    pub instructions: Option<&'a str>,
    /// The tools that the job does not have.
    pub excluded: &'a [Tool],
    /// The proposing tools that it has.
    pub proposals: &'a [ProposalTool],
    /// How many of each output it may propose.
    pub outputs: Outputs,
    /// What it may use.
    pub limits: &'a JobLimits,
    /// The names of the repository's files.
    pub listing: &'a Listing,
    /// What happened.
    pub event: EventText<'a>,
    /// A random word of this job, unguessable: at least 16 letters and digits ([`crate::random`]).
    pub delimiter: &'a str,
}

/// What happened on the forge, in other people's words.
#[derive(Debug, Clone)]
pub struct EventText<'a> {
    /// The forge's configured name.
    pub forge: &'a str,
    /// `owner/name`.
    pub repository: &'a str,
    /// The issue or pull request, when there is one.
    pub subject: Option<SubjectText<'a>>,
    /// What was said, oldest first: the comment that made the job, and those that joined it.
    pub said: Vec<Said<'a>>,
}

/// An issue or pull request.
#[derive(Debug, Clone)]
pub struct SubjectText<'a> {
    /// Which of the two.
    pub kind: Target,
    /// Its number.
    pub number: i64,
    /// Its title.
    pub title: &'a str,
    /// Its own text, when it was read.
    pub body: Option<&'a str>,
}

/// One comment.
#[derive(Debug, Clone)]
pub struct Said<'a> {
    /// Who, by login.
    pub who: &'a str,
    /// The text, as confirmed.
    pub text: &'a str,
}

/// A finished prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// `/job/system.md`.
    pub system: String,
    /// `/job/prompt.md`. Never begins with `/`.
    pub first_message: String,
    /// SHA-256 of `system`, lower-case hex.
    pub system_sha256: String,
    /// SHA-256 of `first_message`, lower-case hex.
    pub prompt_sha256: String,
}

/// Builds it.
pub fn build(input: &PromptInput<'_>) -> Prompt {
    let _ = input;
    todo!()
}

/// The tools that the prompt lists, in its order: pi's default active ones without the excluded, then the proposing.
pub fn listed_tools<'a>(excluded: &[Tool], proposals: &'a [ProposalTool]) -> Vec<&'a str> {
    let own = Tool::ALL
        .into_iter()
        .filter(|tool| tool.default_active() && !excluded.contains(tool));
    own.map(Tool::name)
        .chain(proposals.iter().map(|tool| tool.name.as_str()))
        .collect()
}

/// Makes every character visible that a reader does not see (line feeds and tabs aside).
pub fn unhide(text: &str) -> String {
    let _ = text;
    todo!()
}
