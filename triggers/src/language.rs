//! What a triggers file may say, as types. The same types are stored in a job's data and make the JSON Schema.
//!
//! Field names in JSON are those of the file (`excludeTools`, `maxCostUsd`). Money is whole micro-dollars inside and
//! decimal text outside. An absent field is absent in both directions: defaults belong to the worker's configuration.

use contract::{Micros, Thinking, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::globs::RepositoryGlobs;

/// One trigger of the file in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Its identity: what the file says, or what is derived from `on`, kind, flow and repositories. Unique in the file.
    pub id: String,
    /// The line of the file on which it begins, from 1. For people only: history never hangs on it.
    pub line: u32,
    /// What starts it.
    pub on: On,
    /// What it starts.
    pub run: Run,
}

/// What starts a job. In this version a comment, or a person at the panel or the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum On {
    /// A comment that says the phrase.
    Comment(CommentOn),
    /// Nothing but a person who presses the button or runs the command.
    Manual,
}

/// A comment that says the phrase, and what narrows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommentOn {
    /// The words to look for, as a token: at the start of a line or after white space, and not in code, quotes, links or
    /// addresses. Letters of A to Z match in either case.
    #[schemars(length(min = 1, max = 64))]
    pub phrase: String,
    /// Only comments on issues, or only those on pull requests. Both when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Globs on `owner/name`; one of them must match. Every repository that the forge is given when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub repositories: Option<Vec<String>>,
    /// Globs on `owner/name`; none of them may match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub except_repositories: Option<Vec<String>>,
    /// The name of one configured forge. Every forge of the trigger's kind when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 64))]
    pub forge: Option<String>,
}

/// What a comment stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An issue.
    Issue,
    /// A pull request.
    PullRequest,
}

/// What a trigger starts, and within which bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// The kind of forge that it serves.
    pub kind: RunKind,
    /// The skill that it runs: `.pi/skills/FLOW/SKILL.md` of the default branch, else of the operator's overlay.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 64))]
    pub flow: String,
    /// What the agent is to do, beside the skill's text. Not together with `instructions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub task: Option<String>,
    /// How the agent is to go about it, beside the skill's text. Not together with `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub instructions: Option<String>,
    /// The job image. The worker's own when absent. It must be on the host already: nothing is ever pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image: Option<String>,
    /// Built-in tools of pi that the job's session does not have, in the file's order. Empty means the full pinned set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::exclude_tools")]
    pub exclude_tools: Vec<Tool>,
    /// `false`: no packages. There are none in this version, so `true` is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<PackagesOff>,
    /// The model provider, by its configured name. The worker's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 64))]
    pub provider: Option<String>,
    /// The model, by the provider's name for it. The worker's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub model: Option<String>,
    /// How much the model is to think, in pi's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// At most so many turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_turns: Option<u32>,
    /// At most so many tokens, counted as the provider bills them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000000))]
    pub max_tokens: Option<u64>,
    /// At most so many dollars, as decimal text with up to six places: `"0.50"`.
    #[serde(default, with = "crate::usd::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::usd")]
    pub max_cost_usd: Option<Micros>,
    /// At most so many minutes from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1440))]
    pub timeout_minutes: Option<u32>,
    /// What the job may propose. One comment when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Outputs>,
    /// `run` when absent. `observe` goes through everything up to the container, starts nothing and posts nothing.
    #[serde(default, skip_serializing_if = "Mode::is_run")]
    pub mode: Mode,
}

impl Run {
    /// What the job may propose, with the default in place.
    pub fn outputs(&self) -> Outputs {
        self.outputs.unwrap_or_default()
    }
}

/// The kind of forge that a trigger serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Forgejo.
    Forgejo,
    /// Gitea.
    Gitea,
}

impl RunKind {
    /// All kinds of this version.
    pub const ALL: [RunKind; 2] = [RunKind::Forgejo, RunKind::Gitea];

    /// The word of the file.
    pub const fn word(self) -> &'static str {
        match self {
            RunKind::Forgejo => "forgejo",
            RunKind::Gitea => "gitea",
        }
    }
}

impl Target {
    /// The word of the file.
    pub const fn word(self) -> &'static str {
        match self {
            Target::Issue => "issue",
            Target::PullRequest => "pull_request",
        }
    }
}

/// Whether a trigger really runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It runs.
    #[default]
    Run,
    /// It goes through everything up to the container; nothing is started, nothing is posted.
    Observe,
}

impl Mode {
    /// The word of the file.
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Run => "run",
            Mode::Observe => "observe",
        }
    }

    fn is_run(&self) -> bool {
        matches!(self, Mode::Run)
    }
}

/// How many of each kind of output a job may propose. Kinds that this version does not have are refused by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outputs {
    /// Comments on the job's own subject. `0`: the answer stays in the run.
    #[serde(default = "one")]
    #[schemars(range(max = 10))]
    pub comment: u32,
}

fn one() -> u32 {
    1
}

impl Default for Outputs {
    fn default() -> Self {
        Outputs { comment: one() }
    }
}

/// The only thing that `packages` can say: `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackagesOff;

impl Serialize for PackagesOff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for PackagesOff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            return Err(serde::de::Error::custom("packages can only be false"));
        }
        Ok(PackagesOff)
    }
}

impl JsonSchema for PackagesOff {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PackagesOff".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "const": false })
    }
}

/// A triggers file that loaded: its triggers in the file's order, ready to be matched.
#[derive(Debug, Clone)]
pub struct TriggerFile {
    pub(crate) name: String,
    pub(crate) sha256: String,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) globs: Vec<TriggerGlobs>,
}

/// The compiled globs of one trigger; [`TriggerFile`] keeps one per trigger, in the same order.
#[derive(Debug, Clone, Default)]
pub(crate) struct TriggerGlobs {
    pub(crate) only: Option<RepositoryGlobs>,
    pub(crate) except: Option<RepositoryGlobs>,
}

impl TriggerFile {
    /// The name that it was read under, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of the file's bytes, in hex: workers that have another one have another file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The triggers, in the file's order.
    pub fn triggers(&self) -> &[Trigger] {
        &self.triggers
    }

    /// The trigger of that identity.
    pub fn get(&self, id: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.id == id)
    }
}

/// Whether a flow's name is a safe path segment: `[a-z0-9][a-z0-9._-]*`, at most 64 characters.
pub fn flow_name_is_safe(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes
            .next()
            .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-'))
}
