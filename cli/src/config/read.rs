//! From text and variables to a flat map of typed values: every unknown key and every value of the wrong type is a fault.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Kind};
use super::secret::SecretPlace;
use super::{Fault, Origin};
use crate::environment::Environment;

/// Prefix of our variables.
pub(super) const PREFIX: &str = "PI_DISPATCH_";
/// Variables with our prefix that are not configuration keys: how much is logged, how much `./test` tests.
const OTHER_VARIABLES: &[&str] = &["PI_DISPATCH_LOG", "PI_DISPATCH_TEST"];

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Texts(Vec<String>),
    Wholes(Vec<i64>),
    Secret(SecretPlace),
    Secrets(Vec<SecretPlace>),
    Models(Vec<Json>),
}

/// A value and where it came from. The place is concrete: `forges`, `0`, `url`.
pub(super) type Values = BTreeMap<Vec<String>, (Value, Origin)>;

/// Reads file text and environment.
pub(super) fn values(text: &str, environment: &Environment) -> (Values, Vec<Fault>) {
    let mut reader = Reader {
        text,
        values: Values::new(),
        faults: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(table) => reader.table(table.get_ref(), &mut Vec::new()),
        Err(error) => {
            let line = error.span().map_or(1, |span| reader.line(span.start));
            let message = error.message().to_owned();
            reader.faults.push(Fault {
                origin: Origin::File { line },
                place: String::new(),
                message,
            });
        }
    }
    reader.environment(environment);
    (reader.values, reader.faults)
}

struct Reader<'t> {
    text: &'t str,
    values: Values,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text
            .as_bytes()
            .iter()
            .take(offset)
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    }

    fn fault(&mut self, offset: usize, place: &[String], message: String) {
        let origin = Origin::File {
            line: self.line(offset),
        };
        self.faults.push(Fault {
            origin,
            place: place.join("."),
            message,
        });
    }

    fn table(&mut self, table: &DeTable<'_>, place: &mut Vec<String>) {
        for (name, value) in table {
            place.push(name.get_ref().to_string());
            self.entry(name.span().start, value, place);
            place.pop();
        }
    }

    fn entry(&mut self, at: usize, value: &Spanned<DeValue<'_>>, place: &mut Vec<String>) {
        if let Some(key) = keys::find(place) {
            match typed(key.kind, value.get_ref()) {
                Ok(value) => {
                    let origin = Origin::File { line: self.line(at) };
                    self.values.insert(place.clone(), (value, origin));
                }
                Err(found) => self.fault(at, place, format!("found {found}; allowed is {}", key.kind.words())),
            }
            return;
        }
        match value.get_ref() {
            DeValue::Table(table) if keys::is_table(place) => self.table(table, place),
            DeValue::Array(entries) if keys::is_table(&[place.as_slice(), &["0".to_owned()]].concat()) => {
                for (index, entry) in entries.iter().enumerate() {
                    place.push(index.to_string());
                    match entry.get_ref() {
                        DeValue::Table(table) => self.table(table, place),
                        other => {
                            let found = format!("found {}; each entry is a table", other.type_str());
                            self.fault(entry.span().start, place, found);
                        }
                    }
                    place.pop();
                }
            }
            found if keys::is_table(place) => {
                let message = format!("found {}; it is a table of keys", found.type_str());
                self.fault(at, place, message);
            }
            _ => {
                let message = unknown(place);
                self.fault(at, place, message);
            }
        }
    }

    /// `PI_DISPATCH_WORKER_SLOTS`, `PI_DISPATCH_FORGES_CODEBERG_URL`, `PI_DISPATCH_PROVIDERS_LOCAL_BASE_URL`.
    fn environment(&mut self, environment: &Environment) {
        let names = self.names();
        for (variable, text) in environment.starting_with(PREFIX) {
            if OTHER_VARIABLES.contains(&variable) {
                continue;
            }
            let origin = Origin::Variable(variable.to_owned());
            let Some((place, kind)) = find_variable(&variable[PREFIX.len()..], &names) else {
                let message =
                    "no key of the configuration has this name; `pi-dispatch config --keys` lists them".to_owned();
                self.faults.push(Fault {
                    origin,
                    place: String::new(),
                    message,
                });
                continue;
            };
            match typed_text(kind, text) {
                Some(value) => {
                    self.values.insert(place, (value, origin));
                }
                None => {
                    let message = format!("its value is not {}", kind.words());
                    self.faults.push(Fault {
                        origin,
                        place: place.join("."),
                        message,
                    });
                }
            }
        }
    }

    /// Names of forges (with their index) and providers that the file has, for variables that speak about them.
    fn names(&self) -> Vec<(String, Vec<String>)> {
        let mut names = Vec::new();
        for (place, (value, _)) in &self.values {
            match (place.as_slice(), value) {
                ([list, index, name], Value::Text(text)) if list == "forges" && name == "name" => {
                    names.push((variable_word(text), vec![list.clone(), index.clone()]));
                }
                ([table, name, ..], _) if table == "providers" => {
                    names.push((variable_word(name), vec![table.clone(), name.clone()]));
                }
                _ => {}
            }
        }
        names.dedup();
        names
    }
}

fn variable_word(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}

