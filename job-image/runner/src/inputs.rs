//! What the runner is given, read and checked before anything is started.
//!
//! Order: the exclusions of the environment against the image's own list first, so that a container run by hand with
//! `PI_EXCLUDE_TOOLS=Bash` is refused for that; then the files, and that they say the same.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;

use contract::{BuiltinTools, FaultReason, JobFile, TOOLS_FILE_VERSION, ToolsFile, limits, paths};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::argv::Start;
use crate::fault::Fault;

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// pi's own tools, as the image was built with.
    pub(crate) builtin: BuiltinTools,
    /// The job.
    pub(crate) job: JobFile,
    /// `models.json` as it goes into pi's agent directory.
    pub(crate) models: Vec<u8>,
    /// The price of the job's model in `models.json`.
    pub(crate) price: Value,
    /// The whole system prompt.
    pub(crate) system: Vec<u8>,
    /// The first message.
    pub(crate) message: String,
}

impl Inputs {
    /// Reads and checks all of them.
    pub(crate) fn read(excluded: Option<OsString>) -> Result<Inputs, Fault> {
        let builtin = builtin_tools()?;
        let names = excluded_names(excluded.as_deref(), &builtin)?;
        let job = JobFile::parse(&file(paths::JOB_FILE, limits::INPUT_FILE)?)
            .map_err(|error| Fault::new(FaultReason::InputInvalid, error.to_string()))?;
        same_exclusions(&names, &job)?;
        proposals_match(&file(paths::TOOLS_FILE, limits::INPUT_FILE)?, &job)?;
        let models = file(paths::MODELS_FILE, limits::INPUT_FILE)?;
        let price = price(&models, &job)?;
        let system = file(paths::SYSTEM_FILE, limits::PROMPT_FILE)?;
        hash_matches(paths::SYSTEM_FILE, &system, &job.system_sha256)?;
        let message = file(paths::PROMPT_FILE, limits::PROMPT_FILE)?;
        hash_matches(paths::PROMPT_FILE, &message, &job.prompt_sha256)?;
        let message = first_message(message)?;
        Ok(Inputs {
            builtin,
            job,
            models,
            price,
            system,
            message,
        })
    }

    /// How pi is to be started for this job.
    pub(crate) fn start(&self) -> Start {
        Start {
            provider: self.job.provider.clone(),
            model: self.job.model.clone(),
            thinking: self.job.thinking,
            excluded: self
                .job
                .exclude_tools
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
            system_file: paths::SYSTEM_FILE.to_owned(),
        }
    }
}

/// The list that the image was built with.
pub(crate) fn builtin_tools() -> Result<BuiltinTools, Fault> {
    let invalid = |detail: String| Fault::new(FaultReason::ImageInvalid, format!("{}: {detail}", paths::BUILTIN_TOOLS));
    let text = file(paths::BUILTIN_TOOLS, limits::INPUT_FILE).map_err(|fault| invalid(fault.detail))?;
    serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))
}

/// The names of `PI_EXCLUDE_TOOLS`; each must be one that this image's pi knows, exactly.
pub(crate) fn excluded_names(variable: Option<&OsStr>, builtin: &BuiltinTools) -> Result<Vec<String>, Fault> {
    let Some(variable) = variable else {
        return Ok(Vec::new());
    };
    let unknown = |detail: String| Fault::new(FaultReason::ExcludeToolsUnknown, detail);
    let text = variable
        .to_str()
        .ok_or_else(|| unknown("PI_EXCLUDE_TOOLS is not text".to_owned()))?;
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    match names.iter().find(|name| !builtin.knows(name)) {
        Some(name) => {
            let known: Vec<&str> = builtin.tools.iter().map(|tool| tool.name.as_str()).collect();
            Err(unknown(format!(
                "pi {} has no tool {name:?}; it has {}",
                builtin.pi,
                known.join(", ")
            )))
        }
        None => Ok(names),
    }
}

fn same_exclusions(names: &[String], job: &JobFile) -> Result<(), Fault> {
    let of_job: Vec<&str> = job.exclude_tools.iter().map(|tool| tool.name()).collect();
    if names == of_job.as_slice() {
        return Ok(());
    }
    let detail = format!("PI_EXCLUDE_TOOLS says {names:?}, job.json says {of_job:?}");
    Err(Fault::new(FaultReason::ExcludeToolsDiffer, detail))
}

fn proposals_match(text: &[u8], job: &JobFile) -> Result<(), Fault> {
    let invalid = |detail: String| Fault::new(FaultReason::InputInvalid, format!("tools.json: {detail}"));
    let tools: ToolsFile = serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
    if tools.version != TOOLS_FILE_VERSION {
        return Err(invalid(format!("it is of version {}", tools.version)));
    }
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    if names != job.proposals {
        return Err(invalid(format!(
            "it holds {names:?}, job.json names {:?}",
            job.proposals
        )));
    }
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(invalid(format!("{name:?} stands in it twice"))),
        None => Ok(()),
    }
}

/// The price of the job's model. The key beside it must be a plain word: pi would run `!command` and read `$NAME`.
fn price(models: &[u8], job: &JobFile) -> Result<Value, Fault> {
    let invalid = |detail: &str| Fault::new(FaultReason::InputInvalid, format!("models.json: {detail}"));
    let models: Value = serde_json::from_slice(models).map_err(|error| invalid(&error.to_string()))?;
    let provider = models["providers"]
        .get(&job.provider)
        .ok_or_else(|| invalid("the job's provider is not in it"))?;
    if provider["apiKey"] != contract::DUMMY_KEY {
        return Err(invalid("the provider's key is not the dummy"));
    }
    let model = provider["models"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|model| model["id"] == job.model.as_str());
    Ok(model.ok_or_else(|| invalid("the job's model is not in it"))?["cost"].clone())
}

