//! The `secret` field of old deliveries: verified as it came, stored blanked.
//!
//! Old Gitea and Forgejo put the hook's secret into the body. The proof is over the raw bytes, so they are checked
//! first; what is stored has each string value of a key `secret`, at any depth, replaced by the empty string. All
//! other bytes stay. The bytes need not be valid JSON: a string that never ends is blanked to the end.

use std::borrow::Cow;

/// The body as it may be stored.
pub(crate) fn without_secrets(body: &[u8]) -> Cow<'_, [u8]> {
    let mut kept: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = find_quote(body, at) {
        let close = string_end(body, open);
        at = close.after;
        if !is_secret(&body[open + 1..close.content]) {
            continue;
        }
        let Some(value) = value_after_colon(body, close.after) else {
            continue;
        };
        if body.get(value) != Some(&b'"') {
            // Another kind of value: what strings it holds are looked at like all others.
            continue;
        }
        let end = string_end(body, value);
        let out = kept.get_or_insert_with(|| Vec::with_capacity(body.len()));
        out.extend_from_slice(&body[copied..=value]);
        copied = end.content;
        at = end.after;
    }
    match kept {
        None => Cow::Borrowed(body),
        Some(mut out) => {
            out.extend_from_slice(&body[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Where a string literal ends.
struct End {
    /// Index just after its content.
    content: usize,
    /// Index just after its closing quote.
    after: usize,
}

fn find_quote(body: &[u8], from: usize) -> Option<usize> {
    body.get(from..)?
        .iter()
        .position(|byte| *byte == b'"')
        .map(|offset| from + offset)
}

fn string_end(body: &[u8], open: usize) -> End {
    let mut at = open + 1;
    while let Some(byte) = body.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => {
                return End {
                    content: at,
                    after: at + 1,
                };
            }
            _ => at += 1,
        }
    }
    End {
        content: body.len(),
        after: body.len(),
    }
}

/// Compares a key, escapes resolved, without regard to case: Go's JSON reader takes `Secret` for `secret`.
fn is_secret(key: &[u8]) -> bool {
    if !key.contains(&b'\\') {
        return key.eq_ignore_ascii_case(b"secret");
    }
    let mut quoted = Vec::with_capacity(key.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(key);
    quoted.push(b'"');
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key.eq_ignore_ascii_case("secret"))
}

/// The index of the value when a colon follows: then the string before it was a key.
fn value_after_colon(body: &[u8], from: usize) -> Option<usize> {
    let colon = skip_space(body, from);
    (body.get(colon) == Some(&b':')).then(|| skip_space(body, colon + 1))
}

fn skip_space(body: &[u8], from: usize) -> usize {
    let rest = body.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn stored(body: &str) -> String {
        String::from_utf8(without_secrets(body.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn the_value_of_a_secret_is_blanked_at_any_depth_and_nothing_else_changes() {
        assert_eq!(stored(r#"{"secret":"hush","a":1}"#), r#"{"secret":"","a":1}"#);
        assert_eq!(
            stored(r#"{ "hook" : [ {"secret" : "a\"b\\" , "x": "secret"} ] }"#),
            r#"{ "hook" : [ {"secret" : "" , "x": "secret"} ] }"#
        );
        assert_eq!(
            stored(r#"{"\u0073ecret":"hush","Secret":"hush"}"#),
            r#"{"\u0073ecret":"","Secret":""}"#
        );
        assert_eq!(
            stored(r#"{"secret":{"secret":"hush","n":2},"secret":7}"#),
            r#"{"secret":{"secret":"","n":2},"secret":7}"#
        );
    }

    #[test]
    fn a_comment_that_talks_of_a_secret_is_left_alone() {
        let body = r#"{"comment":{"body":"set \"secret\": \"x\" there","title":"secret"}}"#;
        assert!(matches!(without_secrets(body.as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn a_secret_that_never_ends_is_blanked_to_the_end() {
        assert_eq!(stored(r#"{"secret":"hus"#), r#"{"secret":""#);
        assert_eq!(stored(r#"{"secret":"hus\"#), r#"{"secret":""#);
        assert_eq!(stored(r#"{"secret":"#), r#"{"secret":"#);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "(secret|[\\PC\"\\\\]{0,8})".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("(secret|SECRET|[\\PC\"\\\\]{0,4})", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn blanked(value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(blanked).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| match value {
                        Value::String(_) if key.eq_ignore_ascii_case("secret") => (key, Value::from("")),
                        value => (key, blanked(value)),
                    })
                    .collect(),
            ),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn json_stays_the_same_json_but_for_the_secrets(value in json()) {
            let body = serde_json::to_vec_pretty(&value).unwrap();
            let kept: Value = serde_json::from_slice(&without_secrets(&body)).unwrap();
            prop_assert_eq!(kept, blanked(value));
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b'\\'), Just(b':'), Just(b's'), any::<u8>()], 0..64)) {
            let _ = without_secrets(&body);
        }
    }
}
