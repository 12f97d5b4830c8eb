//! Reading single fields: each function answers with the value, or notes the fault and answers with `None`.
//!
//! "Absent" and "faulty" are both `None`: a trigger is kept only when reading it noted nothing.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::{Range, Ranged};

use crate::fault::{Fault, FaultKind, Severity};
use crate::keys::{Judgement, Level, nearest};
use crate::language::flow_name_is_safe;
use crate::source::{Source, is_invisible, visible};
use crate::texts;

/// Reads one file, and collects what is wrong with it.
pub(super) struct Reader<'s> {
    pub(super) source: &'s Source<'s>,
    faults: Vec<Fault>,
    /// How many errors there are, those that were not kept included.
    errors: usize,
    shift: usize,
}

/// Faults beyond this are counted only.
const MAX_KEPT: usize = 2_000;

/// A word of the file and the value that it stands for.
pub(super) type Words<T> = [(&'static str, T)];

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s Source<'s>, faults: Vec<Fault>) -> Self {
        Reader {
            source,
            errors: faults.len(),
            faults,
            shift: 0,
        }
    }

    /// The parser was given the text from this byte on.
    pub(super) fn shift(&mut self, bytes: usize) {
        self.shift = bytes;
    }

    /// How many errors were found so far.
    pub(super) fn count(&self) -> usize {
        self.errors
    }

    pub(super) fn offsets(&self, range: Range) -> (usize, usize) {
        (range.start + self.shift, range.end + self.shift)
    }

    pub(super) fn has_fault_at(&self, start: usize) -> bool {
        self.faults.iter().any(|fault| fault.span.start == start + self.shift)
    }

    pub(super) fn fault(&mut self, range: Range, kind: FaultKind, message: String, help: Option<String>) {
        let (start, end) = self.offsets(range);
        self.fault_at(start, end, kind, message, help);
    }

    pub(super) fn fault_at(
        &mut self,
        start: usize,
        end: usize,
        kind: FaultKind,
        message: String,
        help: Option<String>,
    ) {
        self.errors += usize::from(kind.severity() == Severity::Error);
        if self.faults.len() < MAX_KEPT {
            let fault = self.source.fault(start, end, kind, message, help);
            self.faults.push(fault);
        }
    }

    /// Faults and remarks, both in the order of the file.
    pub(super) fn into_faults(self) -> (Vec<Fault>, Vec<Fault>) {
        let mut all = self.faults;
        all.sort_by_key(|fault| (fault.span.start, fault.span.end));
        all.into_iter()
            .partition(|fault| fault.kind.severity() == Severity::Error)
    }

    /// Every key of an object must be one that the language has, and stand once.
    pub(super) fn keys(&mut self, level: Level, object: &Object<'_>) {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let range = property.name.range();
            if let Some(before) = first.get(key) {
                let (line, _) = self.source.place(*before);
                let help = Some(texts::DUPLICATE_KEY_HELP.to_owned());
                self.fault(range, FaultKind::DuplicateKey, texts::duplicate_key(key, line), help);
                continue;
            }
            first.insert(key, self.offsets(range).0);
            let (kind, message, help) = match level.judge(key) {
                Judgement::Known => continue,
                Judgement::Later => (
                    FaultKind::UnknownKey,
                    texts::later_key(key, level),
                    texts::LATER_HELP.to_owned(),
                ),
                Judgement::Refused(why) => (FaultKind::RefusedKey, texts::refused_key(key), why.to_owned()),
                Judgement::Elsewhere(other) => (
                    FaultKind::UnknownKey,
                    texts::unknown_key(key, level),
                    texts::belongs_elsewhere(key, other),
                ),
                Judgement::Unknown(Some(near)) => (
                    FaultKind::UnknownKey,
                    texts::unknown_key(key, level),
                    texts::did_you_mean(near),
                ),
                Judgement::Unknown(None) => (
                    FaultKind::UnknownKey,
                    texts::unknown_key(key, level),
                    texts::keys_are(level),
                ),
            };
            self.fault(range, kind, message, Some(help));
        }
    }

    pub(super) fn required<'a, 't>(
        &mut self,
        level: Level,
        object: &'a Object<'t>,
        key: &'static str,
    ) -> Option<&'a ObjectProp<'t>> {
        let found = property(object, key);
        if found.is_none() {
            let brace = Range {
                start: object.range.start,
                end: object.range.start + 1,
            };
            self.fault(brace, FaultKind::MissingKey, texts::missing_key(key, level), None);
        }
        found
    }

    pub(super) fn object_value<'a, 't>(
        &mut self,
        key: &str,
        value: &'a Value<'t>,
        help: Option<&str>,
    ) -> Option<&'a Object<'t>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(key, value, "an object", help.map(str::to_owned));
        }
        object
    }

    pub(super) fn array_value<'a, 't>(&mut self, key: &str, value: &'a Value<'t>) -> Option<&'a [Value<'t>]> {
        let array = value.as_array();
        if array.is_none() {
            self.wrong_type(key, value, "an array", None);
        }
        array.map(|array| array.elements.as_slice())
    }

    pub(super) fn string_value<'a, 't>(&mut self, key: &str, value: &'a Value<'t>) -> Option<&'a StringLit<'t>> {
        let text = value.as_string_lit();
        if text.is_none() {
            self.wrong_type(key, value, "a string", None);
        }
        text
    }

    pub(super) fn wrong_type(&mut self, key: &str, value: &Value<'_>, wants: &str, help: Option<String>) {
        self.fault(
            value.range(),
            FaultKind::WrongType,
            texts::wrong_type(key, wants, describe(value)),
            help,
        );
    }

    pub(super) fn wrong_value(&mut self, range: Range, message: String, help: impl Into<Option<String>>) {
        self.fault(range, FaultKind::WrongValue, message, help.into());
    }

    /// A string of one to `most` characters without invisible ones; `lines` lets line feeds and tabs through.
    pub(super) fn text<'a, 't>(
        &mut self,
        object: &'a Object<'t>,
        key: &'static str,
        most: usize,
        lines: bool,
    ) -> Option<&'a StringLit<'t>> {
        let text = self.string_value(key, &property(object, key)?.value)?;
        self.text_is_fine(key, text, most, lines).then_some(text)
    }

    pub(super) fn text_is_fine(&mut self, key: &str, text: &StringLit<'_>, most: usize, lines: bool) -> bool {
        if text.value.trim().is_empty() {
            self.wrong_value(text.range, texts::empty(key), None);
            return false;
        }
        if text.value.chars().count() > most {
            self.wrong_value(text.range, texts::too_long(key, most), None);
            return false;
        }
        let odd = text
            .value
            .chars()
            .find(|c| is_invisible(*c) && !(lines && matches!(c, '\n' | '\t')));
        if let Some(odd) = odd {
            self.wrong_value(text.range, texts::invisible_in(key, odd), None);
            return false;
        }
        true
    }

    /// A name that could be a path segment.
    pub(super) fn safe_name(&mut self, object: &Object<'_>, key: &'static str) -> Option<String> {
        let name = self.string_value(key, &property(object, key)?.value)?;
        if !flow_name_is_safe(&name.value) {
            self.wrong_value(name.range, texts::unsafe_name(key), texts::SAFE_NAME_HELP.to_owned());
            return None;
        }
        Some(name.value.to_string())
    }

    /// One of a few words. `later` are those of a later version.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        value: &Value<'_>,
        words: &Words<T>,
        later: &[&str],
    ) -> Option<T> {
        let text = self.string_value(key, value)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(*value);
        }
        let names: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
        let cut: String = text.value.chars().take(64).collect();
        if later.contains(&cut.as_str()) {
            self.wrong_value(text.range, texts::later_word(key, &cut), texts::one_of(&names));
        } else {
            let help = match nearest(&cut, &names) {
                Some(near) => format!("{} {}", texts::did_you_mean(near), texts::one_of(&names)),
                None => texts::one_of(&names),
            };
            self.wrong_value(text.range, texts::not_one_of(key, &visible(&cut)), help);
        }
        None
    }

    /// A whole number within bounds, in plain digits.
    pub(super) fn number(&mut self, object: &Object<'_>, key: &'static str, least: u64, most: u64) -> Option<u64> {
        let value = &property(object, key)?.value;
        let Some(literal) = value.as_number_lit() else {
            self.wrong_type(key, value, "a whole number", None);
            return None;
        };
        let number = literal
            .value
            .parse::<u64>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong_value(literal.range, texts::out_of_range(key, least, most), None);
        }
        number
    }
}

/// The first property of that name; a second one is a fault by itself.
pub(super) fn property<'a, 't>(object: &'a Object<'t>, key: &str) -> Option<&'a ObjectProp<'t>> {
    object.properties.iter().find(|property| property.name.as_str() == key)
}

fn describe(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(literal) if literal.value => "`true`",
        Value::BooleanLit(_) => "`false`",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "`null`",
    }
}
