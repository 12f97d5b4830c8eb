//! The hidden marker by which we find a comment of ours again, and the footer line.

use super::Footer;

/// What opens the marker. An HTML comment: no forge shows it, and no agent's text can hold one (HTML is escaped).
const OPEN: &str = "<!-- pi-dispatch:";
const CLOSE: &str = " -->";

/// The marker for a token of letters, digits and `-`; other characters are left out.
#[must_use]
pub fn marker(token: &str) -> String {
    let token: String = token
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    format!("{OPEN}{token}{CLOSE}")
}

/// The token of the last marker in a text, when there is one.
#[must_use]
pub fn find_marker(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once(OPEN)?;
    let (token, _) = rest.split_once(CLOSE)?;
    let plain =
        !token.is_empty() && token.len() <= 128 && token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    plain.then_some(token)
}

pub(super) fn footer(_footer: &Footer<'_>) -> String {
    todo!()
}

pub(super) fn assemble(_body: &str, _footer: &str, _marker: &str) -> String {
    todo!()
}
