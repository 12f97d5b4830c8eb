//! Small checks of one JSON value each, and the place in the request that a refusal names.

use std::{borrow::Cow, fmt};

use super::{Asked, No, Rules};
use crate::json::Json;

/// Why a request is answered 403.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// A kebab-case word.
    pub(crate) why: &'static str,
    /// Where in the request; names that the job chose are cut and cleaned.
    pub(crate) place: String,
}

impl Refusal {
    pub(crate) fn new(why: &'static str, place: impl fmt::Display) -> Self {
        Self {
            why,
            place: clean(&place.to_string(), 120),
        }
    }
}

/// Keeps what cannot steer a terminal, a log or a page; the rest becomes `?`. At most `most` characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let shown = text.chars().take(most).map(|c| match c {
        c if c.is_ascii_alphanumeric() || "._-[]$/ =:".contains(c) => c,
        _ => '?',
    });
    let cut = if text.chars().nth(most).is_some() { "…" } else { "" };
    shown.collect::<String>() + cut
}

/// Where a value stands: built on the stack, written only when something is refused.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    above: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) fn body() -> Self {
        Self {
            above: None,
            step: Step::Key("body"),
        }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Place<'a> {
        Place {
            above: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Place<'a> {
        Place {
            above: Some(self),
            step: Step::Index(index),
        }
    }

    pub(super) fn refuse(&self, why: &'static str) -> No {
        No::Refused(Refusal::new(why, self))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            fmt::Display::fmt(above, f)?;
        }
        match self.step {
            Step::Key(key) if self.above.is_some() => write!(f, ".{}", clean(key, 40)),
            Step::Key(key) => f.write_str(key),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The fields of an object.
pub(super) fn object<'j, 't>(json: &'j Json<'t>, at: &Place<'_>) -> Result<&'j [(Cow<'t, str>, Json<'t>)], No> {
    match json {
        Json::Object(fields) => Ok(fields),
        _ => Err(at.refuse("value")),
    }
}

/// The items of an array.
pub(super) fn array<'j, 't>(json: &'j Json<'t>, at: &Place<'_>) -> Result<&'j [Json<'t>], No> {
    json.as_array().ok_or_else(|| at.refuse("value"))
}

/// A string.
pub(super) fn text<'j>(json: &'j Json<'_>, at: &Place<'_>) -> Result<&'j str, No> {
    json.as_str().ok_or_else(|| at.refuse("value"))
}

/// A string that must be there.
pub(super) fn needed_text<'j>(json: &'j Json<'_>, key: &str, at: &Place<'_>) -> Result<&'j str, No> {
    json.get(key)
        .and_then(Json::as_str)
        .ok_or_else(|| at.key(key).refuse("value"))
}

/// One of a few words.
pub(super) fn one_of(json: &Json<'_>, words: &[&str], at: &Place<'_>) -> Result<(), No> {
    if words.contains(&text(json, at)?) {
        Ok(())
    } else {
        Err(at.refuse("value"))
    }
}

/// `true` or `false`.
pub(super) fn boolean(json: &Json<'_>, at: &Place<'_>) -> Result<bool, No> {
    match json {
        Json::Bool(value) => Ok(*value),
        _ => Err(at.refuse("value")),
    }
}

/// Any number.
pub(super) fn number(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    match json {
        Json::Number(_) => Ok(()),
        _ => Err(at.refuse("value")),
    }
}

/// A whole number that is not negative.
pub(super) fn whole(json: &Json<'_>, at: &Place<'_>) -> Result<u64, No> {
    json.as_u64().ok_or_else(|| at.refuse("value"))
}

/// A word like an effort level: short, letters only. Providers have their own.
pub(super) fn level(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    let word = text(json, at)?;
    let fits = (1..=24).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'-');
    if fits { Ok(()) } else { Err(at.refuse("value")) }
}

/// `{"type": "ephemeral"}`, for five minutes: the hour costs twice as much, and nobody here asks for it.
pub(super) fn cache_control(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => one_of(value, &["ephemeral"], &at)?,
            "ttl" => one_of(value, &["5m"], &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// A tool's JSON Schema. Its words are free, but it may not point outside itself.
pub(super) fn schema(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    object(json, at)?;
    inner_schema(json, at)
}

fn inner_schema(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    match json {
        Json::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let at = at.key(key);
            let refers = matches!(key.as_ref(), "$ref" | "$dynamicRef" | "$recursiveRef");
            match value.as_str() {
                Some(target) if refers && !target.starts_with('#') => Err(at.refuse("remote")),
                _ => inner_schema(value, &at),
            }
        }),
        Json::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| inner_schema(item, &at.index(index))),
        _ => Ok(()),
    }
}

/// A tool's name: in the job's set, or a breach, or refused.
pub(super) fn tool_name(rules: &Rules<'_>, json: &Json<'_>, at: &Place<'_>) -> Result<String, No> {
    let name = text(json, at)?;
    if rules.excluded.contains(name) {
        return Err(No::Breach(name.to_owned()));
    }
    if !rules.allowed.contains(name) {
        return Err(at.refuse("tool"));
    }
    Ok(name.to_owned())
}

/// A tool's name may be offered once.
pub(super) fn offer(asked: &mut Asked, name: String, at: &Place<'_>) -> Result<(), No> {
    if asked.tools.contains(&name) {
        return Err(at.refuse("tool-twice"));
    }
    asked.tools.push(name);
    Ok(())
}

/// The kinds of images that pi sends.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An image's media type.
pub(super) fn media_type(word: &str, at: &Place<'_>) -> Result<(), No> {
    if IMAGES.contains(&word) {
        Ok(())
    } else {
        Err(at.refuse("value"))
    }
}

/// Base64 text of an image.
pub(super) fn image_data(asked: &mut Asked, data: &str, at: &Place<'_>) -> Result<(), No> {
    if data.is_empty() || !data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)) {
        return Err(at.refuse("value"));
    }
    asked.images += 1;
    asked.image_bytes += data.len() as u64;
    Ok(())
}
