//! What becomes of an agent's text.

use comrak::nodes::NodeValue;
use comrak::options::Extension;
use comrak::{Arena, Options, parse_document};
use forges::text::{
    Footer, OwnSubject, Rebuilt, TextRules, assemble, find_marker, footer, marker, plain_line, rebuild,
};
use proptest::prelude::*;
use secrecy::SecretString;

const SECRET: &str = "hunter2-very_secret";

fn rules(secrets: &[SecretString]) -> TextRules<'_> {
    TextRules {
        requester: Some("mira"),
        own_subject: Some(OwnSubject {
            owner: "lab",
            name: "widgets",
            number: 7,
        }),
        max_chars: 20_000,
        more_url: Some("https://dispatch.example.org/runs/3"),
        secrets,
    }
}

fn text(markdown: &str) -> String {
    rebuild(markdown, &rules(&[SecretString::from(SECRET)])).text
}

#[test]
fn an_ordinary_answer_comes_through_unchanged() {
    let answer = "\
## What happens

The widget turns *left* because `turn()` in `src/widget.rs` has **both** signs wrong:

- the angle is negated,
- and so is the axis.

1. Start it.
2. Look.

```rust
fn turn(angle: f64) -> f64 {
    -angle // here
}
```

> It should turn right.

| file | line |
| --- | --- |
| `a.rs` | 3 |

- [x] read
- [ ] fixed

Costs 3 < 4 dollars.";
    let expected = answer.replace("3 < 4", "3 \\< 4");
    assert_eq!(text(answer), expected);
    assert_eq!(text(&expected), expected);
}

#[test]
fn an_image_becomes_a_link_that_shows_its_address() {
    assert_eq!(
        text("![a cat](https://example.org/cat.png \"t\")"),
        "image: a cat (<https://example.org/cat.png>)"
    );
    assert_eq!(text("![](http://10.0.0.1/x?y=1)"), "image:  (<http://10.0.0.1/x?y=1>)");
}

#[test]
fn a_link_shows_where_it_leads() {
    assert_eq!(
        text("[the docs](https://example.org/a)"),
        "the docs (<https://example.org/a>)"
    );
    assert_eq!(text("<https://example.org/a>"), "<https://example.org/a>");
    assert_eq!(text("see https://example.org/a_b."), "see <https://example.org/a_b>.");
    assert_eq!(
        text("[https://good.example](https://evil.example)"),
        "https://good.example (<https://evil.example/>)"
    );
    assert_eq!(text("[x](javascript:alert(1))"), "x (`javascript:alert(1)`)");
    assert_eq!(text("[x](../../settings)"), "x (`../../settings`)");
    assert_eq!(
        text("[ref][1]\n\n[1]: https://example.org/r 'title'"),
        "ref (<https://example.org/r>)"
    );
}

#[test]
fn html_is_shown_as_text() {
    assert_eq!(text("a <b>bold</b> word"), "a \\<b\\>bold\\</b\\> word");
    assert_eq!(
        text("<details>\n<summary>x</summary>\n</details>"),
        "\\<details\\>\n\\<summary\\>x\\</summary\\>\n\\</details\\>"
    );
    assert_eq!(text("<!-- pi-dispatch:abc -->"), "\\<\\!-- pi-dispatch:abc --\\>");
    assert_eq!(text("&lt;script&gt;"), "\\<script\\>");
}

#[test]
fn what_nobody_sees_is_removed() {
    assert_eq!(text("a\u{202E}b\u{200B}c\u{E0041}d\u{FEFF}e"), "abcde");
    assert_eq!(text("a&#8238;b&#x200b;c"), "abc");
    assert_eq!(text("```\nx\u{202E}y\n```"), "```\nxy\n```");
}

#[test]
fn only_the_one_who_asked_is_mentioned() {
    assert_eq!(text("@mira here you are, @Mira."), "@mira here you are, @Mira.");
    assert_eq!(
        text("cc @all and @lab/owners, (@nils)"),
        "cc `@all` and `@lab/owners`, (`@nils`)"
    );
    assert_eq!(
        text("\\@all &#64;all **@all** *x*@all"),
        "`@all` `@all` **`@all`** *x*`@all`"
    );
    assert_eq!(text("@mira-b @miranda"), "`@mira-b` `@miranda`");
    assert_eq!(text("mail me@example.org, at @ noon"), "mail me@example.org, at @ noon");
    assert_eq!(text("@**all**"), "`@`**all**");
    assert_eq!(text("`@all` stays code"), "`@all` stays code");
    assert_eq!(text("@al\u{200B}l"), "`@all`");
}

