use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn pi(text: &str) -> Found {
    find_phrase(text, "@pi")
}

const FIRES: Found = Found::Token { control: None };

#[test]
fn the_phrase_fires_at_the_start_of_a_line_and_after_white_space() {
    for text in [
        "@pi",
        "@pi triage this",
        "hello @pi",
        "hello\n@pi",
        "hello\r\n@pi\r\n",
        "\u{a0}@pi",
        "\t@pi in a line that begins with a tab\n".trim_start(),
        "a paragraph\n    @pi in its indented continuation",
        "# @pi in a heading",
        "- @pi in a list",
        "1. one\n2. @pi",
        "- one\n\n  @pi in the second paragraph of a list item",
        "| @pi | in a table |",
        "***\n@pi",
        "head\n===\n@pi",
    ] {
        assert_eq!(pi(text), FIRES, "{text:?}");
    }
}

#[test]
fn the_phrase_ends_at_white_space_at_the_end_or_at_a_mark() {
    for mark in [" ", "\n", "\t", ",", ".", ":", ";", "!", "?", ". ", "...", "\u{2003}"] {
        assert_eq!(pi(&format!("@pi{mark}")), FIRES, "{mark:?}");
    }
    for more in [
        "x", "-bot", "_", "'s", "/x", "ñ", "@", ")", "(", "*", "\u{200b}", "\u{301}",
    ] {
        assert_ne!(pi(&format!("@pi{more}")), FIRES, "{more:?}");
    }
}

#[test]
fn letters_match_in_either_case_and_only_those_of_a_to_z() {
    assert_eq!(pi("@Pi @PI"), FIRES);
    assert_eq!(find_phrase("hey Ünder", "ünder"), Found::Absent);
    assert_eq!(find_phrase("hey ünder", "Ünder"), Found::Absent);
    assert_eq!(find_phrase("hey ÜNDER", "Ünder"), FIRES);
}

#[test]
fn a_phrase_of_several_words_is_one_token() {
    assert_eq!(find_phrase("please @pi triage this", "@pi triage"), FIRES);
    assert_eq!(find_phrase("please @pi triages", "@pi triage"), Found::InWord);
    assert_eq!(find_phrase("please @pi\ntriage", "@pi triage"), Found::Absent);
}

#[test]
fn code_does_not_fire() {
    for text in [
        "say `@pi` to start",
        "say ` @pi ` to start",
        "say ``x ` @pi `` to start",
        "a span `over\n@pi\ntwo` lines",
        "```\n@pi\n```",
        "```text\n@pi\n```\nafter",
        "~~~\n@pi\n~~~",
        "````\n```\n@pi\n````",
        "```\n@pi never closed",
        "    @pi indented",
        "\t@pi indented by a tab",
        "text\n\n    @pi",
        "- one\n\n      @pi indented in an item",
        "- ```\n  @pi\n  ```",
        "1. ~~~\n   @pi\n   ~~~",
        "-     @pi",
        "<pre>\n@pi\n</pre>",
        "<code> @pi </code>",
        "<PRE class=x> @pi </PRE>",
    ] {
        assert_eq!(pi(text), Found::InCode, "{text:?}");
    }
}

#[test]
fn what_only_looks_like_code_fires() {
    for text in [
        "a lone ` backtick, then @pi",
        "`` not closed ` @pi",
        "\\` escaped, then @pi `",
        "``` has ` in its info string\n@pi",
        "```\ncode\n```\n@pi",
        "- ```\n  code\n@pi after the item ended",
        "    code\n@pi",
        "`span` @pi `span`",
        "a `span that\n\nends at the paragraph @pi `",
        "# a `heading\n@pi is another block`",
        "<pre @pi",
    ] {
        assert_eq!(pi(text), FIRES, "{text:?}");
    }
}

#[test]
fn quotations_do_not_fire() {
    for text in [
        "> @pi",
        ">@pi",
        "   > @pi",
        "> somebody said\n> @pi",
        "> somebody said\n@pi right below is shown inside the quotation",
        "> > deep\n@pi",
        "- > @pi",
        "- > said\n@pi",
        "1. one\n   > @pi",
        "<blockquote> @pi </blockquote>",
    ] {
        assert_eq!(pi(text), Found::InQuote, "{text:?}");
    }
}

#[test]
fn an_answer_below_a_quotation_fires() {
    for text in [
        "> somebody said\n\n@pi",
        "> somebody said\n# @pi",
        "> ```\n> code\n> ```\n@pi",
        "> ```\n> never closed\n@pi",
        "> # heading\n@pi",
        ">\n@pi",
        "> said\n- @pi in a list of its own",
    ] {
        assert_eq!(pi(text), FIRES, "{text:?}");
    }
}

#[test]
fn links_and_addresses_do_not_fire() {
    for text in [
        "https://x.example/@pi",
        "see https://x.example/?a=@pi.",
        "www.x.example/@pi",
        "[a link](https://x.example/ \"title @pi here\")",
        "[a link]( @pi )",
        "<https://x.example/@pi>",
    ] {
        assert_eq!(pi(text), Found::InUrl, "{text:?}");
    }
    for text in ["mail me@pi.example", "<me@pi>", "me@pi, please", "@pi@social.example"] {
        assert_eq!(pi(text), Found::InAddress, "{text:?}");
    }
}

