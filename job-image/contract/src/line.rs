//! The runner's standard output: one JSON object a line, each at most [`crate::limits::RUNNER_LINE`] bytes.
//!
//! `seq` starts at 1 and is unique in an attempt, so a reader that begins again drops what it has. A reader must
//! pass over an `event` that it does not know: a newer image may say more ([`RunnerEvent::Unknown`]).

use serde::{Deserialize, Serialize};

use crate::{FaultReason, Micros, ReadBack, StopReason, Tool, usd};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerLine {
    /// The line's number in its attempt.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: RunnerEvent,
}

/// When something was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the prompt was sent.
    Start,
    /// After the last turn.
    End,
}

/// What a line says. Texts are cut at [`crate::limits::EXCERPT`], the reply at [`crate::limits::REPLY`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunnerEvent {
    /// The runner is there and has checked its inputs.
    Runner {
        /// The job of `job.json`.
        job: i64,
        /// Its attempt.
        attempt: i32,
        /// [`crate::CONTRACT_VERSION`].
        contract: u32,
        /// The version of pi in the image.
        pi: String,
    },
    /// What the live session really has.
    Readback {
        /// When.
        phase: Phase,
        /// What was seen.
        #[serde(flatten)]
        seen: ReadBack,
    },
    /// The proof that exclusions are in force; on every job that carries any, at its start and at its end.
    ToolsExcluded {
        /// What the job excludes, in the order of the triggers file.
        excluded: Vec<Tool>,
        /// The active tools, in pi's order.
        active: Vec<String>,
        /// The registered tools, sorted.
        registered: Vec<String>,
        /// When.
        phase: Phase,
        /// Set on the end line of a job that had `bash`: by then the job's own shell could have lied to the reader.
        #[serde(default, skip_serializing_if = "is_false")]
        from_inside: bool,
    },
    /// Everything was compared and the prompt was sent. From here on it may cost.
    Started {},
    /// A turn began.
    Turn {
        /// Its number, from 1.
        turn: u32,
    },
    /// The model answered.
    Model {
        /// The turn.
        turn: u32,
        /// pi's word for why it stopped: `stop`, `toolUse`, `length`, `error`, `aborted`.
        stop: String,
        /// What it said, cut.
        text: String,
        /// What it cost by pi's count.
        usage: ReportedUsage,
        /// The provider's error, cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A tool was called.
    ToolStart {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// The arguments as JSON text, cut.
        arguments: String,
    },
    /// A tool answered.
    ToolEnd {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// Whether it failed.
        failed: bool,
        /// What it answered, cut.
        text: String,
    },
    /// pi tries a failed model request again.
    Retry {
        /// Which try comes now.
        attempt: u32,
        /// Of how many.
        of: u32,
        /// After this many milliseconds.
        wait_ms: u64,
        /// What failed, cut.
        error: String,
    },
    /// The agent proposed something and the worker answered.
    Proposal {
        /// The proposal's id.
        id: String,
        /// The tool.
        tool: String,
        /// Whether it was kept.
        accepted: bool,
        /// Why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Something odd that did not end the run.
    Warning {
        /// A kebab-case word.
        word: String,
        /// What was seen, cut.
        detail: String,
    },
    /// The run is being ended early.
    Stopping {
        /// Why.
        reason: StopReason,
    },
    /// The runner gave up.
    Fault {
        /// Why.
        reason: FaultReason,
        /// What was seen, cut.
        detail: String,
    },
    /// The last line of a run that was started.
    Result {
        /// How it ended.
        outcome: ResultOutcome,
        /// Answers of the model.
        turns: u32,
        /// The sum of all answers, by pi's count.
        usage: ReportedUsage,
        /// The text of the last assistant message; empty when there was none.
        reply: String,
        /// Set when the reply was cut.
        #[serde(default, skip_serializing_if = "is_false")]
        reply_cut: bool,
        /// Why it ended early: a word of [`StopReason`] or [`FaultReason`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An event of a newer runner. Never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultOutcome {
    /// The agent came to its own end.
    Completed,
    /// A cap, a person or a signal ended it.
    Stopped,
    /// It could not go on.
    Failed,
}

/// Tokens and money by pi's count. `input` does not hold the cached tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedUsage {
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    pub cache_write: u64,
    /// Money, by the prices of `models.json`.
    #[serde(with = "usd")]
    pub cost_usd: Micros,
}

impl ReportedUsage {
    /// All tokens together.
    pub const fn tokens(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// The sum of both.
    pub const fn plus(&self, other: &ReportedUsage) -> ReportedUsage {
        ReportedUsage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cost_usd: self.cost_usd.plus(other.cost_usd),
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(seq: u64, event: RunnerEvent) -> String {
        serde_json::to_string(&RunnerLine { seq, event }).unwrap()
    }

    #[test]
    fn the_two_first_words_of_the_contract_are_written_exactly_so() {
        let start = RunnerEvent::ToolsExcluded {
            excluded: vec![Tool::Bash, Tool::Powershell, Tool::Edit, Tool::Write],
            active: vec!["read".into(), "forge_comment".into()],
            registered: ["find", "forge_comment", "grep", "ls", "read"]
                .map(str::to_owned)
                .into(),
            phase: Phase::Start,
            from_inside: false,
        };
        assert_eq!(
            said(3, start),
            r#"{"seq":3,"event":"tools_excluded","excluded":["bash","powershell","edit","write"],"active":["read","forge_comment"],"registered":["find","forge_comment","grep","ls","read"],"phase":"start"}"#
        );

        let result = RunnerEvent::Result {
            outcome: ResultOutcome::Completed,
            turns: 3,
            usage: ReportedUsage::default(),
            reply: "…".into(),
            reply_cut: false,
            reason: None,
        };
        assert_eq!(
            said(41, result),
            r#"{"seq":41,"event":"result","outcome":"completed","turns":3,"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"costUsd":"0.000000"},"reply":"…"}"#
        );
    }

    #[test]
    fn a_line_comes_back_as_it_was_written() {
        let seen = ReadBack {
            active: vec!["read".into()],
            registered: vec![crate::SeenTool {
                name: "read".into(),
                source: "builtin".into(),
                path: "builtin:read".into(),
            }],
            model: Some("local/m".into()),
            thinking: Some("off".into()),
            cwd: "/workspace".into(),
            system_sha256: "00".into(),
            skills: vec![],
        };
        for event in [
            RunnerEvent::Readback {
                phase: Phase::End,
                seen,
            },
            RunnerEvent::Started {},
            RunnerEvent::Retry {
                attempt: 1,
                of: 2,
                wait_ms: 2_000,
                error: "529".into(),
            },
            RunnerEvent::Stopping {
                reason: StopReason::TurnCap,
            },
            RunnerEvent::Fault {
                reason: FaultReason::PiEnded,
                detail: String::new(),
            },
        ] {
            let line = RunnerLine { seq: 9, event };
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<RunnerLine>(&text).unwrap(), line, "{text}");
        }
    }

    #[test]
    fn an_event_of_a_newer_runner_is_passed_over_and_not_an_error() {
        let line: RunnerLine = serde_json::from_str(r#"{"seq":2,"event":"weather","sky":"grey"}"#).unwrap();
        assert_eq!(
            line,
            RunnerLine {
                seq: 2,
                event: RunnerEvent::Unknown
            }
        );
    }
}
