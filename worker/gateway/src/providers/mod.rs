//! Models, prices, limits: pi's own providers of the two API shapes, and what the configuration adds.
//!
//! [`Catalog`] is pi 1.6.0's model data (`models.json` beside this file, written by `generate.mjs`) merged by name with `[providers.NAME]` of the
//! configuration. Prices are micro-dollars per million tokens. A price that nobody stated is unknown, never 0: pi writes 0 for subscriptions and
//! trials alike, so a catalog model whose prices are all 0 counts as unpriced until the configuration says `cost = { input = "0", output = "0" }`.
//!
//! Fails with [`CatalogError`] for a configuration that cannot be used, at start; [`GrantRefusal`] is gate 6's answer for one job.

mod catalog;
mod data;
mod grant;
mod models_json;
mod price;

pub use catalog::{Catalog, CatalogError, ModelConfig, ProviderConfig};
pub use grant::{GrantRefusal, ModelGrant};
pub use models_json::models_json;
pub use price::{CostConfig, Prices, Rates};
