//! Parse, build anew from the allowlist, write, and look once more at what was written.
//!
//! The old tree is only read. The new one holds paragraphs, headings, lists, quotes, code, rules, tables, emphasis,
//! and links whose text is their address. Everything else comes over as plain text. What was written is parsed again;
//! should anything armed be found in it, the whole text is posted as one code block instead.

use comrak::nodes::{AstNode, Node, NodeCode, NodeHeading, NodeLink, NodeList, NodeTable, NodeTaskItem, NodeValue};
use comrak::options::{Extension, Render};
use comrak::{Arena, Options, format_commonmark, parse_document};
use secrecy::SecretString;
use url::Url;

use super::edit::{Leaves, apply};
use super::secrets::Forms;
use super::{Rebuilt, TextRules, check, code, invisible};
use crate::texts;

/// Nested deeper than this comes over as flat text.
const DEPTH_MAX: usize = 16;
/// More characters than this are not even parsed.
const INPUT_MAX: usize = 400_000;
/// The longest address that becomes a link, in bytes.
const ADDRESS_MAX: usize = 2_000;
/// How often a text that is too long is shortened before it is posted as plain code.
const CUTS_MAX: usize = 12;

pub(super) fn rebuild(markdown: &str, rules: &TextRules<'_>) -> Rebuilt {
    let forms = Forms::of(rules.secrets);
    let (clean, withheld) = forms.withhold(&invisible::visible(markdown));
    let whole = clean.chars().count();
    let mut take = whole.min(INPUT_MAX);
    for _ in 0..CUTS_MAX {
        let cut = take < whole;
        let room = rules
            .max_chars
            .saturating_sub(if cut { notice(rules).chars().count() + 2 } else { 0 });
        let (text, more) = once(head(&clean, take), rules, &forms);
        let length = text.chars().count();
        if length <= room {
            return Rebuilt {
                text: with_notice(text, cut, rules),
                cut,
                withheld: withheld + more,
            };
        }
        // Escaping makes a text longer: aim a little lower each time.
        take = (take * room / length).min(take.saturating_sub(1)) * 15 / 16;
    }
    let room = rules.max_chars.saturating_sub(notice(rules).chars().count() + 16);
    let text = code::block("", head(&clean, room * 3 / 4), room);
    Rebuilt {
        text: with_notice(text, true, rules),
        cut: true,
        withheld,
    }
}

/// The first characters of a text; at the end of a line when one is near.
fn head(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    if end == text.len() {
        return text;
    }
    let head = &text[..end];
    match head.rfind('\n') {
        Some(line) if line * 5 > end * 4 => &head[..line],
        _ => head,
    }
}

fn notice(rules: &TextRules<'_>) -> String {
    texts::cut(rules.more_url.and_then(address).as_ref().map(Url::as_str))
}

fn with_notice(text: String, cut: bool, rules: &TextRules<'_>) -> String {
    if !cut {
        return text;
    }
    let notice = notice(rules);
    if text.is_empty() {
        notice
    } else {
        format!("{text}\n\n{notice}")
    }
}

/// One passage through the trees. Gives the text and how many more secrets were withheld.
fn once(markdown: &str, rules: &TextRules<'_>, forms: &Forms) -> (String, usize) {
    let old_arena = Arena::new();
    let old = parse_document(&old_arena, markdown, &reading());
    let arena = Arena::new();
    let builder = Builder { arena: &arena, forms };
    let new = builder.make(NodeValue::Document);
    for child in old.children() {
        builder.block(child, new, 0);
    }
    let withheld = apply(&arena, new, &Leaves::of(new), rules, forms);
    let mut written = String::new();
    // Writing into a string does not fail; should it, what is there is still checked below.
    let _ = format_commonmark(new, &writing(), &mut written);
    let (written, late) = forms.withhold(written.trim_end().trim_start_matches('\n'));
    if check::is_harmless(&written, rules) {
        return (written, withheld + late);
    }
    (code::block("", markdown, usize::MAX), withheld + late)
}

/// How an agent's text is read: what agents write, and nothing that only some forges know.
fn reading() -> Options<'static> {
    let extension = Extension {
        strikethrough: true,
        table: true,
        autolink: true,
        tasklist: true,
        ..Extension::default()
    };
    Options {
        extension,
        ..Options::default()
    }
}

fn writing() -> Options<'static> {
    let extension = Extension {
        strikethrough: true,
        table: true,
        tasklist: true,
        ..Extension::default()
    };
    Options {
        extension,
        render: Render {
            prefer_fenced: true,
            ..Render::default()
        },
        ..Options::default()
    }
}

struct Builder<'a, 'f> {
    arena: &'a Arena<'a>,
    forms: &'f Forms,
}

