//! What the live session must have, and the comparison with what it has.

use contract::{BuiltinTools, FaultReason, JobFile, ReadBack, expected_active, expected_registered, paths};
use serde_json::Value;

use crate::fault::Fault;
use crate::inputs::{Inputs, sha256};
use crate::rpc::Look;

/// What is expected of one job's session.
#[derive(Debug)]
pub(crate) struct Expected {
    active: Vec<String>,
    registered: Vec<String>,
    builtin: BuiltinTools,
    model: String,
    system_sha256: String,
}

impl Expected {
    /// What the inputs ask for.
    pub(crate) fn of(inputs: &Inputs) -> Expected {
        let proposing = || inputs.job.proposals.iter().map(String::as_str);
        Expected {
            active: expected_active(&inputs.job.exclude_tools, proposing()),
            registered: expected_registered(&inputs.job.exclude_tools, proposing()),
            builtin: inputs.builtin.clone(),
            model: format!("{}/{}", inputs.job.provider, inputs.job.model),
            system_sha256: sha256(&whole_prompt(&inputs.system)),
        }
    }

    /// Whether the tools are the expected ones, each from where it must come.
    pub(crate) fn tools(&self, seen: &Look) -> Result<(), Fault> {
        let differs = |detail: String| Err(Fault::new(FaultReason::ToolsNotProven, detail));
        let registered = sorted(seen.registered.iter().map(|tool| tool.name.clone()));
        if registered != self.registered {
            return differs(format!("registered are {registered:?}, expected {:?}", self.registered));
        }
        let active = sorted(seen.active.iter().cloned());
        if active != self.active {
            return differs(format!("active are {active:?}, expected {:?}", self.active));
        }
        // An extension could put its own tool under a built-in name; its source would tell.
        let stranger = seen.registered.iter().find(|tool| {
            let is_builtin = tool.source == "builtin" && tool.path == format!("builtin:{}", tool.name);
            let is_bridge = tool.source == "cli" && tool.path == paths::BRIDGE;
            !(if self.builtin.knows(&tool.name) {
                is_builtin
            } else {
                is_bridge
            })
        });
        match stranger {
            Some(tool) => differs(format!(
                "{:?} comes from {:?} ({:?})",
                tool.name, tool.path, tool.source
            )),
            None => Ok(()),
        }
    }

    /// Whether everything else is as expected too.
    pub(crate) fn session(&self, seen: &Look) -> Result<(), Fault> {
        if seen.model.as_deref() != Some(&self.model) {
            let detail = format!("the session's model is {:?}, expected {:?}", seen.model, self.model);
            return Err(Fault::new(FaultReason::ModelDiffers, detail));
        }
        if seen.system_sha256 != self.system_sha256 {
            let detail = "the session's system prompt is not the one that the worker wrote";
            return Err(Fault::new(FaultReason::PromptDiffers, detail));
        }
        let odd = |detail: String| Err(Fault::new(FaultReason::SessionDiffers, detail));
        if !seen.skills.is_empty() || !seen.context_files.is_empty() {
            return odd(format!(
                "pi found skills {:?} and context files {:?}",
                seen.skills, seen.context_files
            ));
        }
        if seen.cwd != paths::WORKSPACE {
            return odd(format!("the working directory is {:?}", seen.cwd));
        }
        Ok(())
    }
}

