//! How things are shown: times, durations, places, states. Strangers' text goes through [`plain`].

use chrono::{DateTime, Utc};
use queue::{JobState, Reason};
use serde_json::Value;

/// A stranger's text with its hidden and control characters made visible; new lines stay. HTML is the template's business.
pub fn plain(text: &str) -> String {
    text.split('\n').map(triggers::visible).collect::<Vec<_>>().join("\n")
}

/// The moment for a `<time>` element's text.
pub fn moment(at: &DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// The same, machine-readable.
pub fn stamp(at: &DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The time between two moments, as a person says it.
pub fn took(from: &DateTime<Utc>, to: &DateTime<Utc>) -> String {
    let millis = (*to - *from).num_milliseconds().max(0);
    match millis {
        0..10_000 => format!("{:.1} s", f64::from(i32::try_from(millis).unwrap_or(0)) / 1000.0),
        10_000..120_000 => format!("{} s", millis / 1000),
        120_000..7_200_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h", millis / 3_600_000),
    }
}

/// Microseconds as a person says them.
pub fn micros(micros: i64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// The word that gives a state its glyph and colour.
pub fn state_word(state: &JobState) -> &'static str {
    match state {
        JobState::Queued { .. } => "queued",
        JobState::Held { .. } => "held",
        JobState::Running { .. } => "running",
        JobState::Finished { outcome, .. } => outcome.word(),
    }
}

/// The reason that a state has.
pub fn state_reason(state: &JobState) -> Option<Reason> {
    match state {
        JobState::Queued { waits_for, .. } => *waits_for,
        JobState::Held { reason, .. } | JobState::Finished { reason, .. } => Some(*reason),
        JobState::Running { .. } => None,
    }
}

/// What a state says in words: the reason with its meaning.
pub fn why(state: &JobState) -> String {
    state_reason(state).map_or(String::new(), |reason| format!("{reason}: {}", reason.meaning()))
}

/// `owner/name#7`.
pub fn place(repository: &str, subject: Option<i64>) -> String {
    subject.map_or_else(|| repository.to_owned(), |number| format!("{repository}#{number}"))
}

/// Text as part of a query or a path.
pub fn query(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// An address that may stand in a link: http or https, nothing else. A forge's answer is not ours to trust.
pub fn link(address: &str) -> Option<&str> {
    (address.starts_with("https://") || address.starts_with("http://")).then_some(address)
}

/// Money for people: two decimals, more only where they say something.
pub fn money(amount: contract::Micros) -> String {
    let text = amount.to_string();
    let Some((whole, fraction)) = text.split_once('.') else {
        return format!("${text}");
    };
    let fraction = fraction.trim_end_matches('0');
    format!("${whole}.{fraction:0<2}")
}

/// A line's fields as words: `tool read · path README.md`.
pub fn fields(data: &Value) -> String {
    let Some(fields) = data.as_object() else {
        return words(data);
    };
    let words: Vec<String> = fields
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "seq" | "event"))
        .map(|(name, value)| format!("{} {}", plain(name), words(value)))
        .collect();
    words.join(" · ")
}

/// A value as words; of a list of things that have names, the names.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list
            .iter()
            .map(|entry| words(entry.get("name").unwrap_or(entry)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Object(fields) => {
            let inner: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{} {}", plain(name), words(value)))
                .collect();
            format!("({})", inner.join(", "))
        }
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Flattens JSON to rows of a dotted name and text, in the file's order as far as JSON keeps it.
pub fn flatten(prefix: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = if prefix.is_empty() {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                flatten(&place, value, rows);
            }
        }
        Value::Array(list) => {
            let words: Vec<String> = list
                .iter()
                .map(|entry| entry.as_str().map_or_else(|| entry.to_string(), plain))
                .collect();
            rows.push((prefix.to_owned(), words.join(" ")));
        }
        Value::String(text) => rows.push((prefix.to_owned(), plain(text))),
        other => rows.push((prefix.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_strangers_are_shown() {
        assert_eq!(
            plain("a\u{202e}b\u{200b}\nc\u{1b}[0m"),
            "a\\u{202e}b\\u{200b}\nc\\u{1b}[0m"
        );
    }

    #[test]
    fn only_web_addresses_become_links() {
        assert_eq!(link("javascript:alert(1)"), None);
        assert_eq!(link("https://forge.example/a"), Some("https://forge.example/a"));
    }

    #[test]
    fn money_has_two_decimals_and_more_only_where_they_say_something() {
        for (micros, shown) in [
            (0, "$0.00"),
            (5_000_000, "$5.00"),
            (29_847, "$0.029847"),
            (120_000, "$0.12"),
        ] {
            assert_eq!(money(contract::Micros(micros)), shown);
        }
    }

    #[test]
    fn a_line_of_the_log_reads_as_words() {
        let line = serde_json::json!({ "seq": 3, "event": "tools_excluded", "excluded": ["bash"], "active": [], "phase": "start" });
        assert_eq!(fields(&line), "active none · excluded bash · phase start");
        let nested = serde_json::json!({ "tools": [{ "name": "read", "source": "builtin" }], "usage": { "input": 3 } });
        assert_eq!(fields(&nested), "tools read · usage (input 3)");
    }
}
