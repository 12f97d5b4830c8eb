//! The catalog: pi's providers and the configuration's, merged by name.

use std::collections::{BTreeMap, HashMap};

use contract::{ApiShape, Micros};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::{CostConfig, GrantRefusal, ModelGrant, Prices, Rates, data, models_json};
use crate::upstream;

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
    pub compat: Option<Map<String, Value>>,
}

/// A `[providers.NAME]` that cannot be used. Found at start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    providers: BTreeMap<String, Provider>,
}

#[derive(Debug, Clone)]
struct Provider {
    /// Whether the configuration names it. One that it does not name is known, and refused.
    configured: bool,
    key: Option<SecretString>,
    key_variables: Vec<String>,
    /// Where each shape is reached. A shape whose address depends on the account is absent until the configuration gives it.
    addresses: HashMap<ApiShape, Url>,
    models: BTreeMap<String, Model>,
}

#[derive(Debug, Clone)]
struct Model {
    api: ApiShape,
    prices: Option<Prices>,
    max_tokens: u64,
    context_window: u64,
    entry: Map<String, Value>,
}

impl Catalog {
    /// pi's own providers, merged with the configuration's by name.
    pub fn new(configured: BTreeMap<String, ProviderConfig>) -> Result<Self, CatalogError> {
        let mut providers = own_providers();
        for (name, config) in configured {
            let fault = |what: String| CatalogError {
                provider: name.clone(),
                what,
            };
            if !is_name(&name) {
                return Err(fault("a provider's name is letters, digits, `-`, `_` and `.`".into()));
            }
            let known = providers.remove(&name);
            let merged = merge(known, config).map_err(fault)?;
            providers.insert(name, merged);
        }
        Ok(Self { providers })
    }

    /// Gate 6. With `dollar_cap` a model without a known price is refused.
    pub fn grant(&self, provider: &str, model: &str, dollar_cap: bool) -> Result<ModelGrant, GrantRefusal> {
        let unconfigured = |what: &str, nearest| GrantRefusal::ProviderUnconfigured {
            provider: provider.to_owned(),
            what: what.to_owned(),
            nearest,
        };
        let Some(found) = self.providers.get(provider) else {
            let names = self
                .providers
                .iter()
                .filter(|(_, known)| known.configured)
                .map(|(name, _)| name.as_str());
            return Err(unconfigured("there is no such provider", nearest(provider, names)));
        };
        if !found.configured {
            return Err(unconfigured("the configuration does not name it", None));
        }
        let Some(entry) = found.models.get(model) else {
            return Err(GrantRefusal::ModelUnknown {
                provider: provider.to_owned(),
                model: model.to_owned(),
                nearest: nearest(model, found.models.keys().map(String::as_str)),
            });
        };
        let Some(base_url) = found.addresses.get(&entry.api) else {
            return Err(unconfigured(
                "its address depends on the account, and no base_url is set",
                None,
            ));
        };
        if found.key.is_none() && !upstream::is_loopback(base_url) {
            return Err(unconfigured("it has no key", None));
        }
        if dollar_cap && entry.prices.is_none() {
            return Err(GrantRefusal::ModelUnpriced {
                provider: provider.to_owned(),
                model: model.to_owned(),
            });
        }
        Ok(ModelGrant {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api: entry.api,
            base_url: base_url.clone(),
            key: found.key.clone(),
            prices: entry.prices.clone(),
            max_tokens: entry.max_tokens,
            context_window: entry.context_window,
            entry: entry.entry.clone(),
        })
    }

    /// The environment variables in which pi's users keep this provider's key, the usual one first; for a helpful message only.
    pub fn key_variables(&self, provider: &str) -> &[String] {
        self.providers.get(provider).map_or(&[], |found| &found.key_variables)
    }
}

fn own_providers() -> BTreeMap<String, Provider> {
    let data = data::Data::read();
    let provider = |(name, own): (&String, &data::ProviderData)| {
        let addresses = own
            .addresses
            .iter()
            .filter(|(_, address)| !address.is_empty() && !address.contains('{'));
        let models = own.models.iter().map(|model| {
            let mut entry = data.entry(model);
            narrow(model.api, &mut entry);
            (
                model.id.clone(),
                Model {
                    api: model.api,
                    prices: model.prices(),
                    max_tokens: model.max_tokens,
                    context_window: model.context_window,
                    entry,
                },
            )
        });
        let provider = Provider {
            configured: false,
            key: None,
            key_variables: own.key_variables.clone(),
            addresses: addresses
                .filter_map(|(api, address)| Some((*api, Url::parse(address).ok()?)))
                .collect(),
            models: models.collect(),
        };
        (name.clone(), provider)
    };
    data.providers.iter().map(provider).collect()
}

