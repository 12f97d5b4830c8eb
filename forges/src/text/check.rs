//! The second look: what was written is read as a forge would read it.

use comrak::nodes::NodeValue;
use comrak::options::Extension;
use comrak::{Arena, Options, parse_document};

use super::TextRules;
use super::edit::Leaves;
use super::invisible::is_invisible;

/// Whether a written text holds no HTML, no image, no link with other words than its address, nothing armed, no
/// command line and nothing invisible.
pub(super) fn is_harmless(written: &str, rules: &TextRules<'_>) -> bool {
    let lines = written.lines().all(|line| !line.starts_with('/'));
    if !lines || written.chars().any(is_invisible) {
        return false;
    }
    let arena = Arena::new();
    let root = parse_document(&arena, written, &as_forges_read());
    let nodes = root.descendants().all(|node| match &node.data().value {
        NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_) | NodeValue::Image(_) => false,
        NodeValue::Link(link) => {
            let text = node.first_child().map(|child| match &child.data().value {
                NodeValue::Text(text) => text.to_string(),
                _ => String::new(),
            });
            // `www.` and bare addresses, which every forge links by itself, lead where they say.
            text.is_some_and(|text| {
                link.url == text
                    || link
                        .url
                        .split_once(':')
                        .is_some_and(|(_, rest)| rest.trim_start_matches('/') == text)
            })
        }
        _ => true,
    });
    nodes && Leaves::of(root).is_harmless(rules)
}

fn as_forges_read() -> Options<'static> {
    let extension = Extension {
        strikethrough: true,
        table: true,
        autolink: true,
        tasklist: true,
        footnotes: true,
        description_lists: true,
        ..Extension::default()
    };
    Options {
        extension,
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: TextRules<'_> = TextRules {
        requester: Some("mira"),
        own_subject: None,
        max_chars: 1_000,
        more_url: None,
        secrets: &[],
    };

    #[test]
    fn the_second_look_refuses_everything_that_the_first_was_to_remove() {
        for text in [
            "<b>x</b>",
            "<div>\nx\n</div>",
            "a <!-- b --> c",
            "![x](https://e.org/x.png)",
            "[other words](https://e.org)",
            "[**https://e.org/**](https://e.org/)",
            "cc @all",
            "cc **@all**",
            "\\@all",
            "fixes #7",
            "closes **o/r#7**",
            "Fixes <https://e.org/o/r/issues/7>",
            "ok\n/merge",
            "a\u{202E}b",
        ] {
            assert!(!is_harmless(text, &RULES), "{text}");
        }
    }

    #[test]
    fn the_second_look_lets_harmless_text_pass() {
        for text in [
            "",
            "plain words, *some* **marked**, `@all` in code",
            "@mira: see <https://e.org/a> and www.e.org, or write to a@e.org",
            "```\n<b>@all fixes #7</b>\n```",
            "- a\n- b\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
            "see #7; fixes `#7`",
        ] {
            assert!(is_harmless(text, &RULES), "{text}");
        }
    }
}
