//! Prints `/job/models.json` for one of pi's own models: `cargo run -p gateway --example models_json -- anthropic claude-sonnet-4-5`.
//!
//! The key is made up. With it one can see by hand what the real pi makes of the file.

use std::collections::BTreeMap;

use gateway::providers::{Catalog, ProviderConfig, models_json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(provider), Some(model)) = (words.next(), words.next()) else {
        return Err("usage: models_json PROVIDER MODEL".into());
    };
    let config = ProviderConfig {
        key: Some("not-a-real-key".into()),
        ..ProviderConfig::default()
    };
    let catalog = Catalog::new(BTreeMap::from([(provider.clone(), config)]))?;
    let grant = catalog.grant(&provider, &model, false)?;
    println!("{}", serde_json::to_string_pretty(&models_json(&grant))?);
    Ok(())
}
