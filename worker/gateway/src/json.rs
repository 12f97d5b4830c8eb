//! A strict JSON reader for what an adversary wrote, and its writer.
//!
//! One pass over the bytes, so that nesting cannot make it slow. Refused: anything RFC 8259 does not know, duplicate keys at any depth (compared
//! decoded: `"a"` and `"\u0061"` are one key), lone surrogates, more than [`MAX_DEPTH`] levels or [`MAX_VALUES`] values.
//! Kept: the order of keys and the digits of numbers (`1.0`, `0.10`, `1e400`), so that writing what was read changes no meaning.
//! What is forwarded is always this writer's text, never the bytes that came in: two readers cannot understand it differently.

use std::{borrow::Cow, collections::HashSet};

/// The deepest nesting that is read.
pub(crate) const MAX_DEPTH: usize = 64;
/// The most values in one text: each costs some 40 bytes here, whatever it costs to write.
pub(crate) const MAX_VALUES: usize = 400_000;

/// A JSON value that borrows from the text where it can.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it was written.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order in which it was written, without duplicates.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Why a text was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonFault {
    #[error("not UTF-8")]
    Encoding,
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    #[error("a key stands twice in one object, at byte {0}")]
    DuplicateKey(usize),
    #[error("nested too deeply")]
    Depth,
    #[error("too many values")]
    Size,
}

/// Reads one value; nothing but white space may follow.
pub(crate) fn read(bytes: &[u8]) -> Result<Json<'_>, JsonFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonFault::Encoding)?;
    let mut reader = Reader { text, at: 0, values: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at == text.len() {
        Ok(value)
    } else {
        Err(reader.syntax())
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn syntax(&self) -> JsonFault {
        JsonFault::Syntax(self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonFault> {
        if self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word.as_bytes()))
        {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.syntax())
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(JsonFault::Size);
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.syntax()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        if depth > MAX_DEPTH {
            return Err(JsonFault::Depth);
        }
        self.take(b'{')?;
        let mut fields: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut keys: HashSet<Cow<'a, str>> = HashSet::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            let start = self.at;
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(JsonFault::DuplicateKey(start));
            }
            self.space();
            self.take(b':')?;
            fields.push((key, self.value(depth)?));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(fields));
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        if depth > MAX_DEPTH {
            return Err(JsonFault::Depth);
        }
        self.take(b'[')?;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    fn number(&mut self) -> Result<Json<'a>, JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.syntax()),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(Cow::Borrowed(&self.text[start..self.at])))
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.syntax()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonFault> {
        self.take(b'"')?;
        let mut plain = self.at;
        let mut owned: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = &self.text[plain..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    let decoded = self.escape()?;
                    owned.get_or_insert_default().push(decoded);
                    plain = self.at;
                }
                Some(0x20..) => self.at += 1,
                Some(_) | None => return Err(self.syntax()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let byte = self.peek().ok_or(self.syntax())?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex4()?;
                let code = if (0xD800..0xDC00).contains(&high) {
                    self.take(b'\\')?;
                    self.take(b'u')?;
                    let low = self.hex4()?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return Err(self.syntax());
                    }
                    0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                } else {
                    high
                };
                char::from_u32(code).ok_or(self.syntax())?
            }
            _ => return Err(self.syntax()),
        })
    }

    fn hex4(&mut self) -> Result<u32, JsonFault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or(self.syntax())?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

impl<'a> Json<'a> {
    /// The value's text, without white space.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::String(text) => write_string(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(fields) => {
                out.push(b'{');
                for (index, (key, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// A field of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Self::Object(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is not negative, however it was written.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The items of an array.
    pub(crate) fn as_array(&self) -> Option<&[Json<'a>]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Sets a field of an object; on anything else it does nothing.
    pub(crate) fn set(&mut self, key: &'static str, value: Json<'a>) {
        if let Self::Object(fields) = self {
            match fields.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => fields.push((Cow::Borrowed(key), value)),
            }
        }
    }

    /// Removes a field of an object.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Self::Object(fields) = self {
            fields.retain(|(name, _)| name != key);
        }
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x00..0x20 => b"\\u00",
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..index]);
        out.extend_from_slice(escaped);
        if escaped == b"\\u00" {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
        plain = index + 1;
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(text: &str) -> String {
        let mut out = Vec::new();
        read(text.as_bytes()).unwrap().write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth_and_however_it_is_spelled() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"[[{"x":{"a":[],"b":0,"a":{}}}]]"#,
            r#"{"":1,"":2}"#,
            r#"{"😀":1,"\ud83d\uDE00":2}"#,
        ] {
            assert!(
                matches!(read(text.as_bytes()), Err(JsonFault::DuplicateKey(_))),
                "{text}"
            );
        }
        assert!(read(br#"{"a":{"a":{"a":1}},"A":2}"#).is_ok());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "NaN",
            "'a'",
            "\"\t\"",
            "\"\u{1}\"",
            "[1] 2",
            "{a:1}",
            "// x\n1",
            "\u{feff}1",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\u{a0}1",
            "-",
        ] {
            assert!(matches!(read(text.as_bytes()), Err(JsonFault::Syntax(_))), "{text:?}");
        }
        assert_eq!(read(b"\"\xff\""), Err(JsonFault::Encoding));
    }

    #[test]
    fn nesting_and_number_of_values_are_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(read(nested(MAX_DEPTH + 1).as_bytes()), Err(JsonFault::Depth));
        assert_eq!(read("[".repeat(1_000_000).as_bytes()), Err(JsonFault::Depth));
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(read(many.as_bytes()), Err(JsonFault::Size));
    }

    #[test]
    fn numbers_keep_their_digits_and_texts_their_meaning() {
        for same in [
            "1.0",
            "0.10",
            "1e400",
            "-0",
            "12345678901234567890123",
            r#"{"b":1,"a":[true,false,null]}"#,
        ] {
            assert_eq!(round(same), same);
        }
        assert_eq!(
            round(r#" [ "\u00e9\/\ud83d\ude00\u0000" , 1 ] "#),
            "[\"é/😀\\u0000\",1]"
        );
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            (-1e15f64..1e15).prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_means_what_was_read(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let other = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            prop_assert_eq!(other(&round(&text)), other(&text));
        }

        #[test]
        fn no_bytes_make_it_panic_and_it_takes_nothing_that_another_reader_refuses(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if read(&bytes).is_ok() {
                prop_assert!(serde_json::from_slice::<&serde_json::value::RawValue>(&bytes).is_ok());
            }
        }

        #[test]
        fn texts_that_look_like_json_are_judged_like_another_reader_does(text in r#"[\[\]{}",:\\u0-9a-f.eE+\- tn]{0,40}"#) {
            let other = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            match read(text.as_bytes()) {
                Ok(_) => prop_assert!(other, "{text}"),
                // The other reader does not look at surrogates in what it skips.
                Err(JsonFault::Syntax(_)) => prop_assert!(!other || text.contains("\\u"), "{text}"),
                Err(JsonFault::DuplicateKey(_) | JsonFault::Depth) => {}
                Err(fault) => prop_assert!(false, "{fault}"),
            }
        }

        #[test]
        fn a_doubled_key_is_found_wherever_it_hides(value in any_json(), key in any::<String>(), deep in 0usize..40) {
            let key = serde_json::to_string(&key).unwrap();
            let pair = format!("{{{key}:{value},{key}:null}}");
            let text = format!("{}{pair}{}", "[".repeat(deep), "]".repeat(deep));
            prop_assert!(matches!(read(text.as_bytes()), Err(JsonFault::DuplicateKey(_))));
        }
    }
}
