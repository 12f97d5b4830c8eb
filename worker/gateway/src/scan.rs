//! Withholds the provider's key from what comes back, also when it comes back in disguise or in pieces.
//!
//! Looked for: the key itself, base64 (each of the three alignments, both alphabets), hex in both cases, reversed, URL-encoded, JSON-escaped.
//! A match may begin in one chunk and end in another: a tail that could be the beginning of one is held back until the next bytes decide.
//! Keys under [`SHORTEST`] bytes are not looked for: `none` or `ollama` are words, not secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use secrecy::{ExposeSecret, SecretString};

/// The shortest key that is looked for.
const SHORTEST: usize = 8;

/// Looks through one answer.
pub(crate) struct Scanner {
    forms: Vec<Vec<u8>>,
    /// Held back: it is how one of the forms begins.
    held: Vec<u8>,
}

/// The key came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySeen;

impl Scanner {
    pub(crate) fn new(key: Option<&SecretString>) -> Self {
        let key = key
            .map(|key| key.expose_secret().as_bytes())
            .filter(|key| key.len() >= SHORTEST);
        Self {
            forms: key.map(forms).unwrap_or_default(),
            held: Vec::new(),
        }
    }

    /// Takes the next bytes and gives those that may be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, KeySeen> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        if self.forms.iter().any(|form| contains(&text, form)) {
            return Err(KeySeen);
        }
        let hold = self
            .forms
            .iter()
            .map(|form| begins_at_end(&text, form))
            .max()
            .unwrap_or(0);
        self.held = text.split_off(text.len() - hold);
        Ok(text)
    }

    /// Nothing more comes: what was held back was harmless.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.held
    }
}

fn forms(key: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![key.to_vec(), key.iter().rev().copied().collect()];
    let lower = hex::encode(key).into_bytes();
    forms.push(lower.to_ascii_uppercase());
    forms.push(lower);
    let percent = |keep: fn(u8) -> bool, upper: bool| -> Vec<u8> {
        let encode = |byte: &u8| match (*byte, upper) {
            (byte, _) if keep(byte) => vec![byte],
            (byte, true) => format!("%{byte:02X}").into_bytes(),
            (byte, false) => format!("%{byte:02x}").into_bytes(),
        };
        key.iter().flat_map(encode).collect()
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    for upper in [true, false] {
        forms.push(percent(unreserved, upper));
        forms.push(percent(|byte| byte.is_ascii_alphanumeric(), upper));
        forms.push(percent(|_| false, upper));
    }
    forms.push(
        key.iter()
            .flat_map(|byte| format!("\\u{byte:04x}").into_bytes())
            .collect(),
    );
    forms.push(
        key.iter()
            .flat_map(|byte| if *byte == b'/' { b"\\/".to_vec() } else { vec![*byte] })
            .collect(),
    );
    // In a longer base64 text the key starts at one of three places; the characters that its neighbours share are left out.
    for before in 0..3 {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(key.iter().copied()).collect();
        let text = STANDARD_NO_PAD.encode(&padded);
        let first = (before * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        let standard = text.as_bytes()[first..last].to_vec();
        forms.push(
            standard
                .iter()
                .map(|byte| match byte {
                    b'+' => b'-',
                    b'/' => b'_',
                    other => *other,
                })
                .collect(),
        );
        forms.push(standard);
    }
    forms.sort();
    forms.dedup();
    forms
}

fn contains(text: &[u8], form: &[u8]) -> bool {
    let Some(first) = form.first() else { return false };
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| byte == first) {
        if text[from + at..].starts_with(form) {
            return true;
        }
        from += at + 1;
    }
    false
}

/// How many bytes at the end of `text` are how `form` begins.
fn begins_at_end(text: &[u8], form: &[u8]) -> usize {
    let most = form.len().saturating_sub(1).min(text.len());
    (1..=most)
        .rev()
        .find(|length| text.ends_with(&form[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-ant/api03+Zx9_kQ=";

    fn scan(pieces: &[&[u8]]) -> Result<Vec<u8>, KeySeen> {
        let key = SecretString::from(KEY);
        let mut scanner = Scanner::new(Some(&key));
        let mut out = Vec::new();
        for piece in pieces {
            out.extend(scanner.push(piece)?);
        }
        out.extend(scanner.finish());
        Ok(out)
    }

    fn disguises() -> Vec<String> {
        let key = KEY.as_bytes();
        let mut all = vec![
            KEY.to_owned(),
            KEY.chars().rev().collect(),
            hex::encode(key),
            hex::encode_upper(key),
            "sk-ant%2Fapi03%2BZx9_kQ%3D".to_owned(),
            "sk-ant%2fapi03%2bZx9_kQ%3d".to_owned(),
            "sk-ant\\/api03+Zx9_kQ=".to_owned(),
        ];
        for around in ["", "a", "ab"] {
            let text = format!("{around}{KEY}tail");
            all.push(STANDARD.encode(&text));
            all.push(URL_SAFE.encode(&text));
        }
        all
    }

    #[test]
    fn the_key_is_found_in_every_disguise_and_at_every_cut() {
        for disguise in disguises() {
            let text = format!("data: {{\"content\":\"{disguise}\"}}\n\n");
            assert_eq!(scan(&[text.as_bytes()]), Err(KeySeen), "{disguise}");
            for cut in 0..=text.len() {
                let (first, second) = text.as_bytes().split_at(cut);
                assert_eq!(scan(&[first, second]), Err(KeySeen), "{disguise} cut at {cut}");
            }
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(scan(&single), Err(KeySeen), "{disguise} byte by byte");
        }
    }

    #[test]
    fn only_what_could_be_the_beginning_of_the_key_is_held_back() {
        let key = SecretString::from(KEY);
        let mut scanner = Scanner::new(Some(&key));
        assert_eq!(scanner.push(b"hello\n\n").unwrap(), b"hello\n\n");
        assert_eq!(scanner.push(b"ask-").unwrap(), b"a");
        assert_eq!(scanner.push(b"x").unwrap(), b"sk-x");
    }

    #[test]
    fn a_short_word_is_no_secret() {
        let key = SecretString::from("ollama");
        assert_eq!(Scanner::new(Some(&key)).push(b"ollama").unwrap(), b"ollama");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_holds_no_key_comes_through_unchanged(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let borrowed: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(scan(&borrowed).unwrap(), pieces.concat());
        }
    }
}
