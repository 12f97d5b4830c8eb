//! Dollars as decimal text: `"5"`, `"0.25"`. Never a JSON number, which would be a binary fraction.

use contract::Micros;

/// The most that text may say: a million dollars. More is a slip of the pen.
const MAX_MICROS: i64 = 1_000_000 * 1_000_000;

/// Reads decimal text with up to six places. `None` for anything else, and for more than a million dollars.
pub(crate) fn parse(text: &str) -> Option<Micros> {
    Micros::parse_usd(text).ok().filter(|amount| amount.0 <= MAX_MICROS)
}

/// Writes it as shortly as it was meant: `5`, `0.25`.
pub(crate) fn text(micros: Micros) -> String {
    let (whole, rest) = (micros.0 / 1_000_000, micros.0 % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    let places = format!("{rest:06}");
    format!("{whole}.{}", places.trim_end_matches('0'))
}

/// serde's way in and out, for an optional field.
pub(crate) mod optional {
    use contract::Micros;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(micros: &Option<Micros>, serializer: S) -> Result<S::Ok, S::Error> {
        match micros {
            Some(micros) => serializer.serialize_str(&super::text(*micros)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Micros>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else {
            return Ok(None);
        };
        super::parse(&text)
            .map(Some)
            .ok_or_else(|| serde::de::Error::custom("not an amount of dollars"))
    }
}
