//! From a file's text to its triggers, or to everything that is wrong with it.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::{CollectOptions, ParseOptions, errors::ParseErrorKind, parse_to_ast};
use sha2::{Digest, Sha256};

use crate::fault::{Fault, FaultKind};
use crate::identity;
use crate::keys::Level;
use crate::language::{Trigger, TriggerFile, TriggerGlobs};
use crate::source::Source;
use crate::texts;
use fields::Reader;

mod fields;
mod on;
mod run;

/// More faults than this are counted, not printed.
const MAX_FAULTS: usize = 200;

/// What became of a file.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The file, when it has no fault.
    pub file: Option<TriggerFile>,
    /// Every fault, in the order of the file. Empty exactly when `file` is there.
    pub faults: Vec<Fault>,
    /// What a person should know although the file loads, in the order of the file.
    pub remarks: Vec<Fault>,
}

/// Reads a triggers file. `file_name` is kept for messages and not opened.
pub fn parse(file_name: &str, text: &str) -> Parsed {
    let source = Source::new(text);
    let (faults, worth_reading) = source.check();
    let mut reader = Reader::new(&source, faults);
    let triggers = if worth_reading { file(&mut reader) } else { Vec::new() };
    let errors = reader.count();
    let (faults, remarks) = reader.into_faults();

    let file = (errors == 0).then(|| TriggerFile {
        name: file_name.to_owned(),
        sha256: hex::encode(Sha256::digest(text.as_bytes())),
        globs: triggers.iter().map(|read| read.globs.clone()).collect(),
        triggers: triggers.into_iter().map(|read| read.trigger).collect(),
    });
    Parsed {
        file,
        faults: bounded(&source, faults, errors),
        remarks,
    }
}

/// Reads a triggers file from its bytes; bytes that are not UTF-8 are a fault like any other.
pub fn parse_bytes(file_name: &str, bytes: &[u8]) -> Parsed {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(file_name, text),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            let at = error.valid_up_to();
            let message = texts::NOT_UTF8.to_owned();
            let fault = Source::new(&text).fault(at, at + '\u{fffd}'.len_utf8(), FaultKind::Encoding, message, None);
            Parsed {
                file: None,
                faults: vec![fault],
                remarks: Vec::new(),
            }
        }
    }
}

/// A trigger that was read without a fault, and where.
struct ReadTrigger {
    trigger: Trigger,
    globs: TriggerGlobs,
    start: usize,
    end: usize,
}

fn file(reader: &mut Reader<'_>) -> Vec<ReadTrigger> {
    // The parser's defaults take what JSON5 takes. Here a file is JSON with comments: each switch is set on purpose.
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let whole = reader.source.text;
    let mark = whole.len() - whole.trim_start_matches('\u{feff}').len();
    reader.shift(mark);
    let value = match parse_to_ast(&whole[mark..], &CollectOptions::default(), &options) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            let range = error.range();
            let help = match error.kind() {
                ParseErrorKind::TrailingCommasNotAllowed => texts::TRAILING_COMMA_HELP,
                _ => texts::ONE_FAULT_OF_SYNTAX,
            };
            if !reader.has_fault_at(range.start) {
                reader.fault(
                    range,
                    FaultKind::Syntax,
                    lower_first(&error.kind().to_string()),
                    Some(help.to_owned()),
                );
            }
            return Vec::new();
        }
    };

    let Some(value) = value else {
        let nothing = jsonc_parser::common::Range { start: 0, end: 0 };
        reader.fault(
            nothing,
            FaultKind::Syntax,
            texts::NOTHING_THERE.to_owned(),
            Some(texts::FILE_SHAPE_HELP.to_owned()),
        );
        return Vec::new();
    };
    let Some(root) = reader.object_value("the file", &value, Some(texts::FILE_SHAPE_HELP)) else {
        return Vec::new();
    };
    reader.keys(Level::File, root);
    let Some(entries) = reader.required(Level::File, root, "triggers") else {
        return Vec::new();
    };
    let Some(entries) = reader.array_value("triggers", &entries.value) else {
        return Vec::new();
    };

    let read: Vec<_> = entries.iter().filter_map(|entry| trigger(reader, entry)).collect();
    identities(reader, &read);
    read
}

fn trigger(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<ReadTrigger> {
    let before = reader.count();
    let entry = reader.object_value("a trigger", value, Some(texts::FILE_SHAPE_HELP))?;
    reader.keys(Level::Entry, entry);
    let id = reader.safe_name(entry, "id");
    let on = part(reader, entry, "on").and_then(|object| on::read(reader, object));
    let run = part(reader, entry, "run").and_then(|object| run::read(reader, object));
    let (Some((on, globs)), Some(run)) = (on, run) else {
        return None;
    };
    if reader.count() != before {
        return None;
    }

    let (start, end) = reader.offsets(entry.range);
    let (line, _) = reader.source.place(start);
    let id = id.unwrap_or_else(|| identity::derive(&on, &run));
    Some(ReadTrigger {
        trigger: Trigger { id, line, on, run },
        globs,
        start,
        end,
    })
}

fn part<'a, 't>(reader: &mut Reader<'_>, entry: &'a Object<'t>, key: &'static str) -> Option<&'a Object<'t>> {
    let property = reader.required(Level::Entry, entry, key)?;
    reader.object_value(key, &property.value, None)
}

/// Two triggers of one identity would share their history, and a job could not say whose it is.
fn identities(reader: &mut Reader<'_>, read: &[ReadTrigger]) {
    let mut first: HashMap<&str, u32> = HashMap::new();
    for one in read {
        let id = one.trigger.id.as_str();
        match first.get(id) {
            None => {
                first.insert(id, one.trigger.line);
            }
            Some(line) => {
                let message = texts::same_identity(id, *line);
                let help = Some(texts::SAME_IDENTITY_HELP.to_owned());
                reader.fault_at(one.start, one.end, FaultKind::SameIdentity, message, help);
            }
        }
    }
}

/// Sorted already; a hostile file must not become a hundred thousand lines.
fn bounded(source: &Source<'_>, mut faults: Vec<Fault>, errors: usize) -> Vec<Fault> {
    let left = errors.saturating_sub(MAX_FAULTS);
    if left > 0 {
        faults.truncate(MAX_FAULTS);
        let end = source.text.len();
        faults.push(source.fault(end, end, FaultKind::TooMany, texts::too_many(left), None));
    }
    faults
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
