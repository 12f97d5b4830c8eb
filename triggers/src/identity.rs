//! The identity of a trigger: what its history is kept under.
//!
//! Either the file says an `id`, or it is derived from what the trigger is: type, phrase, flow, kind (where it is not
//! Forgejo), and what narrows it. It never depends on the trigger's place in the file.

use sha2::{Digest, Sha256};

use crate::language::{On, Run, RunKind};

/// An identity has at most so many characters.
pub(crate) const MAX_ID: usize = 64;

/// Derives it: `comment-pi-triage`, `comment-pi-triage-gitea`, `manual-nightly`.
pub(crate) fn derive(on: &On, run: &Run) -> String {
    let mut parts = Vec::new();
    match on {
        On::Comment(on) => {
            parts.extend(["comment".to_owned(), slug(&on.phrase), run.flow.clone()]);
            parts.extend(kind(run.kind));
            parts.extend(on.forge.clone());
            parts.extend(on.target.map(|target| slug(target.word())));
            parts.extend(on.repositories.iter().flatten().map(|glob| slug(glob)));
            if let Some(globs) = &on.except_repositories {
                parts.push("except".to_owned());
                parts.extend(globs.iter().map(|glob| slug(glob)));
            }
        }
        On::Manual => {
            parts.extend(["manual".to_owned(), run.flow.clone()]);
            parts.extend(kind(run.kind));
        }
    }
    parts.retain(|part| !part.is_empty());
    bounded(parts.join("-"))
}

fn kind(kind: RunKind) -> Option<String> {
    match kind {
        RunKind::Forgejo => None,
        RunKind::Gitea => Some(kind.word().to_owned()),
    }
}

/// The letters and digits of a text, everything else as one hyphen.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Long ones end in a hash of the whole, so that two long ones stay two.
fn bounded(id: String) -> String {
    if id.len() <= MAX_ID {
        return id;
    }
    let hash = hex::encode(Sha256::digest(id.as_bytes()));
    format!("{}-{}", &id[..MAX_ID - 9], &hash[..8])
}
