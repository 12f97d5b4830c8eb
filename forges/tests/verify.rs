//! Who may say something happened: the proof of a delivery, and what is kept of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use forges::{DeliveryError, ForgeKind, content_type, verify};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use sha2::Sha256;

const BODY: &[u8] = br#"{"action":"created"}"#;

fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

fn secrets(words: &[&str]) -> Vec<SecretString> {
    words.iter().map(|word| SecretString::from(*word)).collect()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    map
}

/// What Forgejo sends: its own headers, and those of all its ancestors.
fn delivery(signature: &str) -> HeaderMap {
    let mut map = headers(&[
        ("content-type", "application/json"),
        ("authorization", "Bearer x"),
        ("cookie", "a=b"),
    ]);
    for flavour in ["forgejo", "gitea", "github", "gogs"] {
        for (name, value) in [
            ("event", "issue_comment"),
            ("event-type", "pull_request_comment"),
            ("delivery", "d-1"),
        ] {
            map.insert(
                format!("x-{flavour}-{name}").parse::<HeaderName>().unwrap(),
                HeaderValue::from_static(value),
            );
        }
    }
    map.insert("x-forgejo-signature", HeaderValue::from_str(signature).unwrap());
    map.insert("x-gitea-signature", HeaderValue::from_str(signature).unwrap());
    map.insert(
        "x-hub-signature-256",
        HeaderValue::from_str(&format!("sha256={signature}")).unwrap(),
    );
    map
}

#[test]
fn a_delivery_signed_with_any_of_the_secrets_is_taken() {
    let map = delivery(&sign("new", BODY));
    for known in [&["new"][..], &["old", "new"], &["new", "old"]] {
        let verified = verify(ForgeKind::Forgejo, &map, BODY, &secrets(known)).unwrap();
        assert_eq!(verified.delivery_id, "d-1");
        assert_eq!(verified.event, "issue_comment");
        assert_eq!(verified.event_type, "pull_request_comment");
        assert_eq!(&*verified.body, BODY);
    }
    assert!(verify(ForgeKind::Gitea, &map, BODY, &secrets(&["new"])).is_ok());
}

#[test]
fn only_the_headers_of_the_allowlist_are_kept() {
    let map = delivery(&sign("s", BODY));
    let verified = verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])).unwrap();
    let names: Vec<&str> = verified.headers.iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "content-type",
            "x-forgejo-delivery",
            "x-forgejo-event",
            "x-forgejo-event-type"
        ]
    );
    let gitea = verify(ForgeKind::Gitea, &map, BODY, &secrets(&["s"])).unwrap();
    assert_eq!(gitea.headers.get("x-gitea-event"), Some("issue_comment"));
    assert_eq!(gitea.headers.get("x-forgejo-event"), None);
}

#[test]
fn the_header_that_all_flavours_send_is_taken_when_the_own_one_is_missing() {
    let mut map = delivery(&sign("s", BODY));
    map.remove("x-forgejo-signature");
    assert!(verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])).is_ok());
    map.insert("x-hub-signature-256", HeaderValue::from_str(&sign("s", BODY)).unwrap());
    let without_prefix = verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"]));
    assert_eq!(without_prefix.unwrap_err(), DeliveryError::BadSignature);
}

#[test]
fn an_unsigned_delivery_is_refused_as_unsigned() {
    let mut missing = delivery("x");
    for name in ["x-forgejo-signature", "x-hub-signature-256"] {
        missing.remove(name);
    }
    let mut empty = delivery("");
    empty.insert("x-hub-signature-256", HeaderValue::from_static("sha256="));
    // The SHA-1 header proves nothing any more.
    empty.insert("x-hub-signature", HeaderValue::from_static("sha1=00"));
    for map in [missing, empty] {
        let refused = verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])).unwrap_err();
        assert_eq!(refused, DeliveryError::Unsigned("x-forgejo-signature"));
    }
}

