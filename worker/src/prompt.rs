//! The prompt of a job: one system prompt that replaces pi's own, and the fenced event as the first message.
//!
//! Everything that we or the repository's owners say is system prompt; everything that somebody wrote on the forge is
//! in the first message, between two lines that nobody could have guessed, and named as untrusted. Characters that a
//! reader does not see are written as their code points, so that what the model reads is what a person would.
//!
//! Nothing here fails and nothing is read: the same input makes the same prompt, byte for byte.

use contract::{ForgeComment, GUARDRAILS, JobLimits, ProposalTool, Tool};
use sha2::{Digest, Sha256};
use triggers::{Outputs, Target};

use crate::repo::{Flow, Listing, RepoContext};

mod texts;

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
    let system = system(input);
    let first_message = first_message(&input.event, input.delimiter);
    Prompt {
        system_sha256: sha256(&system),
        prompt_sha256: sha256(&first_message),
        system,
        first_message,
    }
}

/// The tools that the prompt lists, in its order: pi's default active ones without the excluded, then the proposing.
pub fn listed_tools<'a>(excluded: &[Tool], proposals: &'a [ProposalTool]) -> Vec<&'a str> {
    let own = Tool::ALL
        .into_iter()
        .filter(|tool| tool.default_active() && !excluded.contains(tool));
    own.map(|tool| tool.name())
        .chain(proposals.iter().map(|tool| tool.name.as_str()))
        .collect()
}

/// Makes every character visible that a reader does not see (line feeds and tabs aside); line ends become `\n`.
pub fn unhide(text: &str) -> String {
    text.replace("\r\n", "\n")
        .split('\n')
        .map(unhide_line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn unhide_line(line: &str) -> String {
    line.split('\t').map(triggers::visible).collect::<Vec<_>>().join("\t")
}

fn system(input: &PromptInput<'_>) -> String {
    let mut system = Sections(String::new());
    system.text(GUARDRAILS.trim());
    system.section(
        texts::PERSONA,
        input
            .persona
            .filter(|text| !text.trim().is_empty())
            .unwrap_or(texts::OUR_PERSONA),
    );
    if let Some(text) = &input.context.append_system {
        system.section(&texts::from_repository(".pi/APPEND_SYSTEM.md"), text);
    }
    if let Some((name, text)) = &input.context.agents {
        system.section(&texts::from_repository(name), text);
    }
    system.section(&texts::flow(&input.flow.name), &input.flow.text);
    system.text(texts::SKILL_FOLDER);
    if let Some(task) = input.task {
        system.section(texts::TASK, task);
    }
    if let Some(instructions) = input.instructions {
        system.section(texts::INSTRUCTIONS, instructions);
    }
    system.section(texts::BOUNDS, &bounds(input));
    system.section(texts::TOOLS, &tools(input));
    system.section(texts::FILES, &files(input.listing));
    system.0
}

struct Sections(String);

impl Sections {
    fn section(&mut self, title: &str, text: &str) {
        self.text(&format!("# {title}"));
        self.text(text.trim());
    }

    fn text(&mut self, text: &str) {
        self.0.push_str(&unhide(text));
        self.0.push_str("\n\n");
    }
}

/// Generated from the data that enforces it.
fn bounds(input: &PromptInput<'_>) -> String {
    let comments = input.outputs.comment;
    let proposing = input.proposals.iter().any(|tool| tool.name == ForgeComment::TOOL);
    let mut lines = vec![match (comments, proposing) {
        (0, _) => texts::NO_COMMENT.to_owned(),
        (_, false) => texts::LAST_MESSAGE.to_owned(),
        (most, true) => texts::comments(most),
    }];
    lines.push(texts::limits(input.limits));
    lines
        .iter()
        .map(|line| format!("- {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn tools(input: &PromptInput<'_>) -> String {
    let lines: Vec<String> = listed_tools(input.excluded, input.proposals)
        .into_iter()
        .map(|name| {
            let own = Tool::from_name(name).map(Tool::snippet);
            let proposing = input.proposals.iter().find(|tool| tool.name == name);
            let snippet = own
                .or(proposing.map(|tool| tool.prompt_snippet.as_str()))
                .unwrap_or_default();
            format!("- `{name}`: {snippet}")
        })
        .collect();
    if lines.is_empty() {
        texts::NO_TOOLS.to_owned()
    } else {
        lines.join("\n")
    }
}

/// Names are somebody else's text: one per line whatever is in them.
fn files(listing: &Listing) -> String {
    if listing.names.is_empty() {
        return texts::NO_FILES.to_owned();
    }
    let mut lines = vec![texts::FILES_ARE_NAMES.to_owned(), String::new()];
    lines.extend(
        listing
            .names
            .iter()
            .map(|name| format!("    {}", triggers::visible(name))),
    );
    if listing.cut {
        lines.extend([String::new(), texts::MORE_FILES.to_owned()]);
    }
    lines.join("\n")
}

/// Every line of somebody else's text begins with `| `, so that none of it can pass for a line of ours.
fn first_message(event: &EventText<'_>, delimiter: &str) -> String {
    let mut lines = vec![texts::fence_note(delimiter), String::new(), format!("<<< {delimiter}")];
    lines.push(texts::where_it_happened(
        &one_line(event.forge),
        &one_line(event.repository),
    ));
    if let Some(subject) = &event.subject {
        lines.push(texts::subject(subject.kind, subject.number));
        lines.push(texts::TITLE.to_owned());
        lines.extend(quoted(subject.title, delimiter));
        if let Some(body) = subject.body.filter(|body| !body.trim().is_empty()) {
            lines.push(texts::BODY.to_owned());
            lines.extend(quoted(body, delimiter));
        }
    }
    for said in &event.said {
        lines.push(texts::comment_of(&one_line(said.who)));
        lines.extend(quoted(said.text, delimiter));
    }
    if event.said.is_empty() {
        lines.push(texts::NOTHING_SAID.to_owned());
    }
    lines.push(format!(">>> {delimiter}"));
    lines.join("\n") + "\n"
}

fn quoted(text: &str, delimiter: &str) -> Vec<String> {
    // Nobody can guess it; should it stand there all the same, it ends nothing.
    let text = if delimiter.is_empty() {
        text.to_owned()
    } else {
        text.replace(delimiter, "")
    };
    unhide(&text)
        .split('\n')
        .map(|line| format!("| {line}").trim_end().to_owned())
        .collect()
}

fn one_line(text: &str) -> String {
    triggers::visible(text).chars().take(256).collect()
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