#[test]
fn html_that_no_reader_sees_does_not_fire() {
    for text in [
        "<!-- @pi -->",
        "text <!-- @pi --> text",
        "<!--\n\n@pi\n\n-->",
        "<!-- never closed\n\n@pi",
        "<a title=' @pi '>x</a>",
        "<style> @pi </style>",
    ] {
        assert_eq!(pi(text), Found::InHtml, "{text:?}");
    }
    for text in [
        "<!-- hidden --> @pi",
        "<!-- a\nb --> @pi",
        "a < b @pi > c",
        "text <!-- not closed @pi",
    ] {
        assert_eq!(pi(text), FIRES, "{text:?}");
    }
}

#[test]
fn a_part_of_a_longer_word_does_not_fire() {
    for text in ["@pilot", "x@pi-bot"] {
        assert_ne!(pi(text), FIRES, "{text:?}");
    }
    for text in ["@pilot", "@pi-bot", "@pi.bot", "(@pi)", "**@pi**", "\\@pi", "\"@pi\""] {
        assert_eq!(pi(text), Found::InWord, "{text:?}");
    }
}

#[test]
fn one_real_place_is_enough() {
    assert_eq!(pi("`@pi`, > @pi, x@pi.example, and then @pi"), FIRES);
    assert_eq!(pi("hello `@pi` and https://x.example/@pi"), Found::InCode);
    assert_eq!(pi("nothing here"), Found::Absent);
    assert_eq!(find_phrase("anything", ""), Found::Absent);
}

#[test]
fn a_control_word_stands_directly_behind_the_phrase() {
    use ControlWord::{Retry, Status, Stop};
    for (text, word) in [
        ("@pi stop", Stop),
        ("@pi Stop!", Stop),
        ("@pi  \t retry, please", Retry),
        ("@pi: status?", Status),
        ("hello @pi stop that", Stop),
        ("`@pi` @pi stop", Stop),
    ] {
        assert_eq!(pi(text), Found::Token { control: Some(word) }, "{text:?}");
    }
    for text in [
        "@pi please stop",
        "@pi\nstop",
        "@pi stopping",
        "@pi stop-the-world",
        "@pi `stop`",
        "@pi, @pi stop",
        "@pi status2",
    ] {
        assert_eq!(pi(text), FIRES, "{text:?}");
    }
}

/// Each of these makes a scanner that searches anew from every character take minutes.
#[test]
fn hostile_text_takes_time_in_proportion_to_its_length() {
    const SIZE: usize = 1_000_000;
    let repeated = |piece: &str| piece.repeat(SIZE / piece.len());
    let mut backtick_runs = String::new();
    for length in 1.. {
        backtick_runs.push_str(&"`".repeat(length));
        backtick_runs.push(' ');
        if backtick_runs.len() > SIZE {
            break;
        }
    }
    let texts = [
        repeated("`"),
        repeated("` "),
        repeated("``` \n"),
        backtick_runs,
        repeated("<"),
        repeated("<a "),
        repeated("<!--"),
        repeated("<!-- --"),
        repeated("<code>"),
        repeated("<pre><code>"),
        repeated("]("),
        repeated("](") + ")",
        repeated("](a \"") + ")",
        repeated("](a (") + ")",
        repeated("](<a") + ")",
        repeated("](a '](b \"](c (") + ")",
        repeated("> "),
        repeated(">"),
        repeated("- ") + "x",
        repeated("- * ") + "x",
        repeated("1. ") + "x\n" + &repeated("1. "),
        repeated("- \n"),
        repeated("\t"),
        repeated("x@pi"),
        repeated("@pi@pi x "),
        repeated("\\"),
        repeated("#"),
        repeated("_ _ _ x\n"),
        repeated("    a\n\n"),
    ];
    for text in texts {
        let head: String = text.chars().take(16).collect();
        let start = Instant::now();
        let _ = pi(&(text + " z@pi"));
        // A debug build on a busy machine needs about half a second at most; a quadratic scanner needs hours.
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{head:?} took {:?}",
            start.elapsed()
        );
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "@pi",
        " ",
        "\n",
        "\r\n",
        "\t",
        "    ",
        "`",
        "``",
        "```",
        "~~~",
        ">",
        "- ",
        "1. ",
        "#",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
        "](",
        ")",
        "\"",
        "\\",
        "<",
        ">",
        "ä",
        "\u{1f600}",
        "\u{202e}",
        "\u{0}",
        "http://",
        "@",
        ".",
        "x",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_scanner_takes_any_text(text in "\\PC*", phrase in "\\PC{0,8}") {
        let _ = find_phrase(&text, &phrase);
    }

    #[test]
    fn marks_are_in_order_do_not_overlap_and_stand_on_characters(text in markdown()) {
        let mut end = 0;
        for mark in marks(&text) {
            prop_assert!(mark.range.start >= end, "{:?} in {text:?}", mark);
            prop_assert!(mark.range.end > mark.range.start || text.get(mark.range.clone()) == Some(""));
            prop_assert!(text.get(mark.range.clone()).is_some());
            end = mark.range.end;
        }
    }

    #[test]
    fn what_fires_stands_in_the_text_as_a_token(text in markdown()) {
        if matches!(pi(&text), Found::Token { .. }) {
            let lower = text.to_ascii_lowercase();
            prop_assert!(lower.contains("@pi"));
        } else if !text.contains("@pi") {
            prop_assert_eq!(pi(&text), Found::Absent);
        }
    }

    #[test]
    fn a_fence_around_any_text_without_one_hides_it(text in "[a-z@ \n`>#-]{0,40}") {
        let fenced = format!("~~~~~\n{text} @pi\n~~~~~\n");
        prop_assert_eq!(pi(&fenced), Found::InCode);
    }
}
