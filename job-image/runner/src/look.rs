//! A look at the image's own pi, without a job, a gateway or a model.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use contract::{BuiltinTool, BuiltinTools, ExitCode, FaultReason, ReadBack, Thinking};
use serde::Serialize;
use serde_json::{Value, json};

use crate::argv::Start;
use crate::events::{Event, mailbox, take_signals};
use crate::fault::Fault;
use crate::pi::Pi;
use crate::rpc::{FromPi, Look, READ_BACK_COMMAND, command};
use crate::{expect, inputs};

/// How long pi may take to show itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// A prompt that can be recognised in the session.
const SYSTEM_FILE: &str = "/tmp/system.md";

/// What `read-back` prints.
#[derive(Serialize)]
struct Shown {
    pi: String,
    excluded: Vec<String>,
    seen: ReadBack,
    snippets: BTreeMap<String, String>,
    state: Value,
}

/// Prints [`BuiltinTools`] of the pi in this image.
pub(crate) fn print_builtin_tools() -> ExitCode {
    print(take(Vec::new()).map(|shown| {
        let builtin = shown
            .seen
            .registered
            .into_iter()
            .filter(|tool| tool.source == "builtin");
        let tools = builtin.map(|tool| BuiltinTool {
            active: shown.seen.active.contains(&tool.name),
            snippet: shown.snippets.get(&tool.name).cloned().unwrap_or_default(),
            name: tool.name,
        });
        BuiltinTools {
            pi: shown.pi,
            tools: tools.collect(),
        }
    }))
}

/// Prints all that a look at a live session shows; exclusions come as in a job.
pub(crate) fn print_read_back(excluded: Option<OsString>) -> ExitCode {
    print(
        inputs::builtin_tools()
            .and_then(|builtin| inputs::excluded_names(excluded.as_deref(), &builtin))
            .and_then(take),
    )
}

fn print<T: Serialize>(shown: Result<T, Fault>) -> ExitCode {
    let text = shown.and_then(|shown| serde_json::to_string(&shown).map_err(|error| Fault::host("no JSON", error)));
    match text {
        Ok(text) => {
            println!("{text}");
            ExitCode::Done
        }
        Err(fault) => {
            eprintln!("runner: {fault}");
            fault.reason.exit()
        }
    }
}

fn take(excluded: Vec<String>) -> Result<Shown, Fault> {
    let write = |path: &str, text: &str| fs::write(path, text).map_err(|error| Fault::host(path, error));
    write(SYSTEM_FILE, "look")?;
    let (post, mailbox) = mailbox();
    take_signals(post.clone())?;
    let start = Start {
        provider: "look".to_owned(),
        model: "look".to_owned(),
        thinking: Thinking::Off,
        excluded: excluded.clone(),
        system_file: SYSTEM_FILE.to_owned(),
    };
    let mut pi = Pi::start(&start, models().to_string().as_bytes(), post)?;
    let nonce = nonce()?;
    pi.send(&command::get_state("state"))?;
    pi.send(&command::get_commands("commands"))?;

    let until = Instant::now() + PATIENCE;
    let (mut state, mut look): (Option<Value>, Option<Look>) = (None, None);
    let mut complaints = String::new();
    while state.is_none() || look.is_none() {
        let silent = || {
            Fault::new(
                FaultReason::ToolsNotProven,
                format!("pi did not show itself: {complaints}"),
            )
        };
        match mailbox.next(until).ok_or_else(silent)? {
            Event::Pi(FromPi::Response(response)) if response.id == "commands" => {
                expect::commands(&response.data)?;
                pi.send(&command::prompt("read-back", &format!("/{READ_BACK_COMMAND} {nonce}")))?;
            }
            Event::Pi(FromPi::Response(response)) if response.id == "state" => state = Some(response.data),
            Event::Pi(FromPi::Look(shown)) if shown.nonce.as_deref() == Some(&nonce) => look = Some(*shown),
            Event::PiComplains(text) => complaints = text,
            Event::PiSilent | Event::Terminate => return Err(silent()),
            _ => {}
        }
    }
    pi.close();
    while pi.ended().is_none() && mailbox.next(Instant::now() + Duration::from_secs(5)).is_some() {
        pi.reap();
    }
    let look = look.ok_or_else(|| Fault::new(FaultReason::ToolsNotProven, "pi did not show itself"))?;
    Ok(Shown {
        pi: version()?,
        excluded,
        seen: expect::read_back(&look),
        snippets: look.snippets.unwrap_or_default(),
        state: state.unwrap_or_default(),
    })
}

/// A model that exists on paper only: nothing listens where it points.
fn models() -> Value {
    json!({ "providers": { "look": {
        "baseUrl": format!("{}/v1", contract::MODEL_ORIGIN),
        "api": "openai-completions",
        "apiKey": contract::DUMMY_KEY,
        "models": [{ "id": "look", "contextWindow": 8_192, "maxTokens": 1_024 }],
    } } })
}

/// pi's version, from the package that is in the image.
fn version() -> Result<String, Fault> {
    let invalid = |detail: String| Fault::new(FaultReason::ImageInvalid, detail);
    let text = inputs::file("/opt/pi/package.json", contract::limits::INPUT_FILE)?;
    let package: Value = serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
    package["version"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| invalid("pi's package has no version".to_owned()))
}

/// Sixteen random bytes as text.
pub(crate) fn nonce() -> Result<String, Fault> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(|error| Fault::host("no random bytes", error))?;
    Ok(hex::encode(bytes))
}
