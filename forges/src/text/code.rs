//! Code blocks: kept, but bounded, and with a fence that their content cannot close.

use crate::texts;

/// Lines of one code block.
const LINES_MAX: usize = 400;
/// Characters of one code block.
const CHARS_MAX: usize = 20_000;
/// Characters of the word for the language.
const INFO_MAX: usize = 24;
/// Languages that some forge draws or offers to apply instead of showing them.
const DRAWN: [&str; 9] = [
    "mermaid",
    "math",
    "plantuml",
    "geojson",
    "topojson",
    "stl",
    "suggestion",
    "kroki",
    "graphviz",
];

/// A fenced block, without a line break at its end. At most `room` characters of content.
pub(super) fn block(info: &str, literal: &str, room: usize) -> String {
    let literal = literal.strip_suffix('\n').unwrap_or(literal);
    let kept: String = literal.chars().take(CHARS_MAX.min(room)).collect();
    let mut lines: Vec<&str> = kept.split('\n').take(LINES_MAX).collect();
    let cut = lines.iter().map(|line| line.len() + 1).sum::<usize>() < literal.len();
    let more = texts::CODE_CUT;
    if cut {
        lines.push(more);
    }
    let fence = "`".repeat(longest_run(&kept).max(2) + 1);
    // A line that begins with `/` is a command to a forge or a bot even inside code, when it reads the raw text. A
    // fence that is indented by one takes one space off each of its lines again, so the shown code stays the same.
    let indent = if lines.iter().any(|line| line.trim_start().starts_with('/')) {
        " "
    } else {
        ""
    };
    let mut out = format!("{indent}{fence}{}", language(info));
    for line in lines {
        out.push('\n');
        out.push_str(indent);
        out.push_str(line);
    }
    out.push('\n');
    out.push_str(indent);
    out.push_str(&fence);
    out
}

/// The first word of the info string, when it is a plain word for a language that is shown as text.
fn language(info: &str) -> String {
    let word: String = info.split_whitespace().next().unwrap_or_default().to_lowercase();
    let plain = word.len() <= INFO_MAX
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+#-_.".contains(&byte));
    if plain && !DRAWN.contains(&word.as_str()) {
        word
    } else {
        String::new()
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}
