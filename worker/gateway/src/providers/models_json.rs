//! What pi is told about its model: `/job/models.json`.
//!
//! pi derives some behaviour from a provider's address. Inside the box every address is the runner's listener, so the flags that pi would have
//! derived are written out, and those that ask for more than the door lets through are switched off.

use contract::{ApiShape, DUMMY_KEY, MODEL_ORIGIN};
use serde_json::{Map, Value, json};

use super::ModelGrant;

/// `/job/models.json`: the granted model alone, a dummy key, and the address of the runner's listener inside the box.
pub fn models_json(grant: &ModelGrant) -> Value {
    let base_url = match grant.api {
        ApiShape::OpenaiCompletions => format!("{MODEL_ORIGIN}/v1"),
        ApiShape::AnthropicMessages => MODEL_ORIGIN.to_owned(),
    };
    json!({
        "providers": {
            &grant.provider: {
                "baseUrl": base_url,
                "api": grant.api.word(),
                "apiKey": DUMMY_KEY,
                "models": [grant.entry],
            }
        }
    })
}

/// Flags without which pi sends something that the door refuses: they are removed, and pi then behaves as if the endpoint could not do it.
const NEVER: [&str; 7] = [
    "allowedFallbackModels", // other models than the job's
    "openRouterRouting",     // `provider`: other upstreams
    "vercelGatewayRouting",  // `providerOptions`: other upstreams
    "vllmPriority",          // a place in the queue that the operator did not give
    "supportsMidConvoToolChanges",
    "supportsMidConvoToolAdditions",
    "supportsOpenAIGrammarTools", // `custom` tools
];

/// Narrows pi's compatibility flags to what the door lets through.
pub(super) fn narrow(api: ApiShape, compat: &mut Map<String, Value>) {
    for flag in NEVER {
        compat.remove(flag);
    }
    compat.insert("supportsLongCacheRetention".into(), false.into());
    match api {
        ApiShape::OpenaiCompletions => {
            compat.insert("promptCacheKeyMode".into(), "disabled".into());
            compat
                .entry("maxTokensField")
                .or_insert_with(|| "max_completion_tokens".into());
        }
        // Threads keep a conversation at the provider: stored state.
        ApiShape::AnthropicMessages => _ = compat.insert("supportsMessageThreads".into(), false.into()),
    }
}