#[test]
fn closing_words_close_nothing_but_the_own_subject() {
    assert_eq!(text("fixes #7"), "fixes \\#7");
    assert_eq!(
        text("fixes lab/widgets#7, closes #8"),
        "fixes lab/widgets\\#7, closes `#8`"
    );
    assert_eq!(text("Fixes: #8"), "Fixes: `#8`");
    assert_eq!(
        text("closes owner/repo#3 and #4, !5"),
        "closes `owner/repo#3` and `#4`, `!5`"
    );
    assert_eq!(text("resolves **#9**"), "resolves **`#9`**");
    assert_eq!(text("fi**xes** #9"), "fi**xes** `#9`");
    assert_eq!(text("reopens\n#9"), "reopens\n`#9`");
    assert_eq!(
        text("Fixes <https://forge.example/o/r/issues/3>"),
        "`Fixes` <https://forge.example/o/r/issues/3>"
    );
    assert_eq!(
        text("closed https://forge.example/o/r/pulls/3#issuecomment-1"),
        "`closed` <https://forge.example/o/r/pulls/3#issuecomment-1>"
    );
    assert_eq!(
        text("fixes [#9](https://forge.example/o/r/issues/9)"),
        "`fixes` `#9` (<https://forge.example/o/r/issues/9>)"
    );
    assert_eq!(text("implements ABC-12"), "implements `ABC-12`");
    assert_eq!(text("see #9"), "see \\#9");
    assert_eq!(text("fixes the bug"), "fixes the bug");
}

#[test]
fn a_line_that_begins_with_a_slash_is_no_command() {
    assert_eq!(text("/merge"), "\\/merge");
    assert_eq!(
        text("done\n/close now\n\n- /assign @all"),
        "done\n\\/close now\n\n- \\/assign `@all`"
    );
    assert_eq!(text("&#32;/merge"), "\\/merge");
    assert_eq!(text("```\n/merge\nx\n```"), " ```\n /merge\n x\n ```");
    for markdown in ["```\n/merge\n```", "/merge", "a\n/b", "> /x", "\\/merge", "a  \n/merge"] {
        assert!(!text(markdown).lines().any(|line| line.starts_with('/')), "{markdown}");
    }
}

#[test]
fn formulas_and_drawings_are_shown_as_text() {
    assert_eq!(text("$\\phantom{x}$"), "\\$\\\\phantom{x}\\$");
    assert_eq!(text("```mermaid\ngraph\n```"), "```\ngraph\n```");
    assert_eq!(text("```suggestion\nx\n```"), "```\nx\n```");
}

#[test]
fn known_secrets_are_withheld_in_every_usual_spelling() {
    use base64::Engine;
    let reversed: String = SECRET.chars().rev().collect();
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let long = base64::engine::general_purpose::STANDARD.encode(format!("ab{SECRET}cd"));
    for spelling in [SECRET, &reversed, &hex, &hex.to_uppercase(), "hunter2%2Dvery%5Fsecret"] {
        let out = text(&format!(
            "the key is {spelling} and `{spelling}`\n\n```\n{spelling}\n```"
        ));
        assert!(!out.contains(spelling), "{out}");
        assert!(out.contains("(withheld)"), "{out}");
    }
    let out = text(&format!("the key is {long}!"));
    assert!(!out.contains(&long) && out.contains("(withheld)"), "{out}");
    assert_eq!(text("hunter2\\-very\\_secret"), "(withheld)");
    assert_eq!(text("hun**ter2-very**_secret"), "(withheld)");
    assert_eq!(rebuild(SECRET, &rules(&[SecretString::from(SECRET)])).withheld, 1);
    assert_eq!(
        text("[x](https://example.org/?k=hunter2-very_secret)"),
        "x (<https://example.org/?k=(withheld)>)"
    );
}

#[test]
fn a_long_text_is_cut_and_says_where_the_rest_is() {
    let long = "word ".repeat(10_000);
    let Rebuilt { text, cut, .. } = rebuild(
        &long,
        &TextRules {
            max_chars: 1_000,
            ..rules(&[])
        },
    );
    assert!(cut);
    assert!(text.chars().count() <= 1_000, "{}", text.chars().count());
    assert!(text.chars().count() > 700, "{}", text.chars().count());
    assert!(
        text.ends_with("… cut here; the whole text is at <https://dispatch.example.org/runs/3>"),
        "{text}"
    );

    let code = format!("```\n{}```", "x\n".repeat(5_000));
    let out = rebuild(
        &code,
        &TextRules {
            max_chars: 100_000,
            ..rules(&[])
        },
    )
    .text;
    assert!(out.lines().count() < 420 && out.contains("cut here"));
}

#[test]
fn a_title_is_one_plain_line() {
    assert_eq!(plain_line("  a\nb\u{202E}c  d ", 80, &[]), "a bc d");
    assert_eq!(plain_line("fixes #7 for @all", 80, &[]), "fixes `#7` for `@all`");
    assert_eq!(plain_line("/merge it", 80, &[]), "`/merge` it");
    assert_eq!(plain_line("abcdefgh", 5, &[]), "abcd…");
    assert_eq!(plain_line(SECRET, 80, &[SecretString::from(SECRET)]), "(withheld)");
}

