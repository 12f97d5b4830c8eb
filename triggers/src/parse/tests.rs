use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::language::{CommentOn, Mode, On, Run, RunKind, Target};
use crate::{FaultKind, Tool, narrow, render, visible};

const EXAMPLE: &str = r#"{ "on": { "type": "comment", "phrase": "@pi" }, "run": { "kind": "forgejo", "flow": "triage", "excludeTools": ["bash", "powershell", "edit", "write"] } }"#;
const EIGHT: &str = "`read`, `bash`, `powershell`, `edit`, `write`, `grep`, `find` and `ls`";

fn file_of(trigger: &str) -> String {
    format!("{{ \"triggers\": [\n{trigger}\n] }}")
}

fn loaded(text: &str) -> TriggerFile {
    let parsed = parse("triggers.json", text);
    parsed
        .file
        .unwrap_or_else(|| panic!("{}", render(&parsed.faults, "triggers.json", text, false)))
}

/// The faults of a file that does not load.
fn faults(text: &str) -> Vec<Fault> {
    let parsed = parse("triggers.json", text);
    assert_eq!(parsed.file.is_none(), !parsed.faults.is_empty());
    assert!(parsed.file.is_none(), "it loads: {text}");
    parsed.faults
}

/// The one fault of a trigger whose `run` says this.
fn run_fault(keys: &str) -> Fault {
    let mut found = faults(&file_of(&format!(
        r#"{{ "on": {{ "type": "manual" }}, "run": {{ "kind": "forgejo", "flow": "x", {keys} }} }}"#
    )));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn on_fault(on: &str) -> Fault {
    let mut found = faults(&file_of(&format!(
        r#"{{ "on": {on}, "run": {{ "kind": "forgejo", "flow": "x" }} }}"#
    )));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn the_example_loads_exactly_as_it_stands() {
    let file = loaded(&file_of(EXAMPLE));

    let [trigger] = file.triggers() else {
        panic!("one trigger")
    };
    assert_eq!((trigger.id.as_str(), trigger.line), ("comment-pi-triage", 2));
    assert_eq!(
        trigger.run.exclude_tools,
        [Tool::Bash, Tool::Powershell, Tool::Edit, Tool::Write]
    );
    assert_eq!(trigger.run.outputs().comment, 1);
    assert_eq!(trigger.run.mode, Mode::Run);
    assert_eq!(file.get("comment-pi-triage"), Some(trigger));
}

#[test]
fn every_key_of_this_version_is_read() {
    let file = loaded(
        r#"// who may start what
        { "triggers": [ /* one */ {
            "id": "triage",
            "on": { "type": "comment", "phrase": "@pi triage", "target": "issue", "repositories": ["lab/*"],
                    "exceptRepositories": ["lab/vault"], "forge": "codeberg" },
            "run": { "kind": "gitea", "flow": "triage", "task": "Read it.\nAnswer.", "image": "pi-job:2.0.0",
                     "excludeTools": ["write"], "packages": false, "provider": "local", "model": "qwen3-coder",
                     "thinking": "high", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": "0.50", "timeoutMinutes": 5,
                     "outputs": { "comment": 2 }, "mode": "observe" } } ] }"#,
    );

    let trigger = file.get("triage").expect("it is there");
    assert_eq!(
        serde_json::to_value(trigger).unwrap(),
        json!({
            "id": "triage",
            "line": 2,
            "on": { "type": "comment", "phrase": "@pi triage", "target": "issue", "repositories": ["lab/*"],
                    "exceptRepositories": ["lab/vault"], "forge": "codeberg" },
            "run": { "kind": "gitea", "flow": "triage", "task": "Read it.\nAnswer.", "image": "pi-job:2.0.0",
                     "excludeTools": ["write"], "packages": false, "provider": "local", "model": "qwen3-coder",
                     "thinking": "high", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": "0.5", "timeoutMinutes": 5,
                     "outputs": { "comment": 2 }, "mode": "observe" },
        })
    );
    let again: Trigger = serde_json::from_value(serde_json::to_value(trigger).unwrap()).unwrap();
    assert_eq!(&again, trigger);
}

#[test]
fn a_stored_trigger_with_a_field_of_a_later_version_is_not_read() {
    let mut stored = serde_json::to_value(&loaded(&file_of(EXAMPLE)).triggers()[0]).unwrap();
    stored["run"]["egress"] = json!(["x.example"]);

    assert!(serde_json::from_value::<Trigger>(stored).is_err());
}

#[test]
fn all_faults_of_a_file_are_reported_at_once_and_in_its_order() {
    let text = include_str!("../../tests/files/many-faults.json");
    let parsed = parse("triggers.json", text);

    assert!(parsed.file.is_none());
    assert!(parsed.faults.is_sorted_by_key(|fault| fault.span.start));
    insta::assert_snapshot!("many_faults", render(&parsed.faults, "triggers.json", text, false));
    insta::assert_snapshot!(
        "many_faults_remarks",
        render(&parsed.remarks, "triggers.json", text, false)
    );
    insta::assert_json_snapshot!("first_fault_as_json", parsed.faults[0]);
}

#[test]
fn a_tool_that_pi_does_not_know_is_refused_with_the_whole_set() {
    for name in [
        "Bash",
        "BASH",
        "bash ",
        " bash",
        "shell",
        "powershel",
        "*",
        "ba*",
        "mcp__x",
        "forge_comment",
        "",
    ] {
        let fault = run_fault(&format!(r#""excludeTools": ["read", "{name}"]"#));
        assert_eq!(fault.kind, FaultKind::UnknownTool, "{name:?}");
        assert!(
            fault.help.as_ref().is_some_and(|help| help.contains(EIGHT)),
            "{fault:?}"
        );
        assert_eq!(fault.found, format!("\"{name}\""));
    }
    assert!(
        run_fault(r#""excludeTools": ["Bash"]"#)
            .help
            .unwrap()
            .contains("write `bash`")
    );
    assert!(
        run_fault(r#""excludeTools": ["powershel"]"#)
            .help
            .unwrap()
            .contains("did you mean `powershell`?")
    );
    assert!(run_fault(r#""excludeTools": ["ba*"]"#).message.contains("is a pattern"));
}

#[test]
fn every_other_way_to_say_exclude_tools_wrongly_prints_the_whole_set_too() {
    for (keys, kind) in [
        (r#""excludeTools": []"#, FaultKind::WrongValue),
        (r#""excludeTools": ["bash", "read", "bash"]"#, FaultKind::WrongValue),
        (r#""excludeTools": ["bash", 7]"#, FaultKind::WrongType),
        (r#""excludeTools": ["bash", null]"#, FaultKind::WrongType),
        (r#""excludeTools": ["bash", ["read"]]"#, FaultKind::WrongType),
        (r#""excludeTools": "bash""#, FaultKind::WrongType),
        (r#""excludeTools": null"#, FaultKind::WrongType),
        (r#""excludeTools": { "bash": true }"#, FaultKind::WrongType),
    ] {
        let fault = run_fault(keys);
        assert_eq!(fault.kind, kind, "{keys}");
        assert!(
            fault.help.as_ref().is_some_and(|help| help.contains(EIGHT)),
            "{fault:?}"
        );
    }
}

#[test]
fn all_255_subsets_of_the_eight_tools_load_in_the_order_of_the_file() {
    for subset in 1_u32..256 {
        let tools: Vec<Tool> = Tool::ALL
            .into_iter()
            .rev()
            .enumerate()
            .filter(|(at, _)| subset & (1 << at) != 0)
            .map(|(_, tool)| tool)
            .collect();
        let names = serde_json::to_string(&tools).unwrap();
        let text = file_of(&format!(
            r#"{{ "on": {{ "type": "manual" }}, "run": {{ "kind": "forgejo", "flow": "x", "excludeTools": {names} }} }}"#
        ));
        assert_eq!(loaded(&text).triggers()[0].run.exclude_tools, tools);
    }
}

#[test]
fn keys_that_look_as_if_they_took_tools_away_are_refused_by_name() {
    for key in [
        "tools",
        "noTools",
        "no_tools",
        "NoTools",
        "allowedTools",
        "excludetools",
        "exclude_tools",
        "excludeTool",
        "excludedTools",
        "exclude-tools",
        "ExcludeTools",
        "excludeToosl",
        "disallowedTools",
        "exludeTools",
    ] {
        let fault = run_fault(&format!(r#""{key}": ["bash"]"#));
        assert_eq!(fault.kind, FaultKind::RefusedKey, "{key}");
        assert!(fault.help.is_some_and(|why| why.contains("xcludeTools")), "{key}");
    }
    for on in [
        r#"{ "type": "comment", "phrase": "@pi", "excludeTools": ["bash"] }"#,
        r#"{ "type": "manual", "exclude_tools": ["bash"] }"#,
    ] {
        let fault = on_fault(on);
        assert_eq!(fault.kind, FaultKind::RefusedKey);
        assert!(fault.help.is_some_and(|why| why.contains("`run.excludeTools`")));
    }
    let outside = faults(r#"{ "triggers": [], "excludeTools": ["bash"] }"#);
    assert_eq!(outside[0].kind, FaultKind::RefusedKey);
}

#[test]
fn keys_of_a_later_version_are_unknown_and_said_to_come() {
    for key in [
        "command",
        "egress",
        "skillsDir",
        "profile",
        "concurrency",
        "resume",
        "replicas",
        "waitFor",
        "secrets",
        "folder",
        "repository",
    ] {
        let fault = run_fault(&format!(r#""{key}": "x""#));
        assert_eq!(fault.kind, FaultKind::UnknownKey, "{key}");
        assert!(fault.message.contains("it is not there yet"), "{fault:?}");
    }
    for key in [
        "any",
        "all",
        "none",
        "refire",
        "action",
        "number",
        "once",
        "reviewState",
        "branches",
        "paths",
    ] {
        let fault = on_fault(&format!(r#"{{ "type": "comment", "phrase": "@pi", "{key}": [] }}"#));
        assert!(fault.message.contains("it is not there yet"), "{fault:?}");
    }
    for word in ["label", "issue", "pull_request", "push", "cron"] {
        let fault = on_fault(&format!(
            r#"{{ "type": "{word}", "once": true, "timezone": "UTC", "all": [] }}"#
        ));
        assert!(fault.message.contains("it is not there yet"), "{fault:?}");
    }
}

#[test]
fn an_unknown_key_names_the_nearest_that_there_is() {
    for (key, help) in [
        ("flows", "did you mean `flow`?"),
        ("maxturns", "did you mean `maxTurns`?"),
        ("max_cost_usd", "did you mean `maxCostUsd`?"),
        ("timeout", "did you mean `timeoutMinutes`?"),
        ("phrase", "`phrase` belongs into `on` of a comment"),
        ("id", "`id` belongs into a trigger"),
        ("zzzzzzzzzz", "its keys are `kind`, `flow`, "),
    ] {
        let fault = run_fault(&format!(r#""{key}": 1"#));
        assert_eq!(fault.kind, FaultKind::UnknownKey);
        assert!(
            fault.help.as_ref().is_some_and(|said| said.contains(help)),
            "{key}: {fault:?}"
        );
    }
}

#[test]
fn a_key_that_stands_twice_is_a_fault_however_it_is_written() {
    for keys in [r#""flow": "y""#, r#""fl\u006fw": "y""#] {
        let fault = run_fault(keys);
        assert_eq!(fault.kind, FaultKind::DuplicateKey);
    }
    let twice = faults("{ \"triggers\": [], \"triggers\": [] }");
    assert_eq!(
        (twice[0].kind, twice[0].line, twice[0].column),
        (FaultKind::DuplicateKey, 1, 19)
    );
}

#[test]
fn values_that_a_key_does_not_take_are_refused() {
    for keys in [
        r#""task": """#,
        r#""task": "  \n ""#,
        r#""task": "a\u0000b""#,
        r#""task": "a\u202eb""#,
        r#""task": "x", "instructions": "y""#,
        r#""image": "-v""#,
        r#""image": "pi job""#,
        r#""packages": true"#,
        r#""packages": "false""#,
        r#""provider": "../x""#,
        r#""model": "two words""#,
        r#""thinking": "hard""#,
        r#""maxTurns": 0"#,
        r#""maxTurns": 1.5"#,
        r#""maxTurns": 1e3"#,
        r#""maxTurns": -1"#,
        r#""maxTurns": 99999999999999999999999"#,
        r#""maxTurns": "3""#,
        r#""maxTokens": true"#,
        r#""maxCostUsd": 5"#,
        r#""maxCostUsd": "5 USD""#,
        r#""maxCostUsd": "-1""#,
        r#""maxCostUsd": "0.0000001""#,
        r#""maxCostUsd": "1000001""#,
        r#""timeoutMinutes": 1441"#,
        r#""outputs": []"#,
        r#""outputs": { "comment": -1 }"#,
        r#""outputs": { "comment": 11 }"#,
        r#""outputs": { "pull_request": 1 }"#,
        r#""outputs": { "merge": 1 }"#,
        r#""mode": "Run""#,
        r#""mode": null"#,
    ] {
        let fault = run_fault(keys);
        assert!(fault.line == 2 && fault.column > 1, "{fault:?}");
    }
    for flow in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "A",
        "-x",
        ".x",
        "ä",
        "x\\u0000",
        &"x".repeat(65),
    ] {
        let text = file_of(&format!(
            r#"{{ "on": {{ "type": "manual" }}, "run": {{ "kind": "forgejo", "flow": "{flow}" }} }}"#
        ));
        assert_eq!(faults(&text).len(), 1, "{flow:?}");
    }
}

#[test]
fn phrases_and_globs_that_could_never_match_are_refused() {
    for phrase in [
        "",
        " ",
        " @pi",
        "@pi ",
        "a  b",
        "@pi!",
        "@pi,",
        "`pi`",
        "<pi>",
        "a\\nb",
        "a\\tb",
        "**pi**",
        &"x".repeat(65),
    ] {
        let fault = on_fault(&format!(r#"{{ "type": "comment", "phrase": "{phrase}" }}"#));
        assert_eq!(fault.kind, FaultKind::WrongValue, "{phrase:?}");
    }
    for glob in [
        "",
        "lab",
        "lab/",
        "/x",
        "a/b/c",
        "**/x",
        "lab/x y",
        "lab/[x",
        "!lab/x",
        "lab/\\u0000",
        "**",
    ] {
        let fault = on_fault(&format!(
            r#"{{ "type": "comment", "phrase": "@pi", "repositories": ["{glob}"] }}"#
        ));
        assert_eq!(fault.kind, FaultKind::WrongValue, "{glob:?}");
    }
}

#[test]
fn what_must_be_there_and_is_not_is_named() {
    for (text, key) in [
        ("{}", "triggers"),
        (
            r#"{ "triggers": [ { "run": { "kind": "forgejo", "flow": "x" } } ] }"#,
            "on",
        ),
        (r#"{ "triggers": [ { "on": { "type": "manual" } } ] }"#, "run"),
        (
            r#"{ "triggers": [ { "on": { }, "run": { "kind": "forgejo", "flow": "x" } } ] }"#,
            "type",
        ),
        (
            r#"{ "triggers": [ { "on": { "type": "comment" }, "run": { "kind": "forgejo", "flow": "x" } } ] }"#,
            "phrase",
        ),
        (
            r#"{ "triggers": [ { "on": { "type": "manual" }, "run": { "flow": "x" } } ] }"#,
            "kind",
        ),
        (
            r#"{ "triggers": [ { "on": { "type": "manual" }, "run": { "kind": "forgejo" } } ] }"#,
            "flow",
        ),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, FaultKind::MissingKey);
        assert!(
            found[0].message.ends_with(&format!("needs the key `{key}`")),
            "{found:?}"
        );
    }
}

#[test]
fn only_json_with_comments_is_read() {
    for text in [
        "",
        "   ",
        "// nothing",
        "{",
        "[1,]",
        "{\"triggers\": [],}",
        "{triggers: []}",
        "{'triggers': []}",
        "{\"triggers\": [] \"x\": 1}",
        "{\"triggers\": []} {}",
        "{\"triggers\": [0x10]}",
        "{\"triggers\": [+1]}",
        "{\"triggers\": [.5]}",
        "{\"triggers\": [NaN]}",
        "{\"triggers\": [\"\\x41\"]}",
        "{\"triggers\": [\"\\ud800\"]}",
        "{\"triggers\":\u{a0}[]}",
        "{\"triggers\":\u{b}[]}",
        "{\"triggers\": [\"a\u{1}b\"]}",
        "/* {\"triggers\": []}",
        "{\"triggers\": []} // \u{202e}",
        "\u{feff}{\"triggers\": []}",
        "{\"triggers\": [\"\u{200b}\"]}",
        "null",
        "7",
        "{\"triggers\": {}}",
    ] {
        let found = faults(text);
        assert!(!found.is_empty(), "{text:?}");
    }
    loaded("{ \"triggers\": [] } // and a comment with ümläuts and \"quotes\"\r\n");
}

#[test]
fn a_byte_order_mark_is_named_and_the_rest_is_still_read() {
    let found = faults("\u{feff}{ \"triggers\": [], \"x\": 1 }");

    let kinds: Vec<_> = found.iter().map(|fault| (fault.kind, fault.column)).collect();
    assert_eq!(kinds, [(FaultKind::ByteOrderMark, 1), (FaultKind::UnknownKey, 20)]);
}

#[test]
fn bytes_that_are_not_utf_8_are_a_fault_with_its_place() {
    let parsed = parse_bytes("triggers.json", b"{\n \"trig\xffgers\": [] }");

    let [fault] = parsed.faults.as_slice() else {
        panic!("one fault")
    };
    assert_eq!((fault.kind, fault.line, fault.column), (FaultKind::Encoding, 2, 7));
}

#[test]
fn a_file_that_is_too_large_or_too_deep_is_not_read() {
    let large = format!("{{ \"triggers\": [] }}{}", " ".repeat(1024 * 1024));
    assert_eq!(faults(&large)[0].kind, FaultKind::TooLarge);
    assert_eq!(faults(&"[".repeat(100_000))[0].kind, FaultKind::TooDeep);
    assert_eq!(faults(&"{\"a\":".repeat(100_000))[0].kind, FaultKind::TooDeep);
}

#[test]
fn a_file_of_nothing_but_faults_is_cut() {
    let text = format!("{{ \"triggers\": [ {} {{}} ] }}", "{ \"x\": 1 }, ".repeat(20_000));
    let found = faults(&text);

    assert_eq!(found.len(), 201);
    assert_eq!(found[200].kind, FaultKind::TooMany);
}

#[test]
fn identity_comes_from_what_a_trigger_is_and_not_from_where_it_stands() {
    let run = |kind, flow: &str| -> Run { serde_json::from_value(json!({ "kind": kind, "flow": flow })).unwrap() };
    let comment = CommentOn {
        phrase: "@pi fix!it".to_owned(),
        target: None,
        repositories: None,
        except_repositories: None,
        forge: None,
    };
    let derive = |on: &CommentOn, kind| crate::identity::derive(&On::Comment(on.clone()), &run(kind, "fix"));
    assert_eq!(derive(&comment, RunKind::Forgejo), "comment-pi-fix-it-fix");
    assert_eq!(derive(&comment, RunKind::Gitea), "comment-pi-fix-it-fix-gitea");
    let narrow = CommentOn {
        target: Some(Target::PullRequest),
        repositories: Some(vec!["lab/*".to_owned(), "x/Y.z".to_owned()]),
        forge: Some("codeberg".to_owned()),
        ..comment.clone()
    };
    assert_eq!(
        derive(&narrow, RunKind::Forgejo),
        "comment-pi-fix-it-fix-codeberg-pull-request-lab-x-y-z"
    );
    let long = CommentOn {
        repositories: Some(vec![format!("lab/{}", "x".repeat(90))]),
        ..comment
    };
    let derived = derive(&long, RunKind::Forgejo);
    assert!(derived.len() == 64 && crate::flow_name_is_safe(&derived), "{derived}");
    assert_eq!(
        crate::identity::derive(&On::Manual, &run(RunKind::Forgejo, "nightly")),
        "manual-nightly"
    );
}

#[test]
fn two_triggers_of_one_identity_are_asked_for_an_id() {
    let found = faults(&format!("{{ \"triggers\": [\n{EXAMPLE},\n{EXAMPLE}\n] }}"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].line), (FaultKind::SameIdentity, 3));
    assert!(found[0].message.contains("line 2") && found[0].help.as_ref().is_some_and(|help| help.contains("`id`")));

    let with_id = EXAMPLE.replacen('{', r#"{ "id": "second","#, 1);
    let file = loaded(&format!("{{ \"triggers\": [\n{EXAMPLE},\n{with_id}\n] }}"));
    let ids: Vec<_> = file.triggers().iter().map(|trigger| trigger.id.as_str()).collect();
    assert_eq!(ids, ["comment-pi-triage", "second"]);
}

#[test]
fn remarks_say_what_an_exclusion_leaves_open_and_do_not_stop_the_file() {
    let remarks = |keys: &str| -> Vec<FaultKind> {
        let text = file_of(&format!(
            r#"{{ "on": {{ "type": "manual" }}, "run": {{ "kind": "forgejo", "flow": "x", {keys} }} }}"#
        ));
        let parsed = parse("triggers.json", &text);
        assert!(parsed.file.is_some());
        parsed.remarks.iter().map(|remark| remark.kind).collect()
    };
    assert_eq!(
        remarks(r#""excludeTools": ["bash"]"#),
        [FaultKind::PackagesUnsaid, FaultKind::PowershellStays]
    );
    assert_eq!(
        remarks(r#""excludeTools": ["bash", "powershell"], "packages": false"#),
        []
    );
    assert_eq!(remarks(r#""excludeTools": ["edit"], "packages": false"#), []);
    assert_eq!(remarks(r#""packages": false"#), []);
}

#[test]
fn what_is_printed_has_no_control_characters_of_the_file_in_it() {
    let text = "{ \"triggers\": [], \"\u{1b}[31m\u{9b}red\u{202e}\u{e0041}\": 1, \"\\u001b\\u202e\": 2 }";
    let parsed = parse("tri\u{1b}ggers.json", text);
    let shown = render(&parsed.faults, "tri\u{1b}ggers.json", text, false);

    assert!(
        !shown.chars().any(|c| c != '\n' && crate::source::is_invisible(c)),
        "{}",
        visible(&shown)
    );
    assert!(shown.contains("\\u{1b}[31m") && shown.contains("\\u{202e}"), "{shown}");
    let json = serde_json::to_string(&parsed.faults).unwrap();
    assert!(!json.chars().any(crate::source::is_invisible));
}

#[test]
fn narrowing_unites_exclusions_and_takes_the_smaller_of_each_cap() {
    let run = |value: serde_json::Value| -> Run {
        let mut base = json!({ "kind": "forgejo", "flow": "x" });
        base.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        serde_json::from_value(base).unwrap()
    };
    let now = run(json!({ "excludeTools": ["write", "bash"], "maxTurns": 9, "maxCostUsd": "2", "task": "new" }));
    let carried = run(json!({
        "excludeTools": ["bash", "edit"], "maxTurns": 3, "maxCostUsd": "5", "maxTokens": 7, "timeoutMinutes": 2,
        "packages": false, "outputs": { "comment": 0 }, "mode": "observe", "task": "old", "model": "carried",
    }));

    assert_eq!(
        serde_json::to_value(narrow(&now, &carried)).unwrap(),
        json!({
            "kind": "forgejo", "flow": "x", "task": "new", "excludeTools": ["write", "bash", "edit"], "packages": false,
            "maxTurns": 3, "maxCostUsd": "2", "maxTokens": 7, "timeoutMinutes": 2, "outputs": { "comment": 0 },
            "mode": "observe",
        })
    );
    assert_eq!(
        narrow(&carried, &now).exclude_tools,
        [Tool::Bash, Tool::Edit, Tool::Write]
    );
    let wide = run(json!({ "outputs": { "comment": 5 } }));
    assert_eq!(
        narrow(&wide, &run(json!({}))).outputs().comment,
        1,
        "an absent list is the default, not everything"
    );
    assert_eq!(narrow(&now, &now), now);
}

fn jsonish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"triggers\"",
        "\"on\"",
        "\"run\"",
        "\"type\"",
        "\"comment\"",
        "\"manual\"",
        "\"phrase\"",
        "\"@pi\"",
        "\"kind\"",
        "\"forgejo\"",
        "\"flow\"",
        "\"excludeTools\"",
        "\"Bash\"",
        "\"\\u0000\"",
        "1",
        "-0.5e9",
        "true",
        "null",
        "//",
        "/*",
        "*/",
        "\n",
        "\u{feff}",
        "\u{202e}",
        "\\",
        "\"",
        "ä",
    ]);
    prop::collection::vec(piece, 0..50).prop_map(|pieces| pieces.concat())
}

fn reads_and_prints(text: &str) {
    let parsed = parse("t", text);
    assert_eq!(parsed.file.is_some(), parsed.faults.is_empty());
    for fault in parsed.faults.iter().chain(&parsed.remarks) {
        assert!(text.get(fault.span.start..fault.span.end).is_some(), "{fault:?}");
    }
    let shown = render(&parsed.faults, "t", text, false);
    assert!(
        !shown.chars().any(|c| c != '\n' && crate::source::is_invisible(c)),
        "{}",
        visible(&shown)
    );
}

proptest! {
    #[test]
    fn no_bytes_make_the_loader_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let parsed = parse_bytes("t", &bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = render(&parsed.faults, "t", &text, true);
    }

    #[test]
    fn no_text_makes_the_loader_fail(text in any::<String>()) {
        reads_and_prints(&text);
    }

    #[test]
    fn no_heap_of_json_makes_the_loader_fail(text in jsonish()) {
        reads_and_prints(&text);
    }

    #[test]
    fn no_value_of_a_key_makes_the_loader_fail(key in "[a-zA-Z]{1,14}", value in jsonish()) {
        reads_and_prints(&file_of(&format!(
            "{{ \"on\": {{ \"type\": \"manual\" }}, \"run\": {{ \"kind\": \"forgejo\", \"flow\": \"x\", \"{key}\": {value} }} }}"
        )));
    }
}
