//! `/job/job.json`: what one attempt of one job is, as the runner is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Micros, Tool};

/// The version of [`JobFile`]. Unknown fields are refused, so a new field is a new version.
pub const JOB_FILE_VERSION: u32 = 1;

/// What the runner is told. Written by the worker, read-only in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// [`JOB_FILE_VERSION`].
    pub version: u32,
    /// The job's number.
    pub job: i64,
    /// The attempt's number, from 1.
    pub attempt: i32,
    /// The excluded tools in the order of the triggers file; must equal `PI_EXCLUDE_TOOLS`.
    pub exclude_tools: Vec<Tool>,
    /// The provider's name in `models.json`.
    pub provider: String,
    /// The model's id in `models.json`.
    pub model: String,
    /// How that provider is spoken to.
    pub api: ApiShape,
    /// How much the model should think. A model that cannot reason runs with [`Thinking::Off`] whatever this says.
    pub thinking: Thinking,
    /// Where the runner stops pi. What money depends on is counted again by the gateway.
    pub limits: JobLimits,
    /// The names of the tools in `tools.json`, in its order.
    pub proposals: Vec<String>,
    /// SHA-256 of `/job/system.md`, lower-case hex. The live session's prompt is compared with it.
    pub system_sha256: String,
    /// SHA-256 of `/job/prompt.md`, lower-case hex.
    pub prompt_sha256: String,
}

/// A `job.json` that no runner of this version starts.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    /// Not JSON, a field is missing, or one is unknown.
    #[error("job.json does not read: {0}")]
    Shape(#[from] serde_json::Error),
    /// Another version.
    #[error("job.json is of version {0}, this runner reads version {JOB_FILE_VERSION}")]
    Version(u32),
    /// A tool stands twice in `exclude_tools`.
    #[error("job.json excludes `{0}` twice")]
    Twice(Tool),
}

impl JobFile {
    /// Reads the text of the file.
    pub fn parse(text: &[u8]) -> Result<JobFile, JobFileError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        // The version first: a newer file would otherwise be refused for a field instead of for what it is.
        let Version { version } = serde_json::from_slice(text)?;
        if version != JOB_FILE_VERSION {
            return Err(JobFileError::Version(version));
        }
        let file: JobFile = serde_json::from_slice(text)?;
        let twice = file
            .exclude_tools
            .iter()
            .enumerate()
            .find(|(at, tool)| file.exclude_tools[..*at].contains(tool));
        match twice {
            Some((_, tool)) => Err(JobFileError::Twice(*tool)),
            None => Ok(file),
        }
    }

    /// The value of `PI_EXCLUDE_TOOLS` for this job; `None` when the variable must be absent.
    pub fn exclude_tools_variable(&self) -> Option<String> {
        let names: Vec<&str> = self.exclude_tools.iter().map(|tool| tool.name()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }
}

/// The limits of one attempt. All of them are the worker's; a trigger can only make them smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// Answers of the model.
    pub turns: u32,
    /// Tokens, input and output and cached ones, as the provider counts them.
    pub tokens: u64,
    /// Money, by the prices of `models.json`. `None`: only the tokens are capped.
    pub cost_micros: Option<Micros>,
    /// From the runner's start to its end.
    pub total_seconds: u64,
    /// Without any event from pi.
    pub idle_seconds: u64,
    /// From the runner's start until the prompt is sent.
    pub setup_seconds: u64,
}

impl Default for JobLimits {
    fn default() -> Self {
        JobLimits {
            turns: 60,
            tokens: 2_000_000,
            cost_micros: Some(Micros(5_000_000)),
            total_seconds: 1_800,
            idle_seconds: 600,
            setup_seconds: 120,
        }
    }
}

/// How a provider's HTTP interface is shaped; pi's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApiShape {
    /// `POST /v1/chat/completions`.
    OpenaiCompletions,
    /// `POST /v1/messages`.
    AnthropicMessages,
}

impl ApiShape {
    /// Both of them.
    pub const ALL: [ApiShape; 2] = [ApiShape::OpenaiCompletions, ApiShape::AnthropicMessages];

    /// pi's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            ApiShape::OpenaiCompletions => "openai-completions",
            ApiShape::AnthropicMessages => "anthropic-messages",
        }
    }
}

/// How much a model should think before it answers; pi's levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// Not at all.
    #[default]
    Off,
    /// As little as the model can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as the model can.
    Max,
}

impl Thinking {
    /// All levels, rising.
    pub const ALL: [Thinking; 7] = [
        Thinking::Off,
        Thinking::Minimal,
        Thinking::Low,
        Thinking::Medium,
        Thinking::High,
        Thinking::Xhigh,
        Thinking::Max,
    ];

    /// pi's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Minimal => "minimal",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
            Thinking::Xhigh => "xhigh",
            Thinking::Max => "max",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> serde_json::Value {
        serde_json::to_value(JobFile {
            version: JOB_FILE_VERSION,
            job: 7,
            attempt: 1,
            exclude_tools: vec![Tool::Bash, Tool::Powershell],
            provider: "local".into(),
            model: "qwen3-coder".into(),
            api: ApiShape::OpenaiCompletions,
            thinking: Thinking::Off,
            limits: JobLimits::default(),
            proposals: vec!["forge_comment".into()],
            system_sha256: "00".into(),
            prompt_sha256: "00".into(),
        })
        .unwrap()
    }

    fn parse(value: &serde_json::Value) -> Result<JobFile, JobFileError> {
        JobFile::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_job_file_comes_back_as_it_was_written() {
        let read = parse(&file()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), file());
        assert_eq!(read.exclude_tools_variable().as_deref(), Some("bash,powershell"));
    }

    #[test]
    fn a_newer_file_is_refused_for_its_version_and_not_for_a_field() {
        let mut newer = file();
        newer["version"] = 2.into();
        newer["egress"] = "example.org".into();
        assert!(matches!(parse(&newer), Err(JobFileError::Version(2))));
    }

    #[test]
    fn an_unknown_field_an_unknown_tool_and_a_repeated_tool_are_refused() {
        let mut unknown = file();
        unknown["limits"]["dollars"] = 5.into();
        assert!(matches!(parse(&unknown), Err(JobFileError::Shape(_))));

        let mut capital = file();
        capital["exclude_tools"] = serde_json::json!(["Bash"]);
        assert!(matches!(parse(&capital), Err(JobFileError::Shape(_))));

        let mut twice = file();
        twice["exclude_tools"] = serde_json::json!(["bash", "bash"]);
        assert!(matches!(parse(&twice), Err(JobFileError::Twice(Tool::Bash))));
    }

    #[test]
    fn words_are_what_json_says() {
        for shape in ApiShape::ALL {
            assert_eq!(serde_json::to_value(shape).unwrap(), shape.word());
        }
        for level in Thinking::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.word());
        }
    }
}
