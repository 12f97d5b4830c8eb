//! `docs/reasons.md` and `docs/job-states.md` say what the types say.

#![expect(clippy::expect_used, reason = "a helper of a test fails the test")]

use std::collections::BTreeSet;

use queue::{DeliveryStatus, JobStatus, OutputStatus, Reason};

fn page(name: &str) -> String {
    let path = format!("{}/../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The arrows of the diagram below that heading.
fn arrows(page: &str, heading: &str) -> BTreeSet<(String, String)> {
    let from = page.find(&format!("## {heading}\n")).expect("the heading");
    let diagram = page[from..].split("```").nth(1).expect("a diagram");
    diagram
        .lines()
        .filter_map(|line| line.split(" : ").next()?.trim().split_once(" --> "))
        .filter(|(from, to)| *from != "[*]" && *to != "[*]")
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .collect()
}

fn pairs<T: Copy>(
    all: &[T],
    word: impl Fn(T) -> &'static str,
    may: impl Fn(T, T) -> bool,
) -> BTreeSet<(String, String)> {
    all.iter()
        .flat_map(|from| all.iter().map(move |to| (*from, *to)))
        .filter(|(from, to)| may(*from, *to))
        .map(|(from, to)| (word(from).to_owned(), word(to).to_owned()))
        .collect()
}

#[test]
fn the_diagram_of_jobs_is_the_type() {
    let drawn = arrows(&page("job-states.md"), "Jobs");
    assert_eq!(drawn, pairs(JobStatus::ALL, JobStatus::word, JobStatus::may_become));
}

#[test]
fn the_diagram_of_deliveries_is_the_type() {
    let drawn = arrows(&page("job-states.md"), "Deliveries");
    let mut typed = pairs(DeliveryStatus::ALL, DeliveryStatus::word, DeliveryStatus::may_become);
    // waiting again is drawn from `waiting` itself
    typed.retain(|(from, to)| from != to || from == "waiting");
    assert_eq!(drawn, typed);
}

#[test]
fn the_diagram_of_outputs_names_every_state() {
    let drawn = arrows(&page("job-states.md"), "Outputs");
    let named: BTreeSet<_> = drawn
        .iter()
        .flat_map(|(from, to)| [from.as_str(), to.as_str()])
        .collect();
    assert_eq!(named, OutputStatus::ALL.iter().map(|status| status.word()).collect());
}

#[test]
fn the_page_of_reasons_is_the_enum() {
    let made = queue::reasons_page();
    assert!(
        page("reasons.md") == made,
        "docs/reasons.md is out of date: cargo run -q -p queue --example reasons > docs/reasons.md"
    );
}

#[test]
fn a_reason_is_a_kebab_case_word_with_two_sentences_and_leads_back_to_itself() {
    let mut words = BTreeSet::new();
    for reason in Reason::ALL.iter().copied() {
        let word = reason.word();
        assert!(
            word.split('-')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase())),
            "{word}"
        );
        assert!(words.insert(word), "{word} stands twice");
        assert_eq!(Reason::from_word(word), Some(reason));
        assert_eq!(serde_json::to_value(reason).unwrap(), word);
        for sentence in [reason.meaning(), reason.fix()] {
            assert!(sentence.ends_with('.') && !sentence.contains('|'), "{word}: {sentence}");
        }
    }
}

#[test]
fn the_words_of_the_crates_below_are_the_same_here() {
    for no in triggers::NoMatch::ALL {
        assert_eq!(Reason::from(no).word(), no.word());
    }
    for stop in contract::StopReason::ALL.iter().copied() {
        let ends_with_the_worker = matches!(
            stop,
            contract::StopReason::Terminated | contract::StopReason::GatewayGone
        );
        if !ends_with_the_worker {
            assert_eq!(Reason::from(stop).word(), stop.word());
        }
    }
}
