//! How deliveries are read: one fixture per row of the table of events.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use forges::{Event, EventKind, ForgeKind, IgnoredReason, Reading, read};
use proptest::prelude::*;
use support::{kept, words};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/fixtures/forgejo").join(format!("{name}.json"))).unwrap()
}

fn event(name: &str) -> Event {
    match read(
        ForgeKind::Forgejo,
        &kept(ForgeKind::Forgejo, "issue_comment", "issue_comment"),
        &fixture(name),
    ) {
        Reading::Events(mut events) if events.len() == 1 => events.remove(0),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn each_kind_of_delivery_is_read_in_words_and_both_flavours_read_alike() {
    let index = std::fs::read_to_string("tests/fixtures/forgejo/index.tsv").unwrap();
    let mut readings = String::new();
    for line in index.lines().skip(1) {
        let [name, event, event_type] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let body = fixture(name);
        let forgejo = read(ForgeKind::Forgejo, &kept(ForgeKind::Forgejo, event, event_type), &body);
        let gitea = read(ForgeKind::Gitea, &kept(ForgeKind::Gitea, event, event_type), &body);
        assert_eq!(forgejo, gitea, "{name}");
        writeln!(readings, "{name}\n  {}", words(&forgejo)).unwrap();
    }
    insta::assert_snapshot!(readings);
}

#[test]
fn an_event_keeps_its_shape_as_json() {
    for name in ["comment-on-issue", "comment-edited-by-its-author"] {
        let event = event(name);
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }
    insta::assert_json_snapshot!(event("comment-edited-by-its-author"));
}

#[test]
fn the_key_says_what_happened_and_nothing_of_the_delivery() {
    let created = event("comment-on-issue");
    let edited = event("comment-edited-by-its-author");
    assert_ne!(created.key, edited.key);
    assert_eq!(created.key.0, "comment/77");
    assert_eq!(edited.previous_text(), Some("measure the tail"));
    assert!(matches!(edited.kind, EventKind::Comment { id: 77, .. }));
}

#[test]
fn a_well_signed_body_that_cannot_be_read_is_malformed_and_nothing_worse() {
    let whole = fixture("comment-on-issue");
    let headers = kept(ForgeKind::Forgejo, "issue_comment", "issue_comment");
    let half = &whole[..whole.len() / 2];
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let twice =
        String::from_utf8(whole.clone())
            .unwrap()
            .replacen("\"action\"", "\"action\": \"created\", \"action\"", 1);
    for body in [
        half,
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        deep.as_bytes(),
        b"payload=%7B%7D",
    ] {
        let reading = read(ForgeKind::Forgejo, &headers, body);
        let fine = matches!(
            reading,
            Reading::Ignored(IgnoredReason::Malformed | IgnoredReason::UnknownAction)
        );
        assert!(fine, "{reading:?}");
    }
    assert_eq!(
        read(ForgeKind::Forgejo, &headers, twice.as_bytes()),
        Reading::Ignored(IgnoredReason::Malformed)
    );
    let none = [].into_iter().collect();
    assert_eq!(
        read(ForgeKind::Forgejo, &none, &whole),
        Reading::Ignored(IgnoredReason::Malformed)
    );
}

#[test]
fn every_reason_has_a_word_of_its_own_and_a_sentence() {
    let mut words: Vec<&str> = IgnoredReason::ALL.iter().map(|reason| reason.word()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), IgnoredReason::ALL.len());
    for reason in IgnoredReason::ALL {
        assert!(
            reason
                .word()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
            "{reason}"
        );
        assert!(reason.sentence().len() > 20, "{reason}");
    }
}

proptest! {
    #[test]
    fn a_body_cut_anywhere_or_with_a_byte_changed_never_panics(at in 0_usize..1200, byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = fixture("comment-edited-by-its-author");
        let at = at % body.len();
        if cut { body.truncate(at) } else { body[at] = byte }
        let _ = read(ForgeKind::Forgejo, &kept(ForgeKind::Forgejo, "issue_comment", "issue_comment"), &body);
    }
}
