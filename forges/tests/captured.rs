//! Deliveries of a real Forgejo, and bodies that others caught: signed as they say, and all of them read.
//!
//! They lie outside the tree; where they are absent the tests say so and check nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use forges::{DeliveryError, ForgeKind, IgnoredReason, Reading, read, verify};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;
use support::{kept, words};

#[derive(Deserialize)]
struct Captured {
    secret: String,
    headers: Vec<(String, String)>,
}

fn payloads() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/payloads");
    if !folder.is_dir() {
        use std::io::Write as _;
        // Past the capture of the test's output: somebody should see it.
        let _ = writeln!(
            std::io::stderr(),
            "NOT CHECKED: the captured deliveries are not at ../shared/payloads"
        );
        return None;
    }
    Some(folder)
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

#[test]
fn every_captured_delivery_passes_with_its_own_secret_and_gets_a_reading_in_words() {
    let Some(folder) = payloads() else { return };
    let mut readings = String::new();
    for path in files(&folder.join("forgejo-captured"), ".body") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let body = std::fs::read(&path).unwrap();
        let captured: Captured =
            serde_json::from_slice(&std::fs::read(path.with_extension("headers.json")).unwrap()).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in &captured.headers {
            headers.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let own = [SecretString::from(captured.secret.as_str())];
        let other = [SecretString::from("somebody else's")];
        let line = match verify(ForgeKind::Forgejo, &headers, &body, &own) {
            Ok(verified) => {
                assert_eq!(
                    &*verified.body,
                    body.as_slice(),
                    "{name}: a real Forgejo of today sends no secret"
                );
                assert!(verified.headers.get("authorization").is_none());
                assert_eq!(
                    verify(ForgeKind::Forgejo, &headers, &body, &other).unwrap_err(),
                    DeliveryError::BadSignature,
                    "{name}"
                );
                assert!(verify(ForgeKind::Gitea, &headers, &body, &own).is_ok(), "{name}");
                words(&read(ForgeKind::Forgejo, &verified.headers, &verified.body))
            }
            Err(error) => {
                let expected = if name.starts_with("59-") {
                    "not signed"
                } else {
                    "application/json"
                };
                assert!(name.starts_with("59-") || name.starts_with("60-"), "{name}: {error}");
                assert!(error.to_string().contains(expected), "{name}: {error}");
                format!("refused: {error}")
            }
        };
        writeln!(readings, "{name}\n  {line}").unwrap();
    }
    insta::assert_snapshot!(readings);
}

#[test]
fn bodies_caught_by_others_are_read_without_a_fault() {
    let Some(folder) = payloads() else { return };
    let sets = [
        ("go-scm/scm/driver/gitea/testdata/webhooks", ForgeKind::Gitea),
        ("woodpecker/server/forge/gitea/fixtures", ForgeKind::Gitea),
        ("woodpecker/server/forge/forgejo/fixtures", ForgeKind::Forgejo),
    ];
    let mut readings = String::new();
    let mut carried = 0;
    for (set, kind) in sets {
        for path in files(&folder.join(set), ".json") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let body = std::fs::read(&path).unwrap();
            let event = event_of(&name);
            let reading = read(kind, &kept(kind, event, event), &body);
            assert_ne!(reading, Reading::Ignored(IgnoredReason::Malformed), "{set}/{name}");
            assert_eq!(secrets_in(&stored(kind, &body)), 0, "{set}/{name}");
            carried += secrets_in(&body);
            writeln!(readings, "{set}/{name}\n  {}", words(&reading)).unwrap();
        }
    }
    assert!(
        carried > 3,
        "some of the old bodies carry their secret, or this test shows nothing"
    );
    insta::assert_snapshot!(readings);
}

/// What would be stored of a body that is signed well.
fn stored(kind: ForgeKind, body: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s").unwrap();
    mac.update(body);
    let signature = hex::encode(mac.finalize().into_bytes());
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(
        "x-hub-signature-256",
        HeaderValue::from_str(&format!("sha256={signature}")).unwrap(),
    );
    for name in ["event", "delivery"] {
        headers.insert(
            format!("x-{kind}-{name}").parse::<HeaderName>().unwrap(),
            HeaderValue::from_static("x"),
        );
    }
    verify(kind, &headers, body, &[SecretString::from("s")])
        .unwrap()
        .body
        .into_owned()
}

/// How many values of a key `secret` hold something.
fn secrets_in(body: &[u8]) -> usize {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| match value {
                    Value::String(text) if key == "secret" => usize::from(!text.is_empty()),
                    value => count(value),
                })
                .sum(),
            _ => 0,
        }
    }
    count(&serde_json::from_slice(body).unwrap())
}

/// These sets have no headers: the file's name says what it is.
fn event_of(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let of = |part: &str| name.contains(part);
    match () {
        () if of("comment") => "issue_comment",
        () if of("review") && !of("request") => "pull_request_comment",
        () if of("reviewack") || of("reviewdeny") => "pull_request_approved",
        () if of("pullrequest") || of("pull_request") => "pull_request",
        () if of("issues") => "issues",
        () if of("push") => "push",
        () if of("create") || of("hooktag") => "create",
        () if of("delete") => "delete",
        () => "unknown",
    }
}
