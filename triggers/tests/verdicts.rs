//! Which triggers of a file fire, and what the others say.

use triggers::{Candidate, ControlWord, Match, NoMatch, RepositoryGlobs, RunKind, Target, What, parse};

#[expect(
    clippy::expect_used,
    reason = "a file of these tests that does not load is their failure"
)]
fn verdict(on: &str, candidate: Candidate<'_>) -> Match {
    let text = format!(r#"{{ "triggers": [ {{ "on": {on}, "run": {{ "kind": "forgejo", "flow": "triage" }} }} ] }}"#);
    let file = parse("triggers.json", &text).file.expect("it loads");
    let verdicts = file.verdicts(&candidate);
    assert_eq!(verdicts.len(), 1);
    verdicts[0].1
}

fn says(text: &str) -> Candidate<'_> {
    Candidate {
        forge: "codeberg",
        kind: RunKind::Forgejo,
        repository: "lab/widgets",
        what: What::Comment {
            text,
            previous_text: None,
            target: Target::Issue,
        },
    }
}

const PLAIN: &str = r#"{ "type": "comment", "phrase": "@pi" }"#;

#[test]
fn a_comment_that_says_the_phrase_fires() {
    assert_eq!(verdict(PLAIN, says("@pi triage this")), Match::Fires { control: None });
    assert_eq!(
        verdict(PLAIN, says("@pi stop")),
        Match::Fires {
            control: Some(ControlWord::Stop)
        }
    );
}

#[test]
fn every_no_has_its_own_word() {
    let pull = Candidate {
        what: What::Comment {
            text: "@pi",
            previous_text: None,
            target: Target::PullRequest,
        },
        ..says("")
    };
    let on = |more: &str| format!(r#"{{ "type": "comment", "phrase": "@pi", {more} }}"#);
    for (on, candidate, reason) in [
        (r#"{ "type": "manual" }"#.to_owned(), says("@pi"), NoMatch::OtherType),
        (
            PLAIN.to_owned(),
            Candidate {
                kind: RunKind::Gitea,
                ..says("@pi")
            },
            NoMatch::OtherKind,
        ),
        (on(r#""forge": "home""#), says("@pi"), NoMatch::OtherForge),
        (
            on(r#""repositories": ["lab/gears", "other/*"]"#),
            says("@pi"),
            NoMatch::OtherRepository,
        ),
        (
            on(r#""exceptRepositories": ["LAB/w*"]"#),
            says("@pi"),
            NoMatch::RepositoryExcepted,
        ),
        (on(r#""target": "issue""#), pull, NoMatch::OtherTarget),
        (PLAIN.to_owned(), says("nothing"), NoMatch::PhraseAbsent),
        (PLAIN.to_owned(), says("`@pi`"), NoMatch::PhraseInCode),
        (PLAIN.to_owned(), says("> @pi"), NoMatch::PhraseInQuote),
        (PLAIN.to_owned(), says("https://x.example/@pi"), NoMatch::PhraseInUrl),
        (PLAIN.to_owned(), says("me@pi.example"), NoMatch::PhraseInAddress),
        (PLAIN.to_owned(), says("<!-- @pi -->"), NoMatch::PhraseInHtml),
        (PLAIN.to_owned(), says("@pilot"), NoMatch::PhraseInWord),
    ] {
        assert_eq!(verdict(&on, candidate), Match::No(reason), "{on}");
    }
}

#[test]
fn an_edit_fires_only_when_the_phrase_is_new_in_it() {
    let edit = |text, previous| Candidate {
        what: What::Comment {
            text,
            previous_text: Some(previous),
            target: Target::Issue,
        },
        ..says("")
    };
    assert_eq!(
        verdict(PLAIN, edit("@pi look again", "@pi look")),
        Match::No(NoMatch::PhraseNotNew)
    );
    assert_eq!(verdict(PLAIN, edit("@pi look", "look")), Match::Fires { control: None });
    assert_eq!(
        verdict(PLAIN, edit("@pi look", "`@pi` look")),
        Match::Fires { control: None }
    );
    assert_eq!(
        verdict(PLAIN, edit("look", "@pi look")),
        Match::No(NoMatch::PhraseAbsent)
    );
}

#[test]
fn words_and_sentences_are_all_different_and_kebab_case() {
    let mut seen = std::collections::BTreeSet::new();
    for reason in NoMatch::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        assert!(
            reason
                .word()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        );
        assert!(seen.insert(reason.word()) && seen.insert(reason.sentence()));
    }
}

#[test]
fn globs_are_on_owner_and_name_and_never_cross_the_slash() {
    let matches = |glob: &str, repository| RepositoryGlobs::new(&[glob]).expect("a glob").matches(repository);
    assert!(matches("*", "any/thing"));
    assert!(matches("lab/*", "Lab/Widgets"));
    assert!(matches("lab/{a,b}-?", "lab/b-1"));
    assert!(matches("*/widgets", "x/widgets"));
    assert!(!matches("lab/*", "labs/widgets"));
    assert!(!matches("*/widgets", "a/b/widgets"));
    assert!(!matches("lab/*", "lab/a/b"));
    let fault = RepositoryGlobs::new(&["lab/*", "lab"]).expect_err("no slash");
    assert_eq!(fault.0, 1);
}