/// The system prompt as pi sends it: our text, then its own part about the working directory.
fn whole_prompt(system: &[u8]) -> Vec<u8> {
    [system, format!("\n\n<cwd>\n{}\n</cwd>", paths::WORKSPACE).as_bytes()].concat()
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Whether `get_state` shows the job's model with the job's price.
pub(crate) fn state(data: &Value, job: &JobFile, price: &Value) -> Result<(), Fault> {
    let differs = |detail: String| Err(Fault::new(FaultReason::ModelDiffers, detail));
    let model = &data["model"];
    if model["id"] != job.model.as_str() || model["provider"] != job.provider.as_str() {
        return differs(format!("pi uses {}/{}", model["provider"], model["id"]));
    }
    if model["api"] != job.api.word() {
        return differs(format!("pi speaks {} with it", model["api"]));
    }
    let origin = model["baseUrl"].as_str().unwrap_or_default();
    if origin != contract::MODEL_ORIGIN && !origin.starts_with(&format!("{}/", contract::MODEL_ORIGIN)) {
        return differs(format!("pi would send its requests to {origin:?}"));
    }
    for part in ["input", "output", "cacheRead", "cacheWrite"] {
        let amount = |of: &Value| of[part].as_f64().unwrap_or(0.0);
        if amount(&model["cost"]) != amount(price) {
            return differs(format!(
                "pi counts {} for {part}, models.json says {}",
                model["cost"][part], price[part]
            ));
        }
    }
    Ok(())
}

/// A remark when pi's thinking level is not the asked one: it moves the level to what the model can.
pub(crate) fn thinking(data: &Value, job: &JobFile) -> Option<String> {
    let found = data["thinkingLevel"].as_str().unwrap_or("unknown");
    (found != job.thinking.word()).then(|| format!("asked for {}, pi uses {found}", job.thinking.word()))
}

/// Whether `get_commands` shows the bridge's command, and it is the bridge's. Without it, the read-back's text would
/// go to the model.
pub(crate) fn commands(data: &Value) -> Result<(), Fault> {
    let commands = data["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = commands.iter().any(|command| {
        command["name"] == crate::rpc::READ_BACK_COMMAND && command["sourceInfo"]["path"] == paths::BRIDGE
    });
    if ours {
        return Ok(());
    }
    Err(Fault::new(
        FaultReason::ToolsNotProven,
        "the bridge's read-back command is not there",
    ))
}

/// The contract's form of a look.
pub(crate) fn read_back(look: &Look) -> ReadBack {
    ReadBack {
        active: look.active.clone(),
        registered: look.registered.clone(),
        model: look.model.clone(),
        thinking: look.thinking.clone(),
        cwd: look.cwd.clone(),
        system_sha256: look.system_sha256.clone(),
        skills: look.skills.clone(),
    }
}

#[cfg(test)]
mod tests {
    use contract::{SeenTool, Tool};
    use serde_json::json;

    use super::*;
    use crate::inputs::tests::job;

    fn inputs(excluded: &[Tool]) -> Inputs {
        Inputs {
            builtin: BuiltinTools::pinned(),
            job: job(excluded),
            models: vec![],
            price: json!({}),
            system: b"system".to_vec(),
            message: "prompt".into(),
        }
    }

    /// What pi 1.6.0 shows when these are excluded; tried with the real one for all subsets in the image's own test.
    fn look(excluded: &[Tool]) -> Look {
        let left: Vec<Tool> = Tool::ALL.into_iter().filter(|tool| !excluded.contains(tool)).collect();
        let seen = |name: &str, source: &str, path: String| SeenTool {
            name: name.into(),
            source: source.into(),
            path,
        };
        let mut registered: Vec<SeenTool> = left
            .iter()
            .map(|tool| seen(tool.name(), "builtin", format!("builtin:{tool}")))
            .collect();
        registered.push(seen("forge_comment", "cli", paths::BRIDGE.into()));
        let mut active: Vec<String> = left
            .iter()
            .filter(|tool| tool.default_active())
            .map(|tool| tool.name().to_owned())
            .collect();
        active.push("forge_comment".into());
        Look {
            why: "command".into(),
            nonce: None,
            active,
            registered,
            model: Some("local/m".into()),
            thinking: Some("off".into()),
            cwd: "/workspace".into(),
            system_sha256: sha256(b"system\n\n<cwd>\n/workspace\n</cwd>"),
            skills: vec![],
            context_files: vec![],
            snippets: None,
        }
    }

