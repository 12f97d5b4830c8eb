//! Models, prices, limits: pi's own providers of the two API shapes, and what the configuration adds.
//!
//! [`Catalog`] is pi 1.6.0's model data (`models.json` beside this file, written by `generate.mjs`) merged by name with `[providers.NAME]` of the
//! configuration. Prices are micro-dollars per million tokens. A price that nobody stated is unknown, never 0.
//!
//! Fails with [`CatalogError`] for a configuration that cannot be used, at start; [`GrantRefusal`] is gate 6's answer for one job.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::{ApiShape, Micros};

/// One `[providers.NAME]` of the configuration. For one of pi's own providers only `key` is needed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The API shape; needed for a provider that pi does not know.
    pub api: Option<ApiShape>,
    /// Where it is reached: `https`, or `http` on loopback. OpenAI shape: with the version (`…/v1`); Anthropic shape: without.
    pub base_url: Option<String>,
    /// Models that pi does not know, or that replace pi's entry of the same id.
    #[serde(default)]
    pub models: Vec<ModelConfig>,
    /// The key. A provider on loopback may have none. Read by the program (file, environment or command), never from the file itself.
    #[serde(skip)]
    pub key: Option<SecretString>,
}

/// One model of a [`ProviderConfig`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The id that the API wants.
    pub id: String,
    /// The name to show; the id when absent.
    pub name: Option<String>,
    /// Tokens.
    pub context_window: u64,
    /// The most output tokens.
    pub max_tokens: u64,
    /// Whether it can think.
    #[serde(default)]
    pub reasoning: bool,
    /// Whether it takes images.
    #[serde(default)]
    pub images: bool,
    /// Absent: the price is unknown, and a job with a dollar cap may not use it. `"0"` says that it is free.
    pub cost: Option<CostConfig>,
    /// pi's compatibility flags, for endpoints that need them.
    pub compat: Option<serde_json::Map<String, Value>>,
}

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

/// A model and where it is reached: what one job may use. Only [`Catalog::grant`] makes one.
#[derive(Debug, Clone)]
pub struct ModelGrant {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) api: ApiShape,
    pub(crate) base_url: Url,
    pub(crate) key: Option<SecretString>,
    pub(crate) prices: Option<Prices>,
    pub(crate) max_tokens: u64,
    pub(crate) entry: serde_json::Map<String, Value>,
}

/// Why gate 6 says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Word: `provider-unconfigured`.
    #[error("no key is configured for the provider `{provider}`{}", hint(.nearest))]
    ProviderUnconfigured {
        /// As asked.
        provider: String,
        /// A known provider with a name like it.
        nearest: Option<String>,
    },
    /// Word: `model-unknown`.
    #[error("the provider `{provider}` has no model `{model}`{}", hint(.nearest))]
    ModelUnknown {
        /// The provider.
        provider: String,
        /// As asked.
        model: String,
        /// A known model with an id like it.
        nearest: Option<String>,
    },
    /// Word: `model-unpriced`.
    #[error("the price of `{provider}/{model}` is unknown, and a dollar cap applies")]
    ModelUnpriced {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_deref()
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

impl GrantRefusal {
    /// The kebab-case word of the refusal.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ProviderUnconfigured { .. } => "provider-unconfigured",
            Self::ModelUnknown { .. } => "model-unknown",
            Self::ModelUnpriced { .. } => "model-unpriced",
        }
    }
}

/// A `[providers.NAME]` that cannot be used. Found at start.
#[derive(Debug, thiserror::Error)]
#[error("providers.{provider}: {what}")]
pub struct CatalogError {
    /// The name in the configuration.
    pub provider: String,
    /// What is wrong.
    pub what: String,
}

/// All models that a job could be granted.
#[derive(Debug, Clone)]
pub struct Catalog {
    _private: (),
}

impl Catalog {
    /// pi's own providers, merged with the configuration's by name.
    pub fn new(_configured: BTreeMap<String, ProviderConfig>) -> Result<Self, CatalogError> {
        todo!()
    }

    /// Gate 6. With `dollar_cap` a model without a known price is refused.
    pub fn grant(&self, _provider: &str, _model: &str, _dollar_cap: bool) -> Result<ModelGrant, GrantRefusal> {
        todo!()
    }

    /// The environment variables in which pi's users keep this provider's key, the usual one first; for a helpful message only.
    pub fn key_variables(&self, _provider: &str) -> &[String] {
        todo!()
    }
}

impl ModelGrant {
    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model's id.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The API shape.
    pub fn api(&self) -> ApiShape {
        self.api
    }

    /// Whether its price is known.
    pub fn is_priced(&self) -> bool {
        self.prices.is_some()
    }
}

/// `/job/models.json`: the granted model alone, a dummy key, and the address of the runner's listener inside the box.
pub fn models_json(_grant: &ModelGrant) -> Value {
    todo!()
}
