//! The schema for editors says what the loader says.

use std::path::Path;

use serde_json::{Value, json};

const EXAMPLE: &str = r#"{ "on": { "type": "comment", "phrase": "@pi" }, "run": { "kind": "forgejo", "flow": "triage", "excludeTools": ["bash", "powershell", "edit", "write"] } }"#;

#[expect(
    clippy::unwrap_used,
    reason = "a schema that does not compile is what these tests are for"
)]
fn accepts(file: &Value) -> bool {
    jsonschema::validator_for(&triggers::schema()).unwrap().is_valid(file)
}

#[test]
fn the_committed_schema_is_the_one_that_the_types_make() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/triggers.schema.json");
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();

    assert!(
        committed == triggers::schema(),
        "docs/triggers.schema.json is out of date: cargo run -q -p triggers --example schema > docs/triggers.schema.json"
    );
}

#[test]
fn the_example_of_the_readme_fits_the_schema() {
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();

    assert!(accepts(&json!({ "triggers": [example] })));
}

/// Each of these files is refused by both, or taken by both.
#[test]
fn the_schema_and_the_loader_agree() {
    let comment = json!({ "type": "comment", "phrase": "@pi" });
    let run = |key: &str, value: Value| {
        let mut run = json!({ "kind": "forgejo", "flow": "triage" });
        run[key] = value;
        json!({ "triggers": [{ "on": comment, "run": run }] })
    };
    let on = |on: Value| json!({ "triggers": [{ "on": on, "run": { "kind": "gitea", "flow": "triage" } }] });
    let files = [
        (true, json!({ "triggers": [] })),
        (false, json!({})),
        (false, json!([])),
        (false, json!({ "triggers": [], "version": 1 })),
        (true, on(json!({ "type": "manual" }))),
        (false, on(json!({ "type": "manual", "phrase": "@pi" }))),
        (false, on(json!({ "type": "cron" }))),
        (false, on(json!({ "type": "comment" }))),
        (false, on(json!({ "type": "comment", "phrase": "" }))),
        (
            true,
            on(json!({ "type": "comment", "phrase": "@pi", "target": "pull_request", "forge": "codeberg" })),
        ),
        (false, on(json!({ "type": "comment", "phrase": "@pi", "target": null }))),
        (
            false,
            on(json!({ "type": "comment", "phrase": "@pi", "repositories": [] })),
        ),
        (false, on(json!({ "type": "comment", "phrase": "@pi", "any": ["bug"] }))),
        (
            true,
            run(
                "excludeTools",
                json!(["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"]),
            ),
        ),
        (false, run("excludeTools", json!([]))),
        (false, run("excludeTools", json!(["Bash"]))),
        (false, run("excludeTools", json!(["bash", "bash"]))),
        (false, run("excludeTools", json!([1]))),
        (false, run("excludeTools", json!("bash"))),
        (false, run("tools", json!(["read"]))),
        (false, run("noTools", json!(true))),
        (true, run("packages", json!(false))),
        (false, run("packages", json!(true))),
        (true, run("maxCostUsd", json!("0.50"))),
        (false, run("maxCostUsd", json!(0.5))),
        (false, run("maxCostUsd", json!("0.5e1"))),
        (true, run("maxTurns", json!(1))),
        (false, run("maxTurns", json!(0))),
        (false, run("maxTurns", json!("3"))),
        (false, run("timeoutMinutes", json!(1441))),
        (true, run("outputs", json!({ "comment": 0 }))),
        (false, run("outputs", json!({ "pull_request": 1 }))),
        (true, run("mode", json!("observe"))),
        (false, run("mode", json!("dry"))),
        (true, run("thinking", json!("xhigh"))),
        (false, run("kind", json!("github"))),
        (false, run("flow", json!("../triage"))),
        (false, run("provider", json!("Local Provider"))),
        (false, run("egress", json!(["x.example"]))),
    ];
    for (good, file) in files {
        assert_eq!(accepts(&file), good, "the schema, of {file}");
        let parsed = triggers::parse("triggers.json", &file.to_string());
        assert_eq!(
            parsed.file.is_some(),
            good,
            "the loader, of {file}: {:?}",
            parsed.faults
        );
    }
}
