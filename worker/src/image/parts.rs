//! What the image is made of, and the hash that says whether it changed.

use std::collections::HashMap;

use contract::{CONTRACT_VERSION, Capability, PI_VERSION};
use sha2::{Digest, Sha256};

use super::base;

/// How the image is put together.
pub(super) const DOCKERFILE: &str = include_str!("../../../job-image/Dockerfile");
/// The bridge.
pub(super) const BRIDGE: &str = include_str!("../../../job-image/bridge/bridge.js");
/// What comes from npm.
pub(super) const PACKAGE: &str = include_str!("../../../job-image/npm/package.json");
/// Exactly which versions, with their hashes.
pub(super) const PACKAGE_LOCK: &str = include_str!("../../../job-image/npm/package-lock.json");

/// Hash of everything in the image but the runner: what was verified stays verified while this stays the same.
#[must_use]
pub fn pins() -> String {
    hash(&[
        DOCKERFILE.as_bytes(),
        BRIDGE.as_bytes(),
        contract::GUARDRAILS.as_bytes(),
        PACKAGE.as_bytes(),
        PACKAGE_LOCK.as_bytes(),
        base::recipe().as_bytes(),
        PI_VERSION.as_bytes(),
    ])
}

/// Hash of everything in the image.
pub(super) fn recipe(runner: &[u8]) -> String {
    let labels = Capability::label().1;
    hash(&[
        pins().as_bytes(),
        runner,
        labels.as_bytes(),
        CONTRACT_VERSION.to_string().as_bytes(),
    ])
}

/// The labels of the image.
pub(super) fn labels(recipe: &str) -> HashMap<String, String> {
    let (capabilities, tokens) = Capability::label();
    HashMap::from([
        (capabilities.to_owned(), tokens),
        (contract::labels::PI_VERSION.to_owned(), PI_VERSION.to_owned()),
        (contract::labels::CONTRACT.to_owned(), CONTRACT_VERSION.to_string()),
        (contract::labels::RECIPE.to_owned(), recipe.to_owned()),
    ])
}

/// Hash of several parts; each with its length, so that nothing can move from one into the next.
pub(super) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_runner_is_another_recipe_and_the_same_pins() {
        assert_ne!(recipe(b"one"), recipe(b"two"));
        assert_eq!(recipe(b"one"), recipe(b"one"));
        assert_eq!(pins(), pins());
    }

    #[test]
    fn pi_is_pinned_to_the_version_of_the_contract() {
        let package: serde_json::Value = serde_json::from_str(PACKAGE).unwrap();
        assert_eq!(package["dependencies"]["@earendil-works/pi-coding-agent"], PI_VERSION);
        let lock: serde_json::Value = serde_json::from_str(PACKAGE_LOCK).unwrap();
        assert_eq!(
            lock["packages"]["node_modules/@earendil-works/pi-coding-agent"]["version"],
            PI_VERSION
        );
        let packages = lock["packages"].as_object().unwrap();
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].is_string(), "{name} has no hash in the lock file");
        }
    }

    #[test]
    fn what_was_verified_is_what_would_be_built_now() {
        let page = include_str!("../../../docs/job-image-verified.md");
        let line = format!("pins `{}`", pins());
        assert!(
            page.contains(&line),
            "a pin of the job image changed since it was last verified: build it, then \
             `pi-dispatch image verify --all > docs/job-image-verified.md`, and read the page"
        );
    }
}