    fn subsets() -> impl Iterator<Item = Vec<Tool>> {
        (0..=255_u8).map(|bits| {
            Tool::ALL
                .into_iter()
                .enumerate()
                .filter(|(at, _)| bits & (1 << at) != 0)
                .map(|(_, tool)| tool)
                .collect()
        })
    }

    #[test]
    fn every_subset_expects_exactly_what_is_left_and_no_other_subsets_session() {
        let looks: Vec<Look> = subsets().map(|excluded| look(&excluded)).collect();
        for (at, excluded) in subsets().enumerate() {
            let expected = Expected::of(&inputs(&excluded));
            for (other, look) in looks.iter().enumerate() {
                assert_eq!(
                    expected.tools(look).is_ok(),
                    other == at,
                    "{excluded:?} against subset {other}"
                );
            }
        }
    }

    #[test]
    fn a_tool_under_a_builtin_name_or_from_another_extension_is_a_difference() {
        let expected = Expected::of(&inputs(&[Tool::Bash]));
        let mut replaced = look(&[Tool::Bash]);
        replaced.registered[0].source = "cli".into();
        replaced.registered[0].path = paths::BRIDGE.into();
        assert!(expected.tools(&replaced).is_err());

        let mut foreign = look(&[Tool::Bash]);
        foreign.registered.last_mut().unwrap().path = "/workspace/.pi/extensions/attack.js".into();
        assert!(expected.tools(&foreign).is_err());

        let mut more = look(&[Tool::Bash]);
        more.registered.push(SeenTool {
            name: "Bash".into(),
            source: "cli".into(),
            path: paths::BRIDGE.into(),
        });
        assert!(expected.tools(&more).is_err());

        let mut doubled = look(&[Tool::Bash]);
        doubled.active.push("read".into());
        assert!(expected.tools(&doubled).is_err());
    }

    #[test]
    fn another_model_prompt_skill_or_folder_is_a_difference() {
        let expected = Expected::of(&inputs(&[]));
        assert!(expected.session(&look(&[])).is_ok());
        let with = |change: fn(&mut Look)| {
            let mut look = look(&[]);
            change(&mut look);
            expected.session(&look).unwrap_err().reason
        };
        assert_eq!(
            with(|look| look.model = Some("local/n".into())),
            FaultReason::ModelDiffers
        );
        assert_eq!(with(|look| look.model = None), FaultReason::ModelDiffers);
        assert_eq!(
            with(|look| look.system_sha256 = sha256(b"system")),
            FaultReason::PromptDiffers
        );
        assert_eq!(with(|look| look.skills.push("x".into())), FaultReason::SessionDiffers);
        assert_eq!(
            with(|look| look.context_files.push("/workspace/AGENTS.md".into())),
            FaultReason::SessionDiffers
        );
        assert_eq!(with(|look| look.cwd = "/".into()), FaultReason::SessionDiffers);
    }

    #[test]
    fn a_state_with_another_model_price_or_address_is_a_difference() {
        let price = json!({ "input": 3, "output": 15 });
        let good = json!({ "model": { "id": "m", "provider": "local", "api": "openai-completions",
            "baseUrl": "http://127.0.0.1:18080/v1", "cost": { "input": 3.0, "output": 15, "cacheRead": 0 } } });
        assert!(state(&good, &job(&[]), &price).is_ok());
        for (at, value) in [
            ("/model/id", json!("other")),
            ("/model/provider", json!("openai")),
            ("/model/api", json!("anthropic-messages")),
            ("/model/baseUrl", json!("http://127.0.0.1:180801/v1")),
            ("/model/baseUrl", json!("https://example.org")),
            ("/model/cost/output", json!(1)),
            ("/model/cost/cacheRead", json!(1)),
        ] {
            let mut changed = good.clone();
            *changed.pointer_mut(at).unwrap() = value;
            assert!(state(&changed, &job(&[]), &price).is_err(), "{at}");
        }
    }
}
