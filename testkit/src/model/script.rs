//! What a model is to say: steps, and the plan that chooses one for a conversation.

use super::conversation::Conversation;
use super::{Fault, demo};
use serde_json::Value;
use std::sync::Arc;

/// Chooses what to say: a function of the conversation alone.
#[derive(Clone)]
pub struct Plan(pub(super) Arc<dyn Fn(&Conversation) -> Step + Send + Sync>);

impl Plan {
    /// A plan of one's own. For a script per conversation: `Plan::by(|c| script_for(c).step(c))`.
    pub fn by(choose: impl Fn(&Conversation) -> Step + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }
}

impl From<Script> for Plan {
    fn from(script: Script) -> Self {
        Self::by(move |conversation| script.step(conversation))
    }
}

/// What to say, step by step; when it has ended, `(the script has ended)`.
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    story: bool,
}

impl Script {
    /// These steps, one for each time the model is to speak.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            story: false,
        }
    }

    /// One answer in words, whatever is asked.
    pub fn says(text: &str) -> Self {
        Self::steps([Step::says(text)])
    }

    /// The demo's story: it reads the README and the file that the issue is about, tries `bash` whether it is on offer
    /// or not, then answers with `forge_comment` (in words where that is not on offer) from what it has really read.
    pub fn demo() -> Self {
        Self {
            steps: Vec::new(),
            story: true,
        }
    }

    /// What to say now.
    pub fn step(&self, conversation: &Conversation) -> Step {
        if self.story {
            return demo::step(conversation);
        }
        let next = self.steps.get(conversation.assistant_messages());
        next.cloned().unwrap_or_else(|| Step::says("(the script has ended)"))
    }
}

/// How an answer says that it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// As its content asks: `stop`, or `tool_calls` (`end_turn`, `tool_use`).
    Natural,
    /// Cut at the limit of tokens: `length` (`max_tokens`).
    Length,
}

/// What usage an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Made of the sizes of request and answer.
    Sizes,
    /// None at all: a provider that keeps it to itself.
    Absent,
    /// Zero tokens: a provider that lies.
    Zero,
    /// These tokens: of the prompt, of the answer.
    Is(u64, u64),
}

/// One time the model speaks: words, calls, and what goes wrong with it.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) text: String,
    pub(super) calls: Vec<(String, Value)>,
    pub(super) finish: Finish,
    pub(super) usage: Usage,
    /// What goes wrong, and how often: always when there is no number.
    pub(super) fault: Option<(Fault, Option<u32>)>,
}

impl Step {
    /// Words.
    pub fn says(text: &str) -> Self {
        let (finish, usage) = (Finish::Natural, Usage::Sizes);
        Self {
            text: text.to_owned(),
            calls: Vec::new(),
            finish,
            usage,
            fault: None,
        }
    }

    /// A call of a tool.
    pub fn calls(tool: &str, arguments: Value) -> Self {
        Self::says("").and_calls(tool, arguments)
    }

    /// Something goes wrong, always.
    pub fn fails(fault: Fault) -> Self {
        let mut step = Self::says("");
        step.fault = Some((fault, None));
        step
    }

    /// And a call of a tool.
    #[must_use]
    pub fn and_calls(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    /// Goes wrong so many times first, counted per conversation; then it is said.
    #[must_use]
    pub fn after(mut self, times: u32, fault: Fault) -> Self {
        self.fault = Some((fault, Some(times)));
        self
    }

    /// Says so, and something is wrong with how it is said.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.fault = Some((fault, None));
        self
    }

    /// Ends as if the limit of tokens had been reached.
    #[must_use]
    pub fn cut_at_length(mut self) -> Self {
        self.finish = Finish::Length;
        self
    }

    /// Reports this usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}
