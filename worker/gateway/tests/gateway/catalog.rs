//! The catalog: pi's own providers by name, the configuration's beside them, and gate 6's refusals in words.

use std::collections::BTreeMap;

use gateway::providers::{Catalog, CatalogError, CostConfig, GrantRefusal, ModelConfig, ProviderConfig, models_json};
use serde_json::{Value, json};

fn with_key() -> ProviderConfig {
    ProviderConfig {
        key: Some("a-made-up-key".into()),
        ..ProviderConfig::default()
    }
}

fn model(id: &str) -> ModelConfig {
    ModelConfig {
        id: id.into(),
        name: None,
        context_window: 131_072,
        max_tokens: 16_384,
        reasoning: false,
        images: false,
        cost: Some(CostConfig {
            input: "0".into(),
            output: "0".into(),
            cache_read: None,
            cache_write: None,
        }),
        compat: None,
    }
}

fn local() -> ProviderConfig {
    ProviderConfig {
        api: Some(contract::ApiShape::OpenaiCompletions),
        base_url: Some("http://127.0.0.1:11434/v1".into()),
        models: vec![model("qwen3-coder")],
        key: None,
    }
}

fn catalog(configured: impl IntoIterator<Item = (&'static str, ProviderConfig)>) -> Result<Catalog, CatalogError> {
    Catalog::new(
        configured
            .into_iter()
            .map(|(name, config)| (name.to_owned(), config))
            .collect::<BTreeMap<_, _>>(),
    )
}

#[test]
fn a_provider_of_pis_own_needs_nothing_but_its_key() {
    let catalog = catalog([("anthropic", with_key()), ("openrouter", with_key())]).unwrap();
    let claude = catalog.grant("anthropic", "claude-sonnet-4-5", true).unwrap();
    assert_eq!(claude.api(), contract::ApiShape::AnthropicMessages);
    assert!(claude.is_priced());
    assert_eq!(catalog.key_variables("anthropic"), ["ANTHROPIC_API_KEY"]);
    assert_eq!(
        catalog
            .grant("openrouter", "deepseek/deepseek-v3.2", true)
            .unwrap()
            .api()
            .word(),
        "openai-completions"
    );
}

#[test]
fn a_provider_that_is_known_but_not_configured_or_has_no_key_is_refused() {
    let catalog = catalog([("anthropic", ProviderConfig::default()), ("local", local())]).unwrap();
    let refusal = catalog.grant("deepseek", "deepseek-chat", true).unwrap_err();
    assert_eq!(refusal.word(), "provider-unconfigured");
    let refusal = catalog.grant("anthropic", "claude-sonnet-4-5", true).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the provider `anthropic` is not configured on this host: it has no key"
    );
    let refusal = catalog.grant("lokal", "qwen3-coder", true).unwrap_err();
    assert!(
        refusal
            .to_string()
            .ends_with("there is no such provider (did you mean `local`?)"),
        "{refusal}"
    );
}