fn hash_matches(path: &str, bytes: &[u8], expected: &str) -> Result<(), Fault> {
    if sha256(bytes) == expected {
        return Ok(());
    }
    Err(Fault::new(
        FaultReason::InputInvalid,
        format!("{path} is not the text that job.json speaks of"),
    ))
}

fn first_message(bytes: Vec<u8>) -> Result<String, Fault> {
    let invalid = |detail: &str| Fault::new(FaultReason::InputInvalid, format!("{}: {detail}", paths::PROMPT_FILE));
    let text = String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"))?;
    // pi takes a message that begins so as a command.
    if text.trim_start().starts_with('/') {
        return Err(invalid("it begins with a slash"));
    }
    if text.trim().is_empty() {
        return Err(invalid("it is empty"));
    }
    Ok(text)
}

/// Lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The whole of a file that is at most `most` bytes long.
pub(crate) fn file(path: &str, most: usize) -> Result<Vec<u8>, Fault> {
    let invalid = |detail: String| Fault::new(FaultReason::InputInvalid, format!("{path}: {detail}"));
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(|error| invalid(error.to_string()))?;
    opened
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(error.to_string()))?;
    if bytes.len() > most {
        return Err(invalid(format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::ffi::OsStrExt;

    use contract::{ApiShape, JOB_FILE_VERSION, JobLimits, ProposalTool, Thinking, Tool};
    use serde_json::json;

    use super::*;

    pub(crate) fn job(excluded: &[Tool]) -> JobFile {
        JobFile {
            version: JOB_FILE_VERSION,
            job: 7,
            attempt: 1,
            exclude_tools: excluded.to_vec(),
            provider: "local".into(),
            model: "m".into(),
            api: ApiShape::OpenaiCompletions,
            thinking: Thinking::Off,
            limits: JobLimits::default(),
            proposals: vec!["forge_comment".into()],
            system_sha256: sha256(b"system"),
            prompt_sha256: sha256(b"prompt"),
        }
    }

    fn names(variable: &[u8]) -> Result<Vec<String>, Fault> {
        excluded_names(Some(OsStr::from_bytes(variable)), &BuiltinTools::pinned())
    }

    #[test]
    fn a_name_that_the_baked_pi_does_not_know_is_refused_in_any_spelling() {
        for variable in [
            &b"Bash"[..],
            b"bash,Edit",
            b"",
            b"bash,",
            b"bash, edit",
            b"*",
            b"b\xffash",
            b"shell",
        ] {
            let fault = names(variable).unwrap_err();
            assert_eq!(fault.reason, FaultReason::ExcludeToolsUnknown, "{variable:?}");
        }
        assert_eq!(names(b"bash,ls").unwrap(), ["bash", "ls"]);
        assert_eq!(excluded_names(None, &BuiltinTools::pinned()).unwrap(), [""; 0]);
    }

    #[test]
    fn the_environment_must_say_what_the_job_says_in_the_same_order() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let job = job(&[Tool::Bash, Tool::Write]);
        assert!(same_exclusions(&names(&["bash", "write"]), &job).is_ok());
        for other in [
            &["bash"][..],
            &["write", "bash"],
            &["bash", "write", "ls"],
            &["bash", "bash"],
            &[],
        ] {
            let fault = same_exclusions(&names(other), &job).unwrap_err();
            assert_eq!(fault.reason, FaultReason::ExcludeToolsDiffer, "{other:?}");
        }
    }

    #[test]
    fn a_models_file_with_a_command_as_key_or_without_the_model_is_refused() {
        let file = |key: &str, id: &str| {
            json!({ "providers": { "local": { "apiKey": key, "models": [{ "id": id, "cost": { "input": 1 } }] } } })
                .to_string()
        };
        let job = job(&[]);
        assert_eq!(
            price(file(contract::DUMMY_KEY, "m").as_bytes(), &job).unwrap(),
            json!({ "input": 1 })
        );
        for odd in [
            file("!id", "m"),
            file("$KEY", "m"),
            file(contract::DUMMY_KEY, "other"),
            "{}".into(),
            "[".into(),
        ] {
            assert_eq!(
                price(odd.as_bytes(), &job).unwrap_err().reason,
                FaultReason::InputInvalid,
                "{odd}"
            );
        }
    }

    #[test]
    fn the_tools_file_must_hold_exactly_the_tools_that_the_job_names() {
        let file = |tools| serde_json::to_vec(&ToolsFile::new(tools)).unwrap();
        let job = job(&[]);
        assert!(proposals_match(&file(vec![ProposalTool::forge_comment()]), &job).is_ok());
        assert!(proposals_match(&file(vec![]), &job).is_err());
        assert!(
            proposals_match(
                &file(vec![ProposalTool::forge_comment(), ProposalTool::forge_comment()]),
                &job
            )
            .is_err()
        );
        assert!(proposals_match(br#"{"version":2,"tools":[]}"#, &job).is_err());
    }

    #[test]
    fn a_first_message_that_pi_would_take_as_a_command_is_refused() {
        assert!(first_message(b"hello /there".to_vec()).is_ok());
        for odd in [&b"/merge"[..], b"  /merge", b"", b" \n", b"\xff"] {
            assert!(first_message(odd.to_vec()).is_err(), "{odd:?}");
        }
    }
}
