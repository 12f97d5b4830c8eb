//! pi's model data as it stands in `models.json`.

use std::collections::{BTreeMap, HashMap};

use contract::{ApiShape, Micros};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::price::{Prices, Rates, usd_number};

/// The committed file. A test reads it whole, so it cannot be wrong when the program runs.
const TEXT: &str = include_str!("models.json");

/// Everything in the file.
#[derive(Debug, Deserialize)]
pub(super) struct Data {
    /// The version of pi that it was taken from.
    #[cfg(test)]
    pi: String,
    limits: Vec<Value>,
    pub(super) providers: BTreeMap<String, ProviderData>,
}

/// One of pi's providers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderData {
    /// Base URL per shape. Empty, or with a `{PLACEHOLDER}`, where it depends on the account.
    pub(super) addresses: HashMap<ApiShape, String>,
    pub(super) key_variables: Vec<String>,
    pub(super) models: Vec<ModelData>,
}

/// One model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelData {
    pub(super) id: String,
    name: String,
    pub(super) api: ApiShape,
    reasoning: bool,
    images: bool,
    cost: CostData,
    pub(super) context_window: u64,
    pub(super) max_tokens: u64,
    thinking_level_map: Option<Value>,
    #[serde(default)]
    compat: Map<String, Value>,
    limits: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CostData {
    #[serde(flatten)]
    base: RatesData,
    #[serde(default)]
    tiers: Vec<TierData>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TierData {
    input_tokens_above: u64,
    #[serde(flatten)]
    rates: RatesData,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RatesData {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

impl Data {
    /// Reads the committed file.
    pub(super) fn read() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the file is part of the program and read by the tests"
        )]
        serde_json::from_str(TEXT).expect("models.json is as generate.mjs wrote it")
    }

    /// The model as pi's own `models.json` format shows it, `compat` not yet narrowed.
    pub(super) fn entry(&self, model: &ModelData) -> Map<String, Value> {
        let mut entry = entry(
            &model.id,
            &model.name,
            model.reasoning,
            model.images,
            model.context_window,
            model.max_tokens,
        );
        entry.insert("cost".into(), model.cost.to_json());
        entry.insert("compat".into(), model.compat.clone().into());
        if let Some(levels) = &model.thinking_level_map {
            entry.insert("thinkingLevelMap".into(), levels.clone());
        }
        if let Some(limits) = model.limits.and_then(|index| self.limits.get(index)) {
            entry.insert("inputLimits".into(), limits.clone());
        }
        entry
    }
}

/// The fields that every model has.
pub(super) fn entry(
    id: &str,
    name: &str,
    reasoning: bool,
    images: bool,
    context_window: u64,
    max_tokens: u64,
) -> Map<String, Value> {
    let input: &[&str] = if images { &["text", "image"] } else { &["text"] };
    let fields = [
        ("id", json!(id)),
        ("name", json!(name)),
        ("reasoning", json!(reasoning)),
        ("input", json!(input)),
        ("contextWindow", json!(context_window)),
        ("maxTokens", json!(max_tokens)),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl ModelData {
    /// Its prices, unless pi knows none.
    pub(super) fn prices(&self) -> Option<Prices> {
        let base = self.cost.base.rates()?;
        if base.input == Micros(0) && base.output == Micros(0) {
            return None;
        }
        let mut tiers = Vec::new();
        for tier in &self.cost.tiers {
            tiers.push((tier.input_tokens_above, tier.rates.rates()?));
        }
        tiers.sort_by_key(|(above, _)| *above);
        Some(Prices { base, tiers })
    }
}

impl RatesData {
    fn rates(&self) -> Option<Rates> {
        Some(Rates {
            input: usd_number(self.input)?,
            output: usd_number(self.output)?,
            cache_read: usd_number(self.cache_read)?,
            cache_write: usd_number(self.cache_write)?,
        })
    }

    fn to_json(&self) -> Map<String, Value> {
        let fields = [
            ("input", self.input),
            ("output", self.output),
            ("cacheRead", self.cache_read),
            ("cacheWrite", self.cache_write),
        ];
        fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect()
    }
}

impl CostData {
    fn to_json(&self) -> Value {
        let mut cost = self.base.to_json();
        if !self.tiers.is_empty() {
            let tiers = self.tiers.iter().map(|tier| {
                let mut rates = tier.rates.to_json();
                rates.insert("inputTokensAbove".into(), tier.input_tokens_above.into());
                Value::from(rates)
            });
            cost.insert("tiers".into(), tiers.collect());
        }
        cost.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_that_of_the_pinned_pi_and_complete() {
        let data = Data::read();
        assert_eq!(data.pi, contract::PI_VERSION);
        let count = |api| {
            data.providers
                .values()
                .flat_map(|provider| &provider.models)
                .filter(|m| m.api == api)
                .count()
        };
        // pi 1.6.0 has 748 and 417; 6 and 11 of them are GitHub Copilot's, whose token must be exchanged first.
        assert_eq!(count(ApiShape::OpenaiCompletions), 742);
        assert_eq!(count(ApiShape::AnthropicMessages), 406);
        assert_eq!(data.providers.len(), 32);
        for (name, provider) in &data.providers {
            assert!(!provider.key_variables.is_empty(), "{name}");
            for model in &provider.models {
                assert!(provider.addresses.contains_key(&model.api), "{name}/{}", model.id);
                assert!(model.max_tokens > 0 && model.context_window > 0, "{name}/{}", model.id);
                assert!(model.cost.base.rates().is_some(), "{name}/{}", model.id);
            }
        }
        let unpriced = data
            .providers
            .values()
            .flat_map(|provider| &provider.models)
            .filter(|m| m.prices().is_none());
        assert_eq!(unpriced.count(), 130);
    }
}
