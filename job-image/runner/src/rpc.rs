//! pi's RPC: what it says, and what it is told.
//!
//! Source: pi 1.6.0, `docs/rpc.md`, `docs/rpc-commands.md`, `docs/rpc-extension-ui.md`; tried. Unknown types and
//! fields are passed over, because pi adds some in every version.

use std::collections::BTreeMap;

use contract::{Micros, ReportedUsage, SeenTool};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The longest line that is read from pi.
pub(crate) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The status key and command of the bridge.
pub(crate) const READ_BACK_KEY: &str = "pi-dispatch.read-back";
/// The bridge's command.
pub(crate) const READ_BACK_COMMAND: &str = "pi-dispatch-read-back";
/// The title of the bridge's question.
pub(crate) const PROPOSE_TITLE: &str = "pi-dispatch.propose";

/// Something that pi said.
#[derive(Debug)]
pub(crate) enum FromPi {
    /// The answer to a command.
    Response(Response),
    /// The bridge shows what the session has.
    Look(Box<Look>),
    /// The bridge asks for a proposal.
    Propose {
        /// pi's id of the question.
        request: String,
        /// What the bridge asks.
        asked: Result<Asked, String>,
    },
    /// An extension asks something that nobody here answers.
    Dialog {
        /// pi's id of the question.
        request: String,
    },
    /// A turn begins.
    TurnStart,
    /// A turn is over.
    TurnEnd,
    /// The model answered.
    Answer(Answer),
    /// A tool is called.
    ToolStart {
        /// The call's id.
        call: String,
        /// The tool's name, as the model wrote it.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// A tool answered.
    ToolEnd {
        /// The call's id.
        call: String,
        /// The tool's name.
        tool: String,
        /// Whether it failed.
        failed: bool,
        /// Its text.
        text: String,
    },
    /// pi will ask the model again.
    Retry {
        /// Which try comes.
        attempt: u32,
        /// Of how many.
        of: u32,
        /// After how long.
        wait_ms: u64,
        /// What failed.
        error: String,
    },
    /// The agent came to an end, one way or another.
    Settled,
    /// Something odd: a word and what was seen.
    Odd(&'static str, String),
    /// Anything else. It shows that pi is alive.
    Alive,
}

/// The answer to a command of ours.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    /// The command's id.
    #[serde(default)]
    pub(crate) id: String,
    /// Whether it was done.
    #[serde(default)]
    pub(crate) success: bool,
    /// Why not.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// What it gave.
    #[serde(default)]
    pub(crate) data: Value,
}

/// What the bridge's `look` shows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Look {
    /// `session`, `turn` or `command`.
    pub(crate) why: String,
    /// The command's nonce.
    pub(crate) nonce: Option<String>,
    /// Active tools.
    pub(crate) active: Vec<String>,
    /// Registered tools.
    pub(crate) registered: Vec<SeenTool>,
    /// `provider/id`.
    pub(crate) model: Option<String>,
    /// The thinking level.
    pub(crate) thinking: Option<String>,
    /// The working directory.
    pub(crate) cwd: String,
    /// Hash of the whole system prompt.
    pub(crate) system_sha256: String,
    /// Names of skills.
    pub(crate) skills: Vec<String>,
    /// Paths of context files.
    #[serde(default)]
    pub(crate) context_files: Vec<String>,
    /// pi's own line about each registered tool; there only when a command asked.
    #[serde(default)]
    pub(crate) snippets: Option<BTreeMap<String, String>>,
}

/// What the bridge asks when the agent proposes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Asked {
    /// The tool.
    pub(crate) tool: String,
    /// What the model wrote.
    pub(crate) arguments: Value,
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// pi's word: `stop`, `toolUse`, `length`, `error`, `aborted`.
    pub(crate) stop: String,
    /// Its text parts.
    pub(crate) text: String,
    /// What it used.
    pub(crate) usage: ReportedUsage,
    /// What the provider said went wrong.
    pub(crate) error: Option<String>,
}