#[test]
fn an_unknown_model_is_refused_with_the_nearest_one() {
    let catalog = catalog([("anthropic", with_key())]).unwrap();
    let refusal = catalog.grant("anthropic", "claude-sonet-4-5", true).unwrap_err();
    let GrantRefusal::ModelUnknown { nearest, .. } = &refusal else {
        panic!("{refusal}")
    };
    assert_eq!(nearest.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(refusal.word(), "model-unknown");
}

#[test]
fn a_model_without_a_price_is_unpriced_and_never_free() {
    let unpriced = ProviderConfig {
        models: vec![ModelConfig {
            cost: None,
            ..model("qwen3-coder")
        }],
        ..local()
    };
    let catalog = catalog([("local", unpriced), ("zai", with_key())]).unwrap();
    let refusal = catalog.grant("local", "qwen3-coder", true).unwrap_err();
    assert_eq!(refusal.word(), "model-unpriced");
    assert!(!catalog.grant("local", "qwen3-coder", false).unwrap().is_priced());
    // pi's data writes 0 where it knows no price.
    let glm = catalog.grant("zai", "glm-5.2-highspeed", false).unwrap();
    assert!(!glm.is_priced());
}

#[test]
fn a_price_of_zero_that_the_operator_wrote_is_a_price() {
    let catalog = catalog([("local", local())]).unwrap();
    assert!(catalog.grant("local", "qwen3-coder", true).unwrap().is_priced());
}

#[test]
fn what_cannot_be_used_is_refused_at_start_and_named() {
    let refused = |name: &'static str, config: ProviderConfig| catalog([(name, config)]).unwrap_err().to_string();
    assert!(refused("mine", with_key()).contains("it needs `api`, `base_url` and `models`"));
    assert!(refused("openai", with_key()).contains("it needs `api`, `base_url` and `models`"));
    assert!(refused("no spaces", local()).contains("a provider's name is"));
    let far = ProviderConfig {
        base_url: Some("http://models.example.org/v1".into()),
        ..local()
    };
    assert!(refused("far", far).contains("use `https`"));
    let odd = CostConfig {
        input: "-1".into(),
        output: "0".into(),
        cache_read: None,
        cache_write: None,
    };
    let odd = ProviderConfig {
        models: vec![ModelConfig {
            cost: Some(odd),
            ..model("m")
        }],
        ..local()
    };
    assert!(refused("odd", odd).contains("model `m`: cost.input"));
    let broken = ProviderConfig {
        key: Some("two\nlines".into()),
        ..local()
    };
    let said = refused("broken", broken);
    assert!(
        said.contains("the key has characters") && !said.contains("two"),
        "{said}"
    );
    assert!(
        refused(
            "fireworks",
            ProviderConfig {
                models: vec![model("m")],
                ..with_key()
            }
        )
        .contains("both API shapes")
    );
}

#[test]
fn an_address_that_depends_on_the_account_must_be_given() {
    let without = catalog([("cloudflare-workers-ai", with_key())]).unwrap();
    let id = "@cf/openai/gpt-oss-120b";
    assert_eq!(
        without.grant("cloudflare-workers-ai", id, false).unwrap_err().word(),
        "provider-unconfigured"
    );
    let address = Some("https://api.cloudflare.com/client/v4/accounts/abc/ai/v1".into());
    let with = catalog([(
        "cloudflare-workers-ai",
        ProviderConfig {
            base_url: address,
            ..with_key()
        },
    )])
    .unwrap();
    assert!(with.grant("cloudflare-workers-ai", id, false).is_ok());
}

#[test]
fn a_configured_model_replaces_pis_entry_of_the_same_id() {
    let free = ModelConfig {
        context_window: 1_000,
        ..model("deepseek-v4-pro")
    };
    let catalog = catalog([(
        "deepseek",
        ProviderConfig {
            models: vec![free],
            ..with_key()
        },
    )])
    .unwrap();
    let file = models_json(&catalog.grant("deepseek", "deepseek-v4-pro", true).unwrap());
    assert_eq!(file["providers"]["deepseek"]["models"][0]["contextWindow"], 1_000);
}

#[test]
fn what_pi_is_told_holds_no_key_and_no_address_but_the_runners() {
    let catalog = catalog([("anthropic", with_key()), ("local", local())]).unwrap();
    let claude = models_json(&catalog.grant("anthropic", "claude-opus-5", true).unwrap());
    let provider = &claude["providers"]["anthropic"];
    assert_eq!(provider["baseUrl"], contract::MODEL_ORIGIN);
    assert_eq!(provider["apiKey"], contract::DUMMY_KEY);
    assert!(!claude.to_string().contains("made-up") && !claude.to_string().contains("anthropic.com"));
    let compat = &provider["models"][0]["compat"];
    assert_eq!(compat["supportsMessageThreads"], false);
    assert_eq!(compat["supportsLongCacheRetention"], false);
    for never in ["allowedFallbackModels", "supportsMidConvoToolChanges"] {
        assert_eq!(compat.get(never), None, "{never}");
    }

    let local = models_json(&catalog.grant("local", "qwen3-coder", true).unwrap());
    let expected: Value = json!({ "providers": { "local": {
        "baseUrl": "http://127.0.0.1:18080/v1",
        "api": "openai-completions",
        "apiKey": "held-by-the-gateway",
        "models": [{
            "id": "qwen3-coder", "name": "qwen3-coder", "reasoning": false, "input": ["text"],
            "contextWindow": 131_072, "maxTokens": 16_384,
            "cost": { "input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0 },
            "compat": { "maxTokensField": "max_completion_tokens", "promptCacheKeyMode": "disabled", "supportsLongCacheRetention": false },
        }],
    } } });
    assert_eq!(local, expected);
}