fn find_variable(rest: &str, names: &[(String, Vec<String>)]) -> Option<(Vec<String>, Kind)> {
    keys::KEYS.iter().find_map(|key| {
        let plain = key.path.replace('.', "_").to_ascii_uppercase();
        let place: Vec<String> = key.path.split('.').map(str::to_owned).collect();
        if !key.path.contains(['[', '*']) {
            return (plain == rest).then_some((place, key.kind));
        }
        let last = place.last()?.clone();
        let head = if key.path.starts_with("forges") {
            "FORGES_"
        } else {
            "PROVIDERS_"
        };
        let middle = rest
            .strip_prefix(head)?
            .strip_suffix(&format!("_{}", last.to_ascii_uppercase()))?;
        let (_, at) = names
            .iter()
            .find(|(word, at)| word == middle && at[0].eq_ignore_ascii_case(&head[..head.len() - 1]))?;
        Some(([at.as_slice(), &[last]].concat(), key.kind))
    })
}

fn unknown(place: &[String]) -> String {
    let (last, above) = place
        .split_last()
        .map_or(("", &[][..]), |(last, above)| (last.as_str(), above));
    let names = keys::names_below(above);
    let nearest = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, last), name))
        .filter(|(distance, _)| *distance <= 3)
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, name)) => format!("unknown key; did you mean `{name}`?"),
        None => format!("unknown key; allowed here: {}", names.join(", ")),
    }
}

/// What was found, in words that hold no value: it could be a secret.
fn typed(kind: Kind, value: &DeValue<'_>) -> Result<Value, String> {
    let found = || value.type_str().to_owned();
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    match kind {
        Kind::Text => text(value).map(Value::Text).ok_or_else(found),
        Kind::Money => {
            let text = text(value).ok_or_else(found)?;
            contract::Micros::parse_usd(&text)
                .map(|_| Value::Text(text))
                .map_err(|error| error.to_string())
        }
        Kind::Whole => whole(value).map(Value::Whole).ok_or_else(found),
        Kind::Texts => list(value, text).map(Value::Texts).ok_or_else(found),
        Kind::Wholes => list(value, whole).map(Value::Wholes).ok_or_else(found),
        Kind::Secret => secret(value).map(Value::Secret),
        Kind::Secrets => {
            let entries = value.as_array().ok_or_else(found)?;
            entries
                .iter()
                .map(|entry| secret(entry.get_ref()))
                .collect::<Result<_, _>>()
                .map(Value::Secrets)
        }
        Kind::Models => {
            let entries = value.as_array().ok_or_else(found)?;
            entries
                .iter()
                .map(|entry| json(entry.get_ref()))
                .collect::<Result<_, _>>()
                .map(Value::Models)
        }
    }
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix())
        .ok()
        .filter(|number| *number >= 0)
}

fn list<T>(value: &DeValue<'_>, read: impl Fn(&DeValue<'_>) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(|entry| read(entry.get_ref())).collect()
}

fn secret(value: &DeValue<'_>) -> Result<SecretPlace, String> {
    let table = value
        .as_table()
        .ok_or_else(|| format!("{} (a secret never stands in this file)", value.type_str()))?;
    let mut entries = table.iter();
    match (entries.next(), entries.next()) {
        (Some((name, value)), None) => match (name.get_ref().as_ref(), value.get_ref()) {
            ("file", DeValue::String(path)) => Ok(SecretPlace::File(PathBuf::from(path.as_ref()))),
            ("env", DeValue::String(name)) => Ok(SecretPlace::Variable(name.to_string())),
            ("command", words) => list(words, |word| word.as_str().map(str::to_owned))
                .map(SecretPlace::Command)
                .ok_or_else(|| "a command that is not a list of words".to_owned()),
            (name, _) => Err(format!("`{name}`")),
        },
        _ => Err("a table with none or several keys".to_owned()),
    }
}

fn json(value: &DeValue<'_>) -> Result<Json, String> {
    match value {
        DeValue::String(text) => Ok(Json::String(text.to_string())),
        DeValue::Integer(_) => whole(value)
            .map(Json::from)
            .ok_or_else(|| "a number below zero".to_owned()),
        DeValue::Boolean(switch) => Ok(Json::Bool(*switch)),
        DeValue::Array(entries) => entries
            .iter()
            .map(|entry| json(entry.get_ref()))
            .collect::<Result<_, _>>()
            .map(Json::Array),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, value)| Ok((name.get_ref().to_string(), json(value.get_ref())?)))
            .collect::<Result<_, _>>()
            .map(Json::Object),
        other @ (DeValue::Float(_) | DeValue::Datetime(_)) => {
            Err(format!("{}; write amounts as text, such as \"0.25\"", other.type_str()))
        }
    }
}

/// A value that came as text, from a variable. Lists are separated by commas; a secret is a file's path.
fn typed_text(kind: Kind, text: &str) -> Option<Value> {
    let pieces = || text.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    let whole = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    match kind {
        Kind::Text => Some(Value::Text(text.to_owned())),
        Kind::Money => contract::Micros::parse_usd(text)
            .ok()
            .map(|_| Value::Text(text.to_owned())),
        Kind::Whole => whole(text).map(Value::Whole),
        Kind::Texts => Some(Value::Texts(pieces().map(str::to_owned).collect())),
        Kind::Wholes => pieces().map(whole).collect::<Option<_>>().map(Value::Wholes),
        Kind::Secret => Some(Value::Secret(SecretPlace::File(PathBuf::from(text)))),
        Kind::Secrets => Some(Value::Secrets(
            pieces().map(|path| SecretPlace::File(PathBuf::from(path))).collect(),
        )),
        Kind::Models => None,
    }
}