/// Reads one line.
pub(crate) fn read(line: &[u8]) -> FromPi {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
    }
    let kind = match serde_json::from_slice::<Kind<'_>>(line) {
        Ok(kind) => kind.kind,
        Err(error) => return FromPi::Odd("pi-line-unreadable", error.to_string()),
    };
    let read = match kind.as_ref() {
        "response" => serde_json::from_slice(line).map(FromPi::Response),
        "extension_ui_request" => serde_json::from_slice(line).map(question),
        "turn_start" => Ok(FromPi::TurnStart),
        "turn_end" => Ok(FromPi::TurnEnd),
        "agent_settled" => Ok(FromPi::Settled),
        "message_end" => serde_json::from_slice(line).map(message),
        "tool_execution_start" => serde_json::from_slice(line).map(tool_start),
        "tool_execution_end" => serde_json::from_slice(line).map(tool_end),
        "auto_retry_start" => serde_json::from_slice(line).map(retry),
        "extension_error" => Ok(FromPi::Odd(
            "extension-error",
            String::from_utf8_lossy(line).into_owned(),
        )),
        _ => Ok(FromPi::Alive),
    };
    read.unwrap_or_else(|error| FromPi::Odd("pi-line-unreadable", format!("{kind}: {error}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    id: String,
    method: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    placeholder: Option<String>,
    #[serde(default)]
    status_key: Option<String>,
    #[serde(default)]
    status_text: Option<String>,
}

fn question(asked: Question) -> FromPi {
    match asked.method.as_str() {
        "setStatus" if asked.status_key.as_deref() == Some(READ_BACK_KEY) => {
            match serde_json::from_str(asked.status_text.as_deref().unwrap_or_default()) {
                Ok(look) => FromPi::Look(Box::new(look)),
                Err(error) => FromPi::Odd("read-back-unreadable", error.to_string()),
            }
        }
        "input" if asked.title.as_deref() == Some(PROPOSE_TITLE) => {
            let text = asked.placeholder.unwrap_or_default();
            let read = if text.len() > contract::limits::PROPOSAL {
                Err("the proposal is too long; shorten it".to_owned())
            } else {
                serde_json::from_str(&text).map_err(|_| "the proposal could not be read".to_owned())
            };
            FromPi::Propose {
                request: asked.id,
                asked: read,
            }
        }
        "select" | "confirm" | "input" | "editor" => FromPi::Dialog { request: asked.id },
        _ => FromPi::Alive,
    }
}

#[derive(Deserialize)]
struct MessageEnd {
    message: Message,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Usage {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    cost: Cost,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cost {
    total: f64,
}

fn message(end: MessageEnd) -> FromPi {
    let Message {
        role,
        content,
        stop_reason,
        error_message,
        usage,
    } = end.message;
    if role != "assistant" {
        return FromPi::Alive;
    }
    let usage = usage.unwrap_or_default();
    FromPi::Answer(Answer {
        stop: stop_reason.unwrap_or_default(),
        text: texts(&content),
        usage: ReportedUsage {
            input: count(usage.input),
            output: count(usage.output),
            cache_read: count(usage.cache_read),
            cache_write: count(usage.cache_write),
            cost_usd: micros(usage.cost.total),
        },
        error: error_message,
    })
}

/// The text parts of a message's content, joined.
fn texts(content: &Value) -> String {
    let Some(parts) = content.as_array() else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    let texts = parts
        .iter()
        .filter(|part| part["type"] == "text")
        .filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// pi's number as a count: what is no count is nothing, what is too large stays at the end. `as` saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn count(number: f64) -> u64 {
    number as u64
}

/// pi's dollars as micro-dollars, rounded up: a fraction of a millionth counts as one.
#[expect(clippy::cast_possible_truncation, reason = "float to integer casts saturate")]
fn micros(dollars: f64) -> Micros {
    Micros(((dollars * 1e6) - 1e-6).ceil().max(0.0) as i64)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCall {
    tool_call_id: String,
    tool_name: String,
    #[serde(default)]
    args: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    result: Value,
}

fn tool_start(call: ToolCall) -> FromPi {
    let arguments = call.args.map(|raw| raw.get().to_owned()).unwrap_or_default();
    FromPi::ToolStart {
        call: call.tool_call_id,
        tool: call.tool_name,
        arguments,
    }
}

fn tool_end(call: ToolCall) -> FromPi {
    let text = texts(&call.result["content"]);
    FromPi::ToolEnd {
        call: call.tool_call_id,
        tool: call.tool_name,
        failed: call.is_error,
        text,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct RetryStart {
    attempt: u32,
    max_attempts: u32,
    delay_ms: f64,
    error_message: String,
}

fn retry(start: RetryStart) -> FromPi {
    let RetryStart {
        attempt,
        max_attempts,
        delay_ms,
        error_message,
    } = start;
    FromPi::Retry {
        attempt,
        of: max_attempts,
        wait_ms: count(delay_ms),
        error: error_message,
    }
}

/// Commands that the runner sends. There is no `bash` among them, and never will be.
pub(crate) mod command {
    use super::{Value, json};

    /// What model and settings the session has.
    pub(crate) fn get_state(id: &str) -> Value {
        json!({ "id": id, "type": "get_state" })
    }

    /// Which commands there are.
    pub(crate) fn get_commands(id: &str) -> Value {
        json!({ "id": id, "type": "get_commands" })
    }

    /// A message, or a command of an extension.
    pub(crate) fn prompt(id: &str, message: &str) -> Value {
        json!({ "id": id, "type": "prompt", "message": message })
    }

    /// End what is going on.
    pub(crate) fn abort() -> Value {
        json!({ "id": "abort", "type": "abort" })
    }

    /// The answer to a question of the bridge.
    pub(crate) fn answer(request: &str, value: &Value) -> Value {
        json!({ "type": "extension_ui_response", "id": request, "value": value.to_string() })
    }

    /// The answer to any other question.
    pub(crate) fn cancel(request: &str) -> Value {
        json!({ "type": "extension_ui_response", "id": request, "cancelled": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(line: &[u8]) -> &'static str {
        match read(line) {
            FromPi::Odd(word, _) => word,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hostile_lines_are_odd_and_never_a_panic() {
        let deep = format!(
            r#"{{"type":"message_end","message":{{"content":{}{}}}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        for line in [
            &b""[..],
            b"[]",
            b"{}",
            b"null",
            b"{\"type\":7}",
            b"\xff\xfe",
            b"{\"type\":\"message_end\"}",
            b"{\"type\":\"tool_execution_end\",\"toolName\":\"x\"}",
            b"{\"type\":\"extension_ui_request\"}",
            b"{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"usage\":{\"input\":\"many\"}}}",
            deep.as_bytes(),
            "{\"type\":\"turn_start\"".as_bytes(),
        ] {
            assert_eq!(
                odd(line),
                "pi-line-unreadable",
                "{}",
                String::from_utf8_lossy(&line[..line.len().min(80)])
            );
        }
    }

    #[test]
    fn what_a_newer_pi_says_besides_is_a_sign_of_life() {
        assert!(matches!(read(br#"{"type":"weather","x":[1,2]}"#), FromPi::Alive));
        assert!(matches!(
            read("{\"type\":\"turn_start\",\"note\":\"a\u{2028}b\"}".as_bytes()),
            FromPi::TurnStart
        ));
    }

    #[test]
    fn an_answer_is_read_with_its_text_its_stop_and_what_it_cost() {
        let line = br#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},
            {"type":"text","text":"one"},{"type":"toolCall","name":"read"},{"type":"text","text":"two"}],"stopReason":"toolUse",
            "usage":{"input":800,"output":50,"cacheRead":200,"cacheWrite":0,"totalTokens":1050,"cost":{"total":0.0033600000000000001}}}}"#;
        let FromPi::Answer(answer) = read(line) else { panic!() };
        assert_eq!((answer.stop.as_str(), answer.text.as_str()), ("toolUse", "one\ntwo"));
        assert_eq!((answer.usage.tokens(), answer.usage.cost_usd), (1_050, Micros(3_360)));
    }

    #[test]
    fn numbers_that_are_no_counts_do_no_harm() {
        assert_eq!((count(-5.0), count(f64::NAN), count(1e300)), (0, 0, u64::MAX));
        assert_eq!(
            (micros(-1.0), micros(f64::NAN), micros(1e300)),
            (Micros(0), Micros(0), Micros(i64::MAX))
        );
        assert_eq!(
            (micros(0.0), micros(0.000_000_1), micros(0.000_001)),
            (Micros(0), Micros(1), Micros(1))
        );
    }

    #[test]
    fn only_the_bridges_own_question_is_a_proposal() {
        let ask = |method: &str, title: &str, placeholder: &str| {
            read(
                json!({ "type": "extension_ui_request", "id": "q", "method": method, "title": title,
                        "placeholder": placeholder })
                .to_string()
                .as_bytes(),
            )
        };
        let asked = r#"{"call":"c","tool":"forge_comment","arguments":{"body":"x"}}"#;
        assert!(matches!(
            ask("input", PROPOSE_TITLE, asked),
            FromPi::Propose { asked: Ok(_), .. }
        ));
        assert!(matches!(
            ask("input", PROPOSE_TITLE, "{"),
            FromPi::Propose { asked: Err(_), .. }
        ));
        assert!(matches!(ask("input", "other", asked), FromPi::Dialog { .. }));
        assert!(matches!(ask("editor", PROPOSE_TITLE, asked), FromPi::Dialog { .. }));
        assert!(matches!(ask("notify", "", ""), FromPi::Alive));
        let long = format!(
            r#"{{"tool":"forge_comment","arguments":"{}"}}"#,
            "x".repeat(contract::limits::PROPOSAL)
        );
        assert!(matches!(
            ask("input", PROPOSE_TITLE, &long),
            FromPi::Propose { asked: Err(_), .. }
        ));
    }
}