impl<'a> Builder<'a, '_> {
    fn make(&self, value: NodeValue) -> Node<'a> {
        self.arena.alloc(AstNode::from(value))
    }

    fn add(&self, parent: Node<'a>, value: NodeValue) -> Node<'a> {
        let node = self.make(value);
        parent.append(node);
        node
    }

    fn text(&self, parent: Node<'a>, text: &str) {
        let text = invisible::visible(text).replace('\n', " ");
        if text.is_empty() {
            return;
        }
        // Neighbours are one text, so that nothing can stand on the border between them.
        if let Some(last) = parent.last_child()
            && let NodeValue::Text(known) = &mut last.data_mut().value
        {
            known.to_mut().push_str(&text);
            return;
        }
        self.add(parent, NodeValue::Text(text.into()));
    }

    /// Brings a block of the old tree over.
    fn block(&self, old: Node<'_>, parent: Node<'a>, depth: usize) {
        if depth >= DEPTH_MAX {
            let paragraph = self.add(parent, NodeValue::Paragraph);
            self.text(paragraph, &plain(old));
            return;
        }
        let value = old.data().value.clone();
        match value {
            NodeValue::Paragraph => self.inlines_in(old, parent, NodeValue::Paragraph),
            NodeValue::Heading(heading) => {
                let heading = NodeHeading {
                    level: heading.level,
                    setext: false,
                    closed: false,
                };
                self.inlines_in(old, parent, NodeValue::Heading(heading));
            }
            // At the very start a rule would open what some forges take for front matter, and hide.
            NodeValue::ThematicBreak => {
                if depth > 0 || parent.first_child().is_some() {
                    self.add(parent, NodeValue::ThematicBreak);
                }
            }
            NodeValue::CodeBlock(block) => {
                let (literal, _) = self.forms.withhold(&invisible::visible(&block.literal));
                let paragraph = self.add(parent, NodeValue::Paragraph);
                self.add(
                    paragraph,
                    NodeValue::Raw(code::block(&block.info, &literal, usize::MAX)),
                );
            }
            NodeValue::HtmlBlock(block) => {
                let paragraph = self.add(parent, NodeValue::Paragraph);
                self.lines(paragraph, &block.literal);
            }
            NodeValue::BlockQuote => self.blocks_in(old, parent, NodeValue::BlockQuote, depth),
            NodeValue::List(list) => self.list(old, list, parent, depth),
            NodeValue::Table(table) => self.table(old, &table, parent),
            _ => {
                let paragraph = self.add(parent, NodeValue::Paragraph);
                self.text(paragraph, &plain(old));
            }
        }
    }

    fn blocks_in(&self, old: Node<'_>, parent: Node<'a>, value: NodeValue, depth: usize) {
        let node = self.make(value);
        for child in old.children() {
            self.block(child, node, depth + 1);
        }
        if node.first_child().is_some() {
            parent.append(node);
        }
    }

    fn list(&self, old: Node<'_>, list: NodeList, parent: Node<'a>, depth: usize) {
        // Two lists in a row would be kept apart by an HTML comment; an empty paragraph does it without. (Code behind a
        // list has the same fate, which is one reason why code comes over as raw text.)
        if parent
            .last_child()
            .is_some_and(|last| matches!(last.data().value, NodeValue::List(_)))
        {
            self.add(parent, NodeValue::Paragraph);
        }
        let list = NodeList {
            start: list.start.min(999_999),
            ..list
        };
        let node = self.add(parent, NodeValue::List(list));
        for item in old.children() {
            let value = match &item.data().value {
                NodeValue::TaskItem(task) => {
                    let symbol = task.symbol.map(|_| 'x');
                    NodeValue::TaskItem(NodeTaskItem {
                        symbol,
                        symbol_sourcepos: task.symbol_sourcepos,
                    })
                }
                NodeValue::Item(item) => NodeValue::Item(*item),
                _ => NodeValue::Item(list),
            };
            let new = self.add(node, value);
            for child in item.children() {
                self.block(child, new, depth + 1);
            }
        }
        if node.first_child().is_none() {
            node.detach();
        }
    }

    fn table(&self, old: Node<'_>, table: &NodeTable, parent: Node<'a>) {
        let new = self.add(parent, NodeValue::Table(Box::new(table.clone())));
        for row in old.children() {
            let header = matches!(row.data().value, NodeValue::TableRow(true));
            let new_row = self.add(new, NodeValue::TableRow(header));
            for cell in row.children() {
                let new_cell = self.add(new_row, NodeValue::TableCell);
                for child in cell.children() {
                    self.inline(child, new_cell, 0);
                }
            }
        }
    }

    fn inlines_in(&self, old: Node<'_>, parent: Node<'a>, value: NodeValue) {
        let node = self.make(value);
        for child in old.children() {
            self.inline(child, node, 0);
        }
        if node.first_child().is_some() {
            parent.append(node);
        }
    }

    /// Text of several lines, as it stands.
    fn lines(&self, parent: Node<'a>, text: &str) {
        for (nth, line) in text.trim().lines().enumerate() {
            if nth > 0 {
                self.add(parent, NodeValue::SoftBreak);
            }
            self.text(parent, line.trim());
        }
        if parent.first_child().is_none() {
            parent.detach();
        }
    }

    /// Brings an inline node over.
    fn inline(&self, old: Node<'_>, parent: Node<'a>, depth: usize) {
        if depth >= DEPTH_MAX {
            self.text(parent, &plain(old));
            return;
        }
        let value = old.data().value.clone();
        match value {
            NodeValue::Text(text) => self.text(parent, &text),
            NodeValue::SoftBreak | NodeValue::LineBreak => {
                self.add(parent, value);
            }
            NodeValue::Code(code) => self.code(parent, &code.literal),
            NodeValue::HtmlInline(html) => self.text(parent, &html),
            NodeValue::Emph | NodeValue::Strong | NodeValue::Strikethrough => {
                let node = self.make(value);
                for child in old.children() {
                    self.inline(child, node, depth + 1);
                }
                if node.first_child().is_some() {
                    parent.append(node);
                }
            }
            NodeValue::Link(link) => self.link(old, &link.url, "", parent, depth),
            NodeValue::Image(link) => self.link(old, &link.url, texts::IMAGE, parent, depth),
            _ => self.text(parent, &plain(old)),
        }
    }

    fn code(&self, parent: Node<'a>, literal: &str) {
        let literal = invisible::visible(literal).replace('\n', " ");
        if !literal.trim().is_empty() {
            self.add(
                parent,
                NodeValue::Code(NodeCode {
                    num_backticks: 1,
                    literal,
                }),
            );
        }
    }

    /// A link: its words as plain text, then its address, which alone is the link.
    fn link(&self, old: Node<'_>, target: &str, before: &str, parent: Node<'a>, depth: usize) {
        let target = invisible::visible(target);
        let words = plain(old);
        let shows_itself = before.is_empty()
            && (words == *target || target.strip_prefix("mailto:") == Some(&words) || words.trim().is_empty());
        let Some(address) = address(&target).filter(|url| self.forms.find(url.as_str()).is_empty()) else {
            self.text(parent, before);
            old.children().for_each(|child| self.inline(child, parent, depth + 1));
            // What is no address of the web is shown, not linked.
            if !shows_itself && !target.is_empty() {
                self.text(parent, " (");
                self.code(parent, &target);
                self.text(parent, ")");
            }
            return;
        };
        if !shows_itself {
            self.text(parent, before);
            old.children().for_each(|child| self.inline(child, parent, depth + 1));
            self.text(parent, " (");
        }
        let url = String::from(address);
        let link = self.add(
            parent,
            NodeValue::Link(Box::new(NodeLink {
                url: url.clone(),
                title: String::new(),
            })),
        );
        link.append(self.make(NodeValue::Text(url.into())));
        if !shows_itself {
            self.text(parent, ")");
        }
    }
}

