//! The JSON Schema of a triggers file, made from the types that read it. `docs/triggers.schema.json` is its output.

use contract::Tool;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::language::{On, Run};

/// A triggers file as it is written.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "pi-dispatch triggers")]
struct File {
    /// The triggers. Their order means nothing.
    triggers: Vec<Entry>,
}

/// One trigger: what starts it, and what it starts.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "trigger")]
struct Entry {
    /// A name that its history is kept under. Derived from the rest when absent.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    on: On,
    run: Run,
}

/// The schema of `docs/triggers.schema.json`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}

/// The eight names, taken from the one place where they stand.
pub(crate) fn exclude_tools(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
    json_schema!({
        "type": "array",
        "items": { "enum": names },
        "minItems": 1,
        "uniqueItems": true,
    })
}

/// Decimal text, as [`crate::usd`] reads it.
pub(crate) fn usd(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^[0-9]{1,7}(\.[0-9]{1,6})?$" })
}
