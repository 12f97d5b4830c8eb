//! Money: whole micro-dollars, never floating point.

use std::fmt;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount in millionths of a US dollar. As JSON a whole number; with `#[serde(with = "contract::usd")]` decimal text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Micros(pub i64);

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MicrosError {
    /// Something else than digits with at most one point.
    #[error("an amount is decimal text in US dollars, like \"5\" or \"0.25\"")]
    NotDecimal,
    /// A millionth is the smallest amount that counts.
    #[error("an amount has at most six decimals")]
    TooFine,
    /// More than fits.
    #[error("an amount is at most 9 billion US dollars")]
    TooLarge,
}

impl Micros {
    /// Nothing.
    pub const ZERO: Micros = Micros(0);

    /// Reads decimal text in dollars: digits, perhaps a point and one to six more digits. No sign, exponent or space.
    pub fn parse_usd(text: &str) -> Result<Micros, MicrosError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, fraction),
            None => (text, "0"),
        };
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(MicrosError::NotDecimal);
        }
        if fraction.len() > 6 {
            return Err(MicrosError::TooFine);
        }
        let dollars: i64 = whole.parse().map_err(|_| MicrosError::TooLarge)?;
        if dollars > 9_000_000_000 {
            return Err(MicrosError::TooLarge);
        }
        let millionths: i64 = format!("{fraction:0<6}").parse().map_err(|_| MicrosError::NotDecimal)?;
        Ok(Micros(dollars * 1_000_000 + millionths))
    }

    /// The sum, held at the largest amount there is: a hostile number must not wrap into a small one.
    pub const fn plus(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }
}

impl Add for Micros {
    type Output = Micros;

    fn add(self, other: Micros) -> Micros {
        self.plus(other)
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Micros) {
        *self = self.plus(other);
    }
}

impl std::iter::Sum for Micros {
    fn sum<I: Iterator<Item = Micros>>(amounts: I) -> Micros {
        amounts.fold(Micros::ZERO, Micros::plus)
    }
}

impl fmt::Display for Micros {
    /// Dollars with six places: `0.004500`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let amount = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:06}", amount / 1_000_000, amount % 1_000_000)
    }
}

/// [`Micros`] as decimal text with six places, for `#[serde(with = "contract::usd")]`.
pub mod usd {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Micros;

    /// Writes `"0.004500"`.
    pub fn serialize<S: Serializer>(amount: &Micros, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(amount)
    }

    /// Reads what [`Micros::parse_usd`] reads.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
        let text = String::deserialize(deserializer)?;
        Micros::parse_usd(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_and_shown_with_six_places() {
        for (text, micros, shown) in [
            ("5", 5_000_000, "5.000000"),
            ("0.25", 250_000, "0.250000"),
            ("0.000001", 1, "0.000001"),
            ("0", 0, "0.000000"),
            ("9000000000", 9_000_000_000_000_000, "9000000000.000000"),
        ] {
            let amount = Micros::parse_usd(text).unwrap();
            assert_eq!((amount.0, amount.to_string().as_str()), (micros, shown));
        }
        assert_eq!(Micros(-1).to_string(), "-0.000001");
    }

    #[test]
    fn what_is_no_plain_amount_is_refused() {
        for text in [
            "", ".", "5.", ".5", "-1", "+1", "1e3", " 1", "1 ", "1,5", "0x1", "٣", "NaN",
        ] {
            assert_eq!(Micros::parse_usd(text), Err(MicrosError::NotDecimal), "{text:?}");
        }
        assert_eq!(Micros::parse_usd("0.0000001"), Err(MicrosError::TooFine));
        assert_eq!(Micros::parse_usd("9000000001"), Err(MicrosError::TooLarge));
        assert_eq!(Micros::parse_usd("99999999999999999999"), Err(MicrosError::TooLarge));
    }

    #[test]
    fn a_sum_never_wraps() {
        assert_eq!(Micros(i64::MAX) + Micros(1), Micros(i64::MAX));
    }
}
