//! Characters that a reader does not see: they hide words from people, or words from checks.
//!
//! Removed: controls, bidirectional marks, zero-width characters, fillers, tag characters, and the variation selectors
//! that can carry bytes. The sixteen selectors that choose how an emoji looks stay.

use std::borrow::Cow;

/// Whether a character is removed from every text that we post. Line feed and tab are not among them.
pub(super) fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{180B}'..='\u{180F}' => true,
        '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{3164}' | '\u{FFA0}' => true,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FEFF}' | '\u{FFF0}'..='\u{FFFB}' => true,
        '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' => true,
        '\u{E0000}'..='\u{E0FFF}' => true,
        _ => false,
    }
}

/// The text without them. `\r\n` and `\r` become `\n` first, so that no line is joined.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let lines = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    Cow::Owned(lines.chars().filter(|c| !is_invisible(*c)).collect())
}
