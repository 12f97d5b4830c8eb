//! Disarming inside the new tree: finds the armed places in its flat text and changes the leaves that hold them.

use comrak::Arena;
use comrak::nodes::{AstNode, Node, NodeCode, NodeValue};

use super::TextRules;
use super::disarm::{self, Armed, LINK};
use super::secrets::{Forms, WITHHELD};

/// The leaves of a tree and their text in one string, marks taken away.
pub(super) struct Leaves<'a> {
    flat: String,
    leaves: Vec<Leaf<'a>>,
    /// For each link, whether it leads to an issue or pull request.
    links: Vec<bool>,
}

struct Leaf<'a> {
    node: Node<'a>,
    start: usize,
    end: usize,
    /// It stands at the start of a line of the written text.
    starts_line: bool,
    is_code: bool,
}

/// What is done to a part of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Withhold,
    Remove,
    Code,
    Escape,
}

impl<'a> Leaves<'a> {
    pub(super) fn of(root: Node<'a>) -> Self {
        let mut this = Self {
            flat: String::new(),
            leaves: Vec::new(),
            links: Vec::new(),
        };
        let mut starts_line = true;
        for node in root.descendants() {
            let inside_link = node
                .parent()
                .is_some_and(|parent| matches!(parent.data().value, NodeValue::Link(_)));
            match &node.data().value {
                _ if inside_link => {}
                NodeValue::Text(text) => {
                    this.push(node, text, starts_line, false);
                    starts_line = false;
                }
                NodeValue::Code(code) => {
                    this.push(node, &code.literal, starts_line, true);
                    starts_line = false;
                }
                NodeValue::Link(link) => {
                    this.links.push(disarm::is_issue_address(&link.url));
                    this.flat.push(LINK);
                    starts_line = false;
                }
                NodeValue::Emph | NodeValue::Strong | NodeValue::Strikethrough => starts_line = false,
                NodeValue::TableCell => {
                    this.flat.push('\n');
                    starts_line = false;
                }
                _ => {
                    this.flat.push('\n');
                    starts_line = true;
                }
            }
        }
        this
    }

    fn push(&mut self, node: Node<'a>, text: &str, starts_line: bool, is_code: bool) {
        let start = self.flat.len();
        // A text that itself holds the stand-in for a link must not be counted as one.
        self.flat.push_str(&text.replace(LINK, "\u{FFFD}"));
        self.leaves.push(Leaf {
            node,
            start,
            end: self.flat.len(),
            starts_line,
            is_code,
        });
    }

    /// Whether anything armed is in it: for the look at what was written.
    pub(super) fn is_harmless(&self, rules: &TextRules<'_>) -> bool {
        let closers = disarm::closers(&self.flat, rules.own_subject, |nth| self.links.get(nth) == Some(&true));
        let in_text = |armed: &Armed| {
            let touched = |leaf: &&Leaf<'_>| leaf.start < armed.end && armed.start < leaf.end;
            self.leaves.iter().filter(touched).any(|leaf| !leaf.is_code)
        };
        let mention = |leaf: &Leaf<'_>| {
            !leaf.is_code && !disarm::mentions(&self.flat[leaf.start..leaf.end], rules.requester).is_empty()
        };
        !closers.iter().any(in_text) && !self.leaves.iter().any(mention)
    }
}

/// Changes the tree so that nothing armed and no secret is left in it. Gives the number of secrets withheld.
pub(super) fn apply<'a>(
    arena: &'a Arena<'a>,
    _root: Node<'a>,
    leaves: &Leaves<'a>,
    rules: &TextRules<'_>,
    forms: &Forms,
) -> usize {
    let secrets = forms.find(&leaves.flat);
    let closers = disarm::closers(&leaves.flat, rules.own_subject, |nth| {
        leaves.links.get(nth) == Some(&true)
    });
    for leaf in &leaves.leaves {
        let mut changes: Vec<(usize, usize, Change)> = Vec::new();
        for (start, end) in &secrets {
            // A secret that is spread over several leaves is named where it begins.
            let change = if *start >= leaf.start {
                Change::Withhold
            } else {
                Change::Remove
            };
            clip(leaf, *start, *end, change, &mut changes);
        }
        let text = &leaves.flat[leaf.start..leaf.end];
        if !leaf.is_code {
            for Armed { start, end } in &closers {
                clip(leaf, *start, *end, Change::Code, &mut changes);
            }
            for Armed { start, end } in disarm::mentions(text, rules.requester) {
                changes.push((start, end, Change::Code));
            }
            escapes(leaf, text, &mut changes);
        }
        if !changes.is_empty() {
            rewrite(arena, leaf, text, changes);
        }
    }
    secrets.len()
}

