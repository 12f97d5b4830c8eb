//! What people read on the forge, as it stands there.

use insta::assert_snapshot;

use super::*;

const EXCLUDED: [Tool; 2] = [Tool::Bash, Tool::Edit];

fn run<'a>(withhold: &'a [SecretString]) -> Run<'a> {
    Run {
        job: 17,
        public_url: Some("https://dispatch.example.org/"),
        requester: Some("mira"),
        owner: "lab",
        name: "widgets",
        subject: 1,
        model: Some("local/qwen3"),
        turns: Some(3),
        cost: Some(Micros(1200)),
        excluded: &EXCLUDED,
        withhold,
    }
}

fn before_it_began<'a>() -> Run<'a> {
    Run {
        model: None,
        turns: None,
        cost: None,
        ..run(&[])
    }
}

#[test]
fn an_answer_is_the_agents_words_and_a_footer() {
    assert_snapshot!(answer(&run(&[]), "The sign in `turn.py` is wrong.\n\n* line 7"), @r"
    The sign in `turn.py` is wrong.

    - line 7

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn an_answer_mentions_only_the_one_who_asked_and_closes_only_its_own_subject() {
    assert_snapshot!(answer(&run(&[]), "@mira and @olga: fixes #1, fixes #7"), @r"
    @mira and `@olga`: fixes \#1, fixes `#7`

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn an_answer_withholds_what_it_must_not_carry() {
    let secrets = [SecretString::from("sk-canary-0123456789abcdef")];
    let posted = answer(&run(&secrets), "the key is sk-canary-0123456789abcdef");
    assert!(!posted.contains("sk-canary"), "{posted}");
}

#[test]
fn an_answer_without_words_says_so() {
    assert_snapshot!(answer(&run(&[]), "  \n"), @r"
    The run is done. Its agent had nothing to say.

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn an_answer_cannot_swallow_its_footer() {
    for open in [
        "```\ncode without end",
        "<details><summary>more",
        "<!-- hidden",
        "> quote",
    ] {
        let posted = answer(&run(&[]), open);
        let footer = posted.lines().last().unwrap();
        assert!(footer.contains("3 turns"), "{posted}");
        assert!(!footer.starts_with([' ', '>', '\t']), "{posted}");
    }
}

#[test]
fn a_run_that_had_every_tool_says_so() {
    let every = Run {
        excluded: &[],
        public_url: None,
        ..run(&[])
    };
    assert_snapshot!(answer(&every, "Done."), @r"
    Done.

    local/qwen3 · 3 turns · 0.001200 USD · full pinned tool set
    ");
}

#[test]
fn a_refusal_names_reason_meaning_and_fix() {
    let refused = refusal(
        &before_it_began(),
        Reason::JobImageExcludeToolsUnsupported,
        "image `pi-job:1.9.0`",
    );
    assert_snapshot!(refused, @r"
    **Not started:** `job-image-exclude-tools-unsupported`. The image's label does not name the capability `excludeTools`: its runner would ignore the exclusions.

    image `pi-job:1.9.0`

    **What helps:** Rebuild the image with `pi-dispatch image build`.

    Nothing was started and nothing was spent.

    without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn a_failure_names_its_class_and_the_way_to_the_run() {
    assert_snapshot!(failure(&run(&[]), Reason::WorkerLost, ""), @r"
    **Failed:** `worker-lost`. The worker went away after money may have been spent, and did not come back in time.

    **What helps:** Run it again with one click if the answer is still wanted.

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn a_stopped_run_says_which_cap_and_what_it_had() {
    assert_snapshot!(stopped(&run(&[]), Reason::TurnsCap, "60 turns", Some("So far: *line 7*.")), @r"
    **Stopped:** `turn-cap`. The run made as many turns as it may.

    60 turns

    **What helps:** Raise `maxTurns`, or ask for less at once.

    Until then it had said:

    So far: *line 7*.

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
    assert_snapshot!(stopped(&run(&[]), Reason::PersonStopped, "", None), @r"
    **Stopped:** `stopped-by-person`. A person stopped it.

    **What helps:** Run it again if that was a mistake.

    Until then it had said nothing.

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn a_status_comment_begins_with_work_and_ends_with_the_end() {
    assert_snapshot!(working(&before_it_began()), @r"
    ⏳ I am working on it. The answer comes as a comment of its own.

    without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
    assert_snapshot!(ended(&run(&[]), Reason::Done), @r"
    **Over:** `done`. The agent came to its end.

    local/qwen3 · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/17>
    ");
}

#[test]
fn a_detail_is_one_plain_line_whatever_it_holds() {
    let posted = refusal(&before_it_began(), Reason::FlowNotFound, "a\n\n# @olga\n<b>");
    assert!(
        !posted.contains("\n# ") && !posted.contains("@olga<") && !posted.contains("<b>"),
        "{posted}"
    );
}

#[test]
fn every_reason_gives_a_whole_comment() {
    for &reason in Reason::ALL {
        for text in [
            refusal(&run(&[]), reason, ""),
            failure(&run(&[]), reason, ""),
            ended(&run(&[]), reason),
        ] {
            assert!(
                text.contains(reason.word()) && text.contains(reason.meaning()),
                "{text}"
            );
        }
    }
}
