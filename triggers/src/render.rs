//! Faults as a compiler prints them: the message, the place, the line with the spot underlined, the help.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::fault::{Fault, Severity};
use crate::source::{is_invisible, visible};

/// Lines are printed up to this width.
const WIDTH: usize = 120;

/// A line of the file that is longer is not printed: only the place is.
const MAX_LINE: usize = 4096;

/// Prints faults and remarks in the order given. `text` is the file that they were found in.
///
/// Nothing of the file reaches the output as a control character: such characters are printed as their code points.
pub fn render(faults: &[Fault], file_name: &str, text: &str, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
    let name = visible(file_name);
    let mut shown = String::new();
    for fault in faults {
        shown.push_str(&one(&renderer, fault, &name, text));
        shown.push_str("\n\n");
    }
    shown
}

fn one(renderer: &Renderer, fault: &Fault, name: &str, text: &str) -> String {
    let level = match fault.kind.severity() {
        Severity::Error => Level::ERROR,
        Severity::Remark => Level::WARNING.with_name("remark"),
    };
    let title = level.primary_title(visible(&fault.message)).id(fault.kind.word());
    let lines = Lines::around(text, fault);
    let snippet = Snippet::source(lines.text)
        .line_start(usize::try_from(fault.line).unwrap_or(usize::MAX))
        .path(name)
        .annotation(AnnotationKind::Primary.span(lines.start..lines.end));
    let mut group = title.element(snippet);
    if let Some(help) = &fault.help {
        group = group.element(Level::HELP.message(visible(help)));
    }
    renderer.render(&[group])
}

/// The first line that a fault speaks of, made visible, and where in it the fault stands.
struct Lines {
    text: String,
    start: usize,
    end: usize,
}

impl Lines {
    fn around(text: &str, fault: &Fault) -> Lines {
        let at = floor(text, fault.span.start);
        let begin = text[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let stop = text[at..].find('\n').map_or(text.len(), |feed| at + feed);
        let end = floor(text, fault.span.end).clamp(at, stop);
        if stop - begin > MAX_LINE {
            let piece = ceil(text, (at + WIDTH / 2).min(end)).max(at);
            return Lines {
                text: visible(&text[at..piece]),
                start: 0,
                end: visible(&text[at..piece]).len(),
            };
        }
        let before = shown(&text[begin..at]);
        let spot = shown(&text[at..end]);
        let rest = shown(text[end..stop].trim_end_matches('\r'));
        Lines {
            start: before.len(),
            end: before.len() + spot.len(),
            text: before + &spot + &rest,
        }
    }
}

/// Tabs stay: the renderer widens them.
fn shown(text: &str) -> String {
    if text.chars().any(|c| is_invisible(c) && c != '\t') {
        text.split('\t').map(visible).collect::<Vec<_>>().join("\t")
    } else {
        text.to_owned()
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}
