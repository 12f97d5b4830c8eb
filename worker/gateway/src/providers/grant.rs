//! One model for one job: what [`Catalog::grant`](super::Catalog::grant) gives, and why it may refuse.

use contract::ApiShape;
use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::Prices;

/// A model and where it is reached: what one job may use. Only [`Catalog::grant`](super::Catalog::grant) makes one.
#[derive(Debug, Clone)]
pub struct ModelGrant {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) api: ApiShape,
    pub(crate) base_url: Url,
    pub(crate) key: Option<SecretString>,
    pub(crate) prices: Option<Prices>,
    /// The most output tokens that the model writes.
    pub(crate) max_tokens: u64,
    /// The most tokens that a request and its answer may have together.
    pub(crate) context_window: u64,
    /// The model as `/job/models.json` shows it, without provider and address; `compat` already narrowed.
    pub(crate) entry: Map<String, Value>,
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

    /// The key, for whoever must withhold it from texts that leave the host.
    pub fn key(&self) -> Option<&SecretString> {
        self.key.as_ref()
    }

    /// A compatibility flag that is switched on.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.compat(flag).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The field in which an OpenAI-shaped endpoint takes the output limit.
    pub(crate) fn max_tokens_field(&self) -> &'static str {
        match self.compat("maxTokensField").and_then(Value::as_str) {
            Some("max_tokens") => "max_tokens",
            _ => "max_completion_tokens",
        }
    }

    /// Whether the endpoint takes `stream_options.include_usage`; pi assumes so unless told otherwise.
    pub(crate) fn says_usage_in_streams(&self) -> bool {
        self.compat("supportsUsageInStreaming")
            .and_then(Value::as_bool)
            .unwrap_or(true)
    }

    fn compat(&self, flag: &str) -> Option<&Value> {
        self.entry.get("compat").and_then(|compat| compat.get(flag))
    }
}

/// Why gate 6 says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Word: `provider-unconfigured`.
    #[error("the provider `{provider}` is not configured on this host: {what}{}", hint(.nearest))]
    ProviderUnconfigured {
        /// As asked.
        provider: String,
        /// What is missing.
        what: String,
        /// A configured or known provider with a name like it.
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

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_deref()
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