fn merge(known: Option<Provider>, config: ProviderConfig) -> Result<Provider, String> {
    let key = config.key.filter(|key| !key.expose_secret().is_empty());
    if let Some(key) = &key {
        upstream::check_key(key)?;
    }
    let is_new = known.is_none();
    let mut provider = known.unwrap_or_else(|| Provider {
        configured: true,
        key: None,
        key_variables: Vec::new(),
        addresses: HashMap::new(),
        models: BTreeMap::new(),
    });
    provider.configured = true;
    provider.key = key;
    if is_new && (config.api.is_none() || config.base_url.is_none() || config.models.is_empty()) {
        return Err("pi has no provider of this name with an API shape that is supported; it needs `api`, `base_url` and `models`".into());
    }

    let mut shapes = provider.models.values().map(|model| model.api);
    let api = match (config.api, shapes.next()) {
        (Some(api), _) => api,
        (None, Some(first)) if shapes.all(|api| api == first) => first,
        (None, Some(_)) if config.base_url.is_none() && config.models.is_empty() => ApiShape::OpenaiCompletions,
        (None, _) => return Err("this provider has both API shapes: say with `api` which one is meant".into()),
    };
    drop(shapes);
    if let Some(address) = &config.base_url {
        provider.addresses.insert(api, upstream::check_address(address)?);
    }
    for model in config.models {
        let (id, model) = own_model(api, model)?;
        provider.models.insert(id, model);
    }
    Ok(provider)
}

fn own_model(api: ApiShape, config: ModelConfig) -> Result<(String, Model), String> {
    let id = config.id;
    if id.is_empty() || id.len() > 200 || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("a model's id is not empty and has no spaces".into());
    }
    if config.context_window == 0 || config.max_tokens == 0 {
        return Err(format!("model `{id}`: context_window and max_tokens are not 0"));
    }
    let prices = config.cost.as_ref().map(|cost| prices(&id, cost)).transpose()?;
    let name = config.name.as_deref().unwrap_or(&id);
    let mut entry = data::entry(
        &id,
        name,
        config.reasoning,
        config.images,
        config.context_window,
        config.max_tokens,
    );
    entry.insert(
        "cost".into(),
        prices
            .as_ref()
            .map_or_else(|| cost_json(None), |prices| cost_json(Some(&prices.base))),
    );
    entry.insert("compat".into(), config.compat.unwrap_or_default().into());
    narrow(api, &mut entry);
    Ok((
        id,
        Model {
            api,
            prices,
            max_tokens: config.max_tokens,
            context_window: config.context_window,
            entry,
        },
    ))
}

fn prices(id: &str, cost: &CostConfig) -> Result<Prices, String> {
    let read = |field: &str, text: &str| {
        Micros::parse_usd(text).map_err(|fault| format!("model `{id}`: cost.{field}: {fault}"))
    };
    let input = read("input", &cost.input)?;
    let or_input = |field: &str, text: &Option<String>| text.as_deref().map_or(Ok(input), |text| read(field, text));
    let base = Rates {
        input,
        output: read("output", &cost.output)?,
        cache_read: or_input("cache_read", &cost.cache_read)?,
        cache_write: or_input("cache_write", &cost.cache_write)?,
    };
    Ok(Prices {
        base,
        tiers: Vec::new(),
    })
}

/// pi shows its own figure of the cost. An unknown price is 0 there, since pi knows no other word; nothing is decided by it.
fn cost_json(rates: Option<&Rates>) -> Value {
    #[expect(
        clippy::cast_precision_loss,
        reason = "shown by pi; the door counts in whole micro-dollars"
    )]
    let usd = |pick: fn(&Rates) -> Micros| rates.map_or(0.0, |rates| pick(rates).0 as f64 / 1e6);
    json!({
        "input": usd(|r| r.input), "output": usd(|r| r.output),
        "cacheRead": usd(|r| r.cache_read), "cacheWrite": usd(|r| r.cache_write),
    })
}

fn narrow(api: ApiShape, entry: &mut Map<String, Value>) {
    if let Some(compat) = entry.get_mut("compat").and_then(Value::as_object_mut) {
        models_json::narrow(api, compat);
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The candidate that differs least from `asked`, when it differs little.
fn nearest<'a>(asked: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let close = candidates.map(|name| (strsim::normalized_damerau_levenshtein(asked, name), name));
    close
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}
