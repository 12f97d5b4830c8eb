//! The hidden marker by which we find a comment of ours again, and the footer line.

use super::Footer;
use crate::texts;

/// What opens the marker. An HTML comment: no forge shows it, and no agent's text can hold one (HTML is escaped).
const OPEN: &str = "<!-- pi-dispatch:";
const CLOSE: &str = " -->";
/// Longest token, in characters.
const TOKEN_MAX: usize = 128;

/// The marker for a token of letters, digits and `-`; other characters are left out.
#[must_use]
pub fn marker(token: &str) -> String {
    let token: String = token
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(TOKEN_MAX)
        .collect();
    format!("{OPEN}{token}{CLOSE}")
}

/// The token of a marker that ends a text, on a line of its own. One that is quoted, or stands inside code, is not ours.
#[must_use]
pub fn find_marker(text: &str) -> Option<&str> {
    let last = text.trim_end().lines().next_back()?;
    let token = last.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    let plain =
        !token.is_empty() && token.len() <= TOKEN_MAX && token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    plain.then_some(token)
}

pub(super) fn footer(footer: &Footer<'_>) -> String {
    let mut parts = Vec::new();
    parts.extend(footer.model.map(escaped));
    parts.extend(footer.turns.map(texts::turns));
    parts.extend(footer.cost_usd.map(|cost| escaped(&format!("{cost} USD"))));
    if footer.tools_excluded.is_empty() {
        parts.push(texts::ALL_TOOLS.to_owned());
    } else {
        let names: Vec<String> = footer
            .tools_excluded
            .iter()
            .map(|name| format!("`{}`", name.replace('`', "")))
            .collect();
        parts.push(texts::without_tools(&names.join(", ")));
    }
    parts.extend(
        footer
            .run_url
            .map(|url| format!("<{}>", url.replace(['<', '>', ' ', '\n'], ""))),
    );
    parts.join(" · ")
}

/// Escapes what Markdown could read as a mark. Dots and dashes stay as they are: in the middle of a line they mean
/// nothing, and the footer is read in mails too, where nobody takes the backslashes away.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|' | '!' | '&' | '$'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

pub(super) fn assemble(body: &str, footer: &str, marker: &str) -> String {
    let parts = [body.trim_end(), footer.trim(), marker];
    let mut whole = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !whole.is_empty() {
            whole.push_str("\n\n");
        }
        whole.push_str(part);
    }
    whole
}
