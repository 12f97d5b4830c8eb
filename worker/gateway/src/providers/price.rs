//! Prices: what a million tokens cost, in micro-dollars, and what a number of tokens costs, rounded up.

use contract::Micros;
use serde::Deserialize;

use crate::Usage;

/// Prices in USD per million tokens, as decimal text with at most six places.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostConfig {
    /// Uncached input.
    pub input: String,
    /// Output.
    pub output: String,
    /// Cache reads; the input price when absent.
    pub cache_read: Option<String>,
    /// Cache writes; the input price when absent.
    pub cache_write: Option<String>,
}

/// What a million tokens cost, in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Uncached input.
    pub input: Micros,
    /// Output.
    pub output: Micros,
    /// Cache reads.
    pub cache_read: Micros,
    /// Cache writes.
    pub cache_write: Micros,
}

/// A model's prices: the usual ones, and those of requests with more input than a threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// The usual rates.
    pub base: Rates,
    /// `(input tokens above, rates for the whole request)`, ascending.
    pub tiers: Vec<(u64, Rates)>,
}

impl Prices {
    /// What this usage costs. The rates are those of the highest tier that its whole input passes.
    pub fn cost(&self, usage: &Usage) -> Micros {
        let input = usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write);
        let rates = self.rates(input);
        sum([
            (usage.input, rates.input),
            (usage.output, rates.output),
            (usage.cache_read, rates.cache_read),
            (usage.cache_write, rates.cache_write),
        ])
    }

    /// The most that a request can cost: all of its input at the dearest input rate, all of its output written.
    pub fn worst(&self, input: u64, output: u64) -> Micros {
        let rates = self.rates(input);
        let dearest = rates.input.max(rates.cache_write).max(rates.cache_read);
        sum([(input, dearest), (output, rates.output)])
    }

    fn rates(&self, input: u64) -> &Rates {
        self.tiers
            .iter()
            .rev()
            .find(|(above, _)| input > *above)
            .map_or(&self.base, |(_, rates)| rates)
    }
}

/// The sum of `tokens × rate`, divided by a million and rounded up once. Saturates far above every cap.
fn sum<const N: usize>(parts: [(u64, Micros); N]) -> Micros {
    let total: u128 = parts
        .iter()
        .map(|(tokens, rate)| u128::from(*tokens) * u128::from(rate.0.unsigned_abs()))
        .sum();
    Micros(i64::try_from(total.div_ceil(1_000_000)).unwrap_or(i64::MAX))
}

/// A price of pi's data: USD per million tokens as a number. Finer than a micro-dollar is rounded up.
pub(super) fn usd_number(value: f64) -> Option<Micros> {
    if !value.is_finite() || !(0.0..1e9).contains(&value) {
        return None;
    }
    // Binary fractions like 0.1 must not become one micro-dollar more than they are.
    let micros = (value * 1e6 - 1e-3).ceil().max(0.0);
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1e15, checked above")]
    Some(Micros(micros as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        let rates = |input, output, cache_read, cache_write| Rates {
            input: Micros(input),
            output: Micros(output),
            cache_read: Micros(cache_read),
            cache_write: Micros(cache_write),
        };
        Prices {
            base: rates(3_000_000, 15_000_000, 300_000, 3_750_000),
            tiers: vec![(200_000, rates(6_000_000, 22_500_000, 600_000, 7_500_000))],
        }
    }

    #[test]
    fn a_part_of_a_micro_dollar_is_charged_as_a_whole_one() {
        let one_cached = Usage {
            cache_read: 1,
            ..Usage::default()
        };
        assert_eq!(prices().cost(&one_cached), Micros(1));
        let usual = Usage {
            input: 800,
            output: 50,
            cache_read: 200,
            cache_write: 0,
        };
        assert_eq!(prices().cost(&usual), Micros(2_400 + 750 + 60));
    }

    #[test]
    fn input_above_the_threshold_makes_the_whole_request_dearer() {
        let below = Usage {
            input: 200_000,
            ..Usage::default()
        };
        let above = Usage {
            input: 1,
            cache_read: 200_000,
            ..Usage::default()
        };
        assert_eq!(prices().cost(&below), Micros(600_000));
        assert_eq!(prices().cost(&above), Micros(120_006));
    }

    #[test]
    fn the_worst_case_takes_every_input_token_as_a_cache_write() {
        assert_eq!(prices().worst(1_000, 100), Micros(3_750 + 1_500));
    }

    #[test]
    fn a_price_of_pis_data_becomes_the_micro_dollars_that_it_means() {
        assert_eq!(usd_number(0.1), Some(Micros(100_000)));
        assert_eq!(usd_number(0.000_000_5), Some(Micros(1)));
        assert_eq!(usd_number(-1.0), None);
    }
}