/// An address that may be a link: http or https, nobody's name in it, and nothing that could end the `<…>`.
fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let anonymous = url.username().is_empty() && url.password().is_none();
    let fits = url.as_str().len() <= ADDRESS_MAX;
    let plain = url
        .as_str()
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"<>\\|`\"".contains(&byte));
    (web && anonymous && fits && plain).then_some(url)
}

/// The words of a node and all below it, without marks. Does not recurse.
fn plain(node: Node<'_>) -> String {
    let mut words = String::new();
    for below in node.descendants() {
        match &below.data().value {
            NodeValue::Text(text) => words.push_str(text),
            NodeValue::Code(code) => words.push_str(&code.literal),
            NodeValue::CodeBlock(block) => words.push_str(&block.literal),
            NodeValue::HtmlBlock(block) => words.push_str(&block.literal),
            NodeValue::HtmlInline(html) | NodeValue::Raw(html) => words.push_str(html),
            NodeValue::SoftBreak | NodeValue::LineBreak => words.push(' '),
            _ => {}
        }
    }
    words
}

pub(super) fn plain_line(text: &str, max_chars: usize, secrets: &[SecretString]) -> String {
    let (clean, _) = Forms::of(secrets).withhold(&invisible::visible(text));
    let mut line = super::edit::disarm_line(&clean.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.starts_with('/') {
        line = format!("`{}", line.replacen(' ', "` ", 1));
        if line.matches('`').count() % 2 == 1 {
            line.push('`');
        }
    }
    if line.chars().count() > max_chars {
        line = line.chars().take(max_chars.saturating_sub(1)).collect();
        line = format!("{}…", line.trim_end());
    }
    line
}
