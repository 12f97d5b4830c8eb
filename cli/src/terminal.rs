//! What a terminal shows: tables, and no control character that a stranger wrote.

use std::fmt::{Arguments, Write as _};
use std::io::{ErrorKind, Write as _};

use comfy_table::{ContentArrangement, Table, presets};

/// `println!` for what a person or a program reads: when the reader goes away (`| head`), the program ends quietly.
macro_rules! out {
    ($($words:tt)*) => { $crate::terminal::print(format_args!($($words)*)) };
}

/// Prints a line; see [`out!`].
pub fn print(line: Arguments<'_>) {
    if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: standard output cannot be written: {error}");
        }
        std::process::exit(1);
    }
}

/// The text with every character that a terminal would obey made visible: control characters, and those that hide or
/// turn text around (bidirectional, zero-width, tags). New lines and tabs stay.
pub fn safe(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c == '\n' || c == '\t' || !is_hostile(c) {
            out.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        out
    })
}

/// The same on one line, cut after `width` characters.
pub fn line(text: &str, width: usize) -> String {
    let text = safe(&text.replace(['\n', '\t'], " "));
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c), 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0x00ad | 0x061c | 0xe0000..=0xe007f)
}

/// A table without lines between its rows.
pub fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(head);
    for row in rows {
        table.add_row(row.map(|cell| safe(&cell)));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert_eq!(safe("a\u{1b}[31mred\u{7}\u{9b}0m"), "a\\u{1b}[31mred\\u{7}\\u{9b}0m");
        assert_eq!(safe("\u{202e}txt.exe\u{200b}\r"), "\\u{202e}txt.exe\\u{200b}\\u{d}");
        assert_eq!(safe("zwei\nZeilen\tja, ñ 漢 👀"), "zwei\nZeilen\tja, ñ 漢 👀");
    }

    #[test]
    fn a_line_is_cut_and_stays_one_line() {
        assert_eq!(line("one\ntwo three", 8), "one two…");
    }
}
