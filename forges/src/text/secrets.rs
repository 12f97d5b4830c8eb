//! Known secrets are withheld: best effort, and called so.
//!
//! A secret is looked for as it is, reversed, in hex, in base64 (both alphabets, at each of the three offsets inside a
//! longer text) and URL-encoded. A model that was told to can always find a spelling that is not among these; the law
//! that protects the secret is that the job never has it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a secret.
pub(super) const WITHHELD: &str = "(withheld)";

/// Shorter secrets are not looked for: they would be found in plain words.
const SECRET_MIN: usize = 6;

/// The spellings of all known secrets, longest first.
pub(super) struct Forms {
    forms: Vec<String>,
}

impl Forms {
    pub(super) fn of(secrets: &[SecretString]) -> Self {
        let mut forms = Vec::new();
        for secret in secrets {
            let secret = secret.expose_secret().trim();
            if secret.chars().count() >= SECRET_MIN {
                spellings(secret, &mut forms);
            }
        }
        forms.retain(|form| form.len() >= SECRET_MIN);
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self { forms }
    }

    /// Where secrets stand in a text: byte ranges, in order, not overlapping.
    pub(super) fn find(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for form in &self.forms {
            for (start, hit) in text.match_indices(form.as_str()) {
                found.push((start, start + hit.len()));
            }
        }
        found.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (start, end) in found {
            match merged.last_mut() {
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        merged
    }

    /// The text with every secret replaced, and how many there were.
    pub(super) fn withhold(&self, text: &str) -> (String, usize) {
        let found = self.find(text);
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (start, end) in &found {
            out.push_str(&text[at..*start]);
            out.push_str(WITHHELD);
            at = *end;
        }
        out.push_str(&text[at..]);
        (out, found.len())
    }
}

fn spellings(secret: &str, forms: &mut Vec<String>) {
    let bytes = secret.as_bytes();
    forms.push(secret.to_owned());
    forms.push(secret.chars().rev().collect());
    forms.push(hex::encode(bytes));
    forms.push(hex::encode_upper(bytes));
    for offset in 0..3 {
        forms.push(inner_base64(&STANDARD_NO_PAD, bytes, offset));
        forms.push(inner_base64(&URL_SAFE_NO_PAD, bytes, offset));
    }
    forms.push(url_encoded(bytes, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    }));
    forms.push(url_encoded(bytes, |byte| {
        byte.is_ascii_alphanumeric() || b"-._*".contains(&byte)
    }));
    forms.push(url_encoded(bytes, |byte| byte.is_ascii_alphanumeric()));
    forms.push(url_encoded(bytes, |_| false));
    forms.push(url_encoded(bytes, |_| false).to_ascii_lowercase());
}

/// The characters of base64 that depend on the secret alone, when `offset` bytes of something stand before it.
fn inner_base64(engine: &impl Engine, secret: &[u8], offset: usize) -> String {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let whole = engine.encode(&padded);
    let from = (offset * 8).div_ceil(6);
    let to = padded.len() * 8 / 6;
    whole.get(from..to).unwrap_or_default().to_owned()
}

fn url_encoded(bytes: &[u8], plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for byte in bytes {
        if plain(*byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
