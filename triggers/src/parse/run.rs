//! Reading `run`.

use contract::{Micros, Thinking, Tool};
use jsonc_parser::ast::{Object, StringLit, Value};
use jsonc_parser::common::Ranged;

use crate::fault::FaultKind;
use crate::keys::{Level, nearest};
use crate::language::{Mode, Outputs, PackagesOff, Run, RunKind};
use crate::parse::fields::{Reader, property};
use crate::{texts, usd};

const MAX_TEXT: usize = 16 * 1024;
const MAX_TURNS: u64 = 10_000;
const MAX_TOKENS: u64 = 1_000_000_000;
const MAX_MINUTES: u64 = 24 * 60;
const MAX_COMMENTS: u64 = 10;

pub(super) fn read(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<Run> {
    reader.keys(Level::Run, object);
    let kinds = RunKind::ALL.map(|kind| (kind.word(), kind));
    let levels = Thinking::ALL.map(|level| (level.word(), level));
    let modes = [Mode::Run, Mode::Observe].map(|mode| (mode.word(), mode));

    let kind = reader
        .required(Level::Run, object, "kind")
        .and_then(|found| reader.word("kind", &found.value, &kinds, &["github", "gitlab", "local"]));
    let flow = reader
        .required(Level::Run, object, "flow")
        .and_then(|_| reader.safe_name(object, "flow"));
    let task = own_text(reader, object, "task");
    let instructions = own_text(reader, object, "instructions");
    both_texts(reader, object);
    let image = plain(reader, object, "image", 255, is_image, texts::IMAGE_HELP);
    let exclude_tools = exclude_tools(reader, object);
    let packages = packages(reader, object);
    let provider = plain(
        reader,
        object,
        "provider",
        64,
        crate::language::flow_name_is_safe,
        texts::SAFE_NAME_HELP,
    );
    let model = plain(reader, object, "model", 200, is_model, texts::MODEL_HELP);
    let thinking = property(object, "thinking").and_then(|found| reader.word("thinking", &found.value, &levels, &[]));
    let max_turns = small(reader, object, "maxTurns", MAX_TURNS);
    let max_tokens = reader.number(object, "maxTokens", 1, MAX_TOKENS);
    let max_cost_usd = cost(reader, object);
    let timeout_minutes = small(reader, object, "timeoutMinutes", MAX_MINUTES);
    let outputs = property(object, "outputs").and_then(|found| outputs(reader, &found.value));
    let mode = property(object, "mode").and_then(|found| reader.word("mode", &found.value, &modes, &[]));

    remarks(reader, object, &exclude_tools, packages);
    Some(Run {
        kind: kind?,
        flow: flow?,
        task,
        instructions,
        image,
        exclude_tools,
        packages,
        provider,
        model,
        thinking,
        max_turns,
        max_tokens,
        max_cost_usd,
        timeout_minutes,
        outputs,
        mode: mode.unwrap_or_default(),
    })
}

fn own_text(reader: &mut Reader<'_>, object: &Object<'_>, key: &'static str) -> Option<String> {
    reader
        .text(object, key, MAX_TEXT, true)
        .map(|text| text.value.to_string())
}

fn both_texts(reader: &mut Reader<'_>, object: &Object<'_>) {
    if let (Some(_), Some(second)) = (property(object, "task"), property(object, "instructions")) {
        let help = texts::TASK_AND_INSTRUCTIONS_HELP.to_owned();
        reader.wrong_value(second.name.range(), texts::TASK_AND_INSTRUCTIONS.to_owned(), help);
    }
}

/// A one-line text of a certain shape.
fn plain(
    reader: &mut Reader<'_>,
    object: &Object<'_>,
    key: &'static str,
    most: usize,
    fits: fn(&str) -> bool,
    help: &str,
) -> Option<String> {
    let text = reader.text(object, key, most, false)?;
    if !fits(&text.value) {
        reader.wrong_value(text.range, texts::wrong_shape(key, &text.value), help.to_owned());
        return None;
    }
    Some(text.value.to_string())
}

fn is_image(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@".contains(c))
}

fn is_model(text: &str) -> bool {
    !text.contains(char::is_whitespace) && !text.starts_with('-')
}

fn small(reader: &mut Reader<'_>, object: &Object<'_>, key: &'static str, most: u64) -> Option<u32> {
    reader
        .number(object, key, 1, most)
        .and_then(|number| u32::try_from(number).ok())
}

fn cost(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<Micros> {
    let value = &property(object, "maxCostUsd")?.value;
    let Some(text) = value.as_string_lit() else {
        let help = match value.as_number_lit() {
            Some(number) => format!("{}: write \"{}\"", texts::COST_IS_TEXT, number.value),
            None => texts::COST_HELP.to_owned(),
        };
        reader.wrong_type("maxCostUsd", value, "decimal text", Some(help));
        return None;
    };
    let amount = usd::parse(&text.value);
    if amount.is_none() {
        reader.wrong_value(text.range, texts::COST_SHAPE.to_owned(), texts::COST_HELP.to_owned());
    }
    amount
}

fn packages(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<PackagesOff> {
    let value = &property(object, "packages")?.value;
    match value.as_boolean_lit() {
        Some(said) if !said.value => Some(PackagesOff),
        Some(said) => {
            reader.wrong_value(
                said.range,
                texts::PACKAGES_TRUE.to_owned(),
                texts::PACKAGES_HELP.to_owned(),
            );
            None
        }
        None => {
            reader.wrong_type("packages", value, "`false`", Some(texts::PACKAGES_HELP.to_owned()));
            None
        }
    }
}

fn outputs(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Outputs> {
    let object = reader.object_value("outputs", value, None)?;
    reader.keys(Level::Outputs, object);
    match property(object, "comment") {
        None => Some(Outputs::default()),
        Some(_) => {
            let comment = reader.number(object, "comment", 0, MAX_COMMENTS)?;
            u32::try_from(comment).ok().map(|comment| Outputs { comment })
        }
    }
}

/// pi ignores a name that it does not know, so here a name must be one of the eight, exactly. Every refusal says which
/// they are.
fn exclude_tools(reader: &mut Reader<'_>, object: &Object<'_>) -> Vec<Tool> {
    let Some(found) = property(object, "excludeTools") else {
        return Vec::new();
    };
    let Some(array) = found.value.as_array() else {
        reader.wrong_type(
            "excludeTools",
            &found.value,
            "an array of names",
            Some(texts::tools_are()),
        );
        return Vec::new();
    };
    if array.elements.is_empty() {
        reader.wrong_value(array.range, texts::EXCLUDE_TOOLS_EMPTY.to_owned(), texts::tools_are());
    }
    let mut tools = Vec::new();
    for element in &array.elements {
        let Some(name) = element.as_string_lit() else {
            reader.wrong_type("excludeTools", element, "names only", Some(texts::tools_are()));
            continue;
        };
        match Tool::from_name(&name.value) {
            Some(tool) if tools.contains(&tool) => {
                reader.wrong_value(name.range, texts::duplicate_tool(tool.name()), texts::tools_are());
            }
            Some(tool) => tools.push(tool),
            None => unknown_tool(reader, name),
        }
    }
    tools
}

fn unknown_tool(reader: &mut Reader<'_>, name: &StringLit<'_>) {
    let said: String = name.value.chars().take(64).collect();
    let names = Tool::ALL.map(Tool::name);
    let trimmed = said.trim().to_ascii_lowercase();
    let (message, help) = if said.contains(['*', '?', '[', '{', '!']) {
        (texts::tool_pattern(&said), texts::tools_are())
    } else if let Some(right) = names.iter().find(|right| **right == trimmed) {
        (texts::unknown_tool(&said), texts::tool_case(right))
    } else if let Some(near) = nearest(&said, &names) {
        (texts::unknown_tool(&said), texts::tool_meant(near))
    } else {
        (texts::unknown_tool(&said), texts::tools_are())
    };
    reader.fault(name.range, FaultKind::UnknownTool, message, Some(help));
}

fn remarks(reader: &mut Reader<'_>, object: &Object<'_>, excluded: &[Tool], packages: Option<PackagesOff>) {
    let Some(found) = property(object, "excludeTools") else {
        return;
    };
    if excluded.contains(&Tool::Bash) && !excluded.contains(&Tool::Powershell) {
        let help = Some(texts::POWERSHELL_STAYS_HELP.to_owned());
        reader.fault(
            found.value.range(),
            FaultKind::PowershellStays,
            texts::POWERSHELL_STAYS.to_owned(),
            help,
        );
    }
    if !excluded.is_empty() && packages.is_none() && property(object, "packages").is_none() {
        let help = Some(texts::PACKAGES_UNSAID_HELP.to_owned());
        reader.fault(
            found.name.range(),
            FaultKind::PackagesUnsaid,
            texts::PACKAGES_UNSAID.to_owned(),
            help,
        );
    }
}