/// The part of a range that lies in a leaf, counted from the leaf's start.
fn clip(leaf: &Leaf<'_>, start: usize, end: usize, change: Change, changes: &mut Vec<(usize, usize, Change)>) {
    let (from, to) = (start.max(leaf.start), end.min(leaf.end));
    if from < to {
        changes.push((from - leaf.start, to - leaf.start, change));
    }
}

/// A slash that begins a line is a command to some forges; a dollar opens a formula, which can draw unseen things.
fn escapes(leaf: &Leaf<'_>, text: &str, changes: &mut Vec<(usize, usize, Change)>) {
    if leaf.starts_line {
        let spaces = text.len() - text.trim_start().len();
        if spaces > 0 {
            changes.push((0, spaces, Change::Remove));
        }
        if text[spaces..].starts_with('/') {
            changes.push((spaces, spaces + 1, Change::Escape));
        }
    }
    changes.extend(text.match_indices('$').map(|(at, _)| (at, at + 1, Change::Escape)));
}

/// Puts new nodes in the place of a leaf. Where two changes overlap, the one that begins first wins and takes the
/// rest of the other with it.
fn rewrite<'a>(arena: &'a Arena<'a>, leaf: &Leaf<'a>, text: &str, mut changes: Vec<(usize, usize, Change)>) {
    changes.sort_unstable();
    let add = |value: NodeValue| leaf.node.insert_before(arena.alloc(AstNode::from(value)));
    let plain = |part: &str| {
        if part.is_empty() {
        } else if leaf.is_code {
            add(code(part));
        } else {
            add(NodeValue::Text(part.to_owned().into()));
        }
    };
    let mut at = 0;
    for (start, end, change) in changes {
        if end <= at {
            continue;
        }
        let start = start.max(at);
        plain(&text[at..start]);
        let part = &text[start..end];
        match change {
            Change::Withhold => plain(WITHHELD),
            Change::Remove => {}
            Change::Code => add(code(part)),
            Change::Escape => add(NodeValue::Raw(format!("\\{part}"))),
        }
        at = end;
    }
    plain(&text[at..]);
    let mut parent = leaf.node.parent();
    leaf.node.detach();
    // Emphasis around nothing would be written as bare stars.
    while let Some(node) = parent {
        let emphasis = matches!(
            node.data().value,
            NodeValue::Emph | NodeValue::Strong | NodeValue::Strikethrough
        );
        if !emphasis || node.first_child().is_some() {
            break;
        }
        parent = node.parent();
        node.detach();
    }
}

fn code(literal: &str) -> NodeValue {
    NodeValue::Code(NodeCode {
        num_backticks: 1,
        literal: literal.to_owned(),
    })
}

/// The same for one plain line, where forges know no Markdown but code spans.
pub(super) fn disarm_line(line: &str) -> String {
    let line = line.replace('`', "'").replace(LINK, "\u{FFFD}");
    let mut armed = disarm::closers(&line, None, |_| false);
    armed.extend(disarm::mentions(&line, None));
    armed.sort_by_key(|armed| armed.start);
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    for Armed { start, end } in armed {
        if start < at {
            continue;
        }
        out.push_str(&line[at..start]);
        out.push('`');
        out.push_str(&line[start..end]);
        out.push('`');
        at = end;
    }
    out.push_str(&line[at..]);
    out
}