#[test]
fn every_changed_signature_is_refused() {
    let good = sign("s", BODY);
    let mut bad: Vec<String> = Vec::new();
    for at in 0..good.len() {
        let mut other = good.clone().into_bytes();
        other[at] = if other[at] == b'0' { b'1' } else { b'0' };
        bad.push(String::from_utf8(other).unwrap());
    }
    bad.extend([
        good[..63].to_owned(),
        good[..62].to_owned(),
        format!("{good}00"),
        format!("sha256={good}"),
        "zz".repeat(32),
    ]);
    bad.extend([
        sign("other", BODY),
        sign("", BODY),
        sign("s", b"other"),
        format!("{good},{good}"),
    ]);
    for signature in bad {
        let refused = verify(ForgeKind::Forgejo, &delivery(&signature), BODY, &secrets(&["s"]));
        assert_eq!(refused.unwrap_err(), DeliveryError::BadSignature, "{signature}");
    }
    let upper = verify(
        ForgeKind::Forgejo,
        &delivery(&good.to_uppercase()),
        BODY,
        &secrets(&["s"]),
    );
    assert!(upper.is_ok(), "hex is hex");
}

#[test]
fn every_changed_body_is_refused() {
    let map = delivery(&sign("s", BODY));
    for at in 0..BODY.len() {
        let mut other = BODY.to_vec();
        other[at] ^= 1;
        assert!(verify(ForgeKind::Forgejo, &map, &other, &secrets(&["s"])).is_err());
    }
    assert!(verify(ForgeKind::Forgejo, &map, &[BODY, b"\n"].concat(), &secrets(&["s"])).is_err());
}

#[test]
fn the_empty_secret_and_no_secret_prove_nothing() {
    let map = delivery(&sign("", BODY));
    for known in [&[""][..], &[], &["", "s"]] {
        assert_eq!(
            verify(ForgeKind::Forgejo, &map, BODY, &secrets(known)).unwrap_err(),
            DeliveryError::BadSignature
        );
    }
}

#[test]
fn a_signature_sent_twice_proves_nothing() {
    let mut map = delivery(&sign("s", BODY));
    map.append("x-forgejo-signature", HeaderValue::from_str(&sign("s", BODY)).unwrap());
    assert_eq!(
        verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])).unwrap_err(),
        DeliveryError::BadSignature
    );
}

#[test]
fn the_proof_of_another_forge_counts_for_nothing_here() {
    let map = headers(&[
        ("content-type", "application/json"),
        ("x-gitlab-token", "s"),
        ("x-forgejo-event", "push"),
        ("x-forgejo-delivery", "d"),
    ]);
    assert!(matches!(
        verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])),
        Err(DeliveryError::Unsigned(_))
    ));
}

#[test]
fn a_delivery_without_usable_id_or_event_is_refused_by_name() {
    for name in ["x-forgejo-delivery", "x-forgejo-event"] {
        for value in [None, Some(""), Some("two words"), Some("caf\u{e9}")] {
            let mut map = delivery(&sign("s", BODY));
            map.remove(name);
            if let Some(value) = value {
                map.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(
                verify(ForgeKind::Forgejo, &map, BODY, &secrets(&["s"])).unwrap_err(),
                DeliveryError::BadHeader(name)
            );
        }
    }
    let mut long = delivery(&sign("s", BODY));
    long.insert("x-forgejo-delivery", HeaderValue::from_str(&"x".repeat(129)).unwrap());
    assert!(verify(ForgeKind::Forgejo, &long, BODY, &secrets(&["s"])).is_err());
}

#[test]
fn only_json_is_taken() {
    for (value, fine) in [
        (Some("application/json"), true),
        (Some("Application/JSON; charset=utf-8"), true),
        (Some("application/x-www-form-urlencoded"), false),
        (Some("text/json"), false),
        (Some("application/jsonp"), false),
        (None, false),
    ] {
        let mut map = HeaderMap::new();
        if let Some(value) = value {
            map.insert("content-type", HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(content_type(&map).is_ok(), fine, "{value:?}");
    }
}

#[test]
fn a_secret_in_the_body_is_proven_but_not_kept() {
    let body = br#"{"secret":"s","action":"opened"}"#;
    let map = delivery(&sign("s", body));
    let verified = verify(ForgeKind::Forgejo, &map, body, &secrets(&["s"])).unwrap();
    assert_eq!(&*verified.body, br#"{"secret":"","action":"opened"}"#);
}