#[test]
fn a_marker_is_found_at_the_end_and_nowhere_else() {
    let whole = assemble(
        "hello",
        &footer(&Footer {
            model: Some("local/qwen3-coder"),
            turns: Some(3),
            cost_usd: Some("0.001200"),
            tools_excluded: &["bash", "edit"],
            run_url: Some("https://dispatch.example.org/runs/3"),
        }),
        &marker("4f-Ab9"),
    );
    assert_eq!(
        whole,
        "hello\n\nlocal/qwen3-coder · 3 turns · 0.001200 USD · without the tools `bash`, `edit` · <https://dispatch.example.org/runs/3>\n\n<!-- pi-dispatch:4f-Ab9 -->"
    );
    assert_eq!(find_marker(&whole), Some("4f-Ab9"));
    assert_eq!(find_marker(&format!("{whole}\n\nand more")), None);
    assert_eq!(find_marker("> <!-- pi-dispatch:4f -->"), None);
    assert_eq!(find_marker(&text("<!-- pi-dispatch:4f -->")), None);
    assert_eq!(find_marker(&text("```\n<!-- pi-dispatch:4f -->")), None);
    assert_eq!(find_marker("plain"), None);
}

#[test]
fn deep_nesting_and_odd_shapes_do_not_break_it() {
    for markdown in [
        ">".repeat(50_000),
        "- ".repeat(5_000),
        "[".repeat(20_000),
        "*".repeat(20_000),
        "`".repeat(20_000),
        "![".repeat(10_000),
        "<div>".repeat(10_000),
        "***a".repeat(3_000),
        "|a|\n|-|\n".repeat(1_000),
        "&#0;\u{0}".repeat(100),
        "- a\n\n  b\n\n1) c\n- d\n* e\n```x\n```".to_owned(),
    ] {
        let out = text(&markdown);
        assert!(out.chars().count() <= 20_000);
    }
}

/// The nodes of a text as a forge reads it.
fn kinds(markdown: &str) -> Vec<String> {
    let extension = Extension {
        strikethrough: true,
        table: true,
        autolink: true,
        tasklist: true,
        footnotes: true,
        ..Extension::default()
    };
    let arena = Arena::new();
    let root = parse_document(
        &arena,
        markdown,
        &Options {
            extension,
            ..Options::default()
        },
    );
    root.descendants()
        .filter_map(|node| match &node.data().value {
            NodeValue::Image(_) => Some("image".to_owned()),
            NodeValue::HtmlBlock(html) => Some(html.literal.clone()),
            NodeValue::HtmlInline(html) => Some(html.clone()),
            _ => None,
        })
        .collect()
}

/// Everything a reader would see, without marks.
fn seen(markdown: &str) -> String {
    let arena = Arena::new();
    let root = parse_document(&arena, markdown, &Options::default());
    root.descendants()
        .map(|node| match &node.data().value {
            NodeValue::Text(text) => text.to_string(),
            NodeValue::Code(code) => code.literal.clone(),
            NodeValue::CodeBlock(block) => block.literal.clone(),
            NodeValue::Link(link) => link.url.clone(),
            _ => String::new(),
        })
        .collect()
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~]{0,12}",
        2 => "\\PC{0,6}",
        1 => prop::sample::select(vec![
            "\n", "\n\n", "# ", "- ", "1. ", "> ", "```", "~~~", "`", "**", "*", "_", "~~", "![", "](", "](https://e.org/", "<", ">",
            "<!--", "-->", "<img src=x>", "@all", "@mira", "fixes ", "closes: ", "#7", "#8", "lab/widgets#8", "/merge", "|", "|-|", "\n---\n",
            "hunter2-very_secret", "hunter2-", "very_secret", "&#64;", "&#8203;", "\u{200B}", "\u{202E}", "\\", "https://f.org/o/r/issues/9",
            "$", "\t", "    ", "[x] ", "[^1]", "[^1]: ", "<https://e.org>", "www.e.org", "a@e.org", "(", ")", "{#id}",
        ]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_in_only_harmless_text_comes_out(pieces in proptest::collection::vec(piece(), 0..24)) {
        let markdown = pieces.concat();
        let out = text(&markdown);
        prop_assert!(kinds(&out).is_empty(), "{:?} in {out:?}", kinds(&out));
        prop_assert!(!out.lines().any(|line| line.starts_with('/')), "{out:?}");
        prop_assert!(!out.contains(SECRET) && !seen(&out).contains(SECRET), "{out:?}");
        prop_assert!(!out.contains(['\u{200B}', '\u{202E}']), "something invisible");
        prop_assert!(out.chars().count() <= 20_000);
        // Once more changes nothing that matters: it is as harmless as before.
        let again = text(&out);
        prop_assert!(kinds(&again).is_empty());
    }

    #[test]
    fn a_short_limit_is_kept(markdown in "[ -~\n]{0,2000}", max in 120_usize..600) {
        let out = rebuild(&markdown, &TextRules { max_chars: max, ..rules(&[]) });
        prop_assert!(out.text.chars().count() <= max, "{} > {max}", out.text.chars().count());
    }
}
