//! The JSON Schema of a triggers file, made from the types that read it. `docs/triggers.schema.json` is its output.

use contract::Tool;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

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
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    strict(&mut schema);
    if let Some(run) = schema.pointer_mut("/$defs/Run").and_then(Value::as_object_mut) {
        run.insert("not".to_owned(), json!({ "required": ["task", "instructions"] }));
    }
    schema
}

/// In a file a key is absent, never `null`; and no object takes keys that it does not name.
fn strict(schema: &mut Value) {
    match schema {
        Value::Array(values) => values.iter_mut().for_each(strict),
        Value::Object(object) => {
            object.values_mut().for_each(strict);
            if let Some(types) = object.get_mut("type").filter(|types| types.is_array()) {
                let kept = types
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|name| *name != "null")
                    .cloned();
                *types = kept.unwrap_or(Value::Null);
            }
            if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
                choices.retain(|choice| *choice != json!({ "type": "null" }));
                match choices.pop() {
                    Some(Value::Object(only)) if choices.is_empty() => object.extend(only),
                    last => {
                        choices.extend(last);
                        object.insert("anyOf".to_owned(), Value::Array(choices));
                    }
                }
            }
            if object.get("type").is_some_and(|name| name == "object") {
                object.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
