//! Lines of a stream that may be hostile: ended by LF, a CR before it dropped, each of a bounded length.
//!
//! Bytes, not text: pi's JSON may hold U+2028 or broken UTF-8, and neither ends a line.

use std::io::{self, BufRead};

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The whole line without its end.
    Whole(Vec<u8>),
    /// It was longer than allowed and was passed over; this many bytes.
    TooLong(usize),
}

/// Reads the next line, or `None` at the end. A last line without LF counts.
pub(crate) fn next(from: &mut impl BufRead, most: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut length = 0_usize;
    loop {
        let buffer = match from.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok((length > 0).then(|| finished(line, length, most)));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = end.map_or(buffer, |at| &buffer[..at]);
        length = length.saturating_add(part.len());
        if length <= most {
            line.extend_from_slice(part);
        } else {
            line = Vec::new();
        }
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(finished(line, length, most)));
        }
    }
}

fn finished(mut line: Vec<u8>, length: usize, most: usize) -> Line {
    if length > most {
        return Line::TooLong(length);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Line::Whole(line)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(bytes: &[u8], most: usize) -> Vec<Line> {
        // A buffer of three bytes, so that every line crosses its edge.
        let mut from = BufReader::with_capacity(3, bytes);
        let mut lines = Vec::new();
        while let Some(line) = next(&mut from, most).unwrap() {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_end_at_line_feeds_and_nowhere_else() {
        assert_eq!(
            all("a\r\n\u{2028}b\u{2029}\n\nlast".as_bytes(), 99),
            [whole("a"), whole("\u{2028}b\u{2029}"), whole(""), whole("last")]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        assert_eq!(all(b"0123456789\nok\n", 5), [Line::TooLong(10), whole("ok")]);
        assert_eq!(all(b"0123456789", 5), [Line::TooLong(10)]);
        assert_eq!(all(b"12345\n", 5), [whole("12345")]);
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_they_are() {
        assert_eq!(all(b"\xff\xfe\n", 5), [Line::Whole(vec![0xff, 0xfe])]);
    }
}
