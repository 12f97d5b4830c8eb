//! Every set of exclusions, with the real pi: what is excluded is not in the session, cannot be called, was never offered.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use contract::{BuiltinTools, Tool, expected_active, expected_registered};
use futures_util::StreamExt;
use queue::{Outcome, Reason};
use serde_json::{Value, json};
use stories::IMAGE;
use stories::hand::{Hand, docker, names};
use testkit::model::{Conversation, Plan, Step};
use testkit::need;

/// How many jobs run at once: pi's start takes most of a job's time and one processor.
const AT_ONCE: usize = 4;

/// The sets, by the bits of their number.
fn set(bits: u8) -> Vec<Tool> {
    let named = Tool::ALL.into_iter().zip(0..8).filter(|(_, at)| bits & (1 << at) != 0);
    named.map(|(tool, _)| tool).collect()
}

/// The tools that the message wants to be called: `call: a,b.`
fn asked(conversation: &Conversation) -> Vec<String> {
    let (_, rest) = conversation
        .first_message()
        .split_once("call: ")
        .expect("the message says what to call");
    let list = rest.split('.').next().expect("there is a first part");
    list.split(',').map(str::to_owned).collect()
}

/// Calls all that it was told to at once, and the proposing tool; then it ends.
fn caller() -> Plan {
    Plan::by(|conversation| {
        if conversation.assistant_messages() > 0 {
            return Step::says("That is all.");
        }
        let tools = asked(conversation);
        let begin = Step::says("I try them.");
        let step = tools.iter().fold(begin, |step, tool| {
            step.and_calls(tool, json!({ "command": "touch /workspace/ran", "path": "/workspace/ran", "pattern": "x", "content": "x", "edits": [] }))
        });
        step.and_calls(
            "forge_comment",
            json!({ "body": format!("without {}", tools.join(" ")) }),
        )
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn for_all_255_sets_the_excluded_tools_are_absent_refused_and_never_offered() {
    let Some(hand) = Hand::new(caller()) else { return };
    let hand = &hand;
    let jobs = (1..=255_u8).map(|bits| async move {
        let excluded = set(bits);
        let list = names(&excluded);
        let prompt = format!("call: {}.", list.join(","));
        let run = hand.run(json!({ "prompt": prompt, "excludeTools": list })).await;
        (excluded, run)
    });
    let mut jobs = futures_util::stream::iter(jobs).buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some((excluded, run)) = jobs.next().await {
        let list = names(&excluded);
        let outcome = (run.report.outcome, run.report.reason);
        assert_eq!(
            outcome,
            (Outcome::Completed, Reason::Done),
            "{list:?}: {:#?}",
            run.lines
        );
        // Also with all eight excluded: the proposing tool is no built-in one.
        assert_eq!(run.report.answers, [format!("without {}", list.join(" "))], "{list:?}");

        let proofs = run.events("tools_excluded");
        let phases: Vec<&Value> = proofs.iter().map(|line| &line["phase"]).collect();
        assert_eq!(phases, ["start", "end"], "{list:?}");
        for proof in proofs {
            assert_eq!(proof["excluded"], json!(list));
            let sorted = |key: &str| -> Vec<String> {
                let mut names: Vec<String> = serde_json::from_value(proof[key].clone()).expect("a list");
                names.sort();
                names
            };
            assert_eq!(sorted("registered"), expected_registered(&excluded, ["forge_comment"]));
            assert_eq!(sorted("active"), expected_active(&excluded, ["forge_comment"]));
        }
        done += 1;
        if done % 32 == 0 {
            eprintln!("{done} of 255 sets are done");
        }
    }
    drop(jobs);
    assert_eq!(done, 255);
    assert_eq!(hand.leftovers(), [""; 0], "no folder of a job is left");

    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for request in hand.model.requests() {
        let conversation = request.conversation.as_ref().expect("pi sends conversations only");
        let excluded = asked(conversation);
        let own: Vec<Tool> = excluded.iter().filter_map(|name| Tool::from_name(name)).collect();
        let mut offered = request.tools().to_vec();
        offered.sort();
        assert_eq!(offered, expected_active(&own, ["forge_comment"]), "{excluded:?}");
        for tool in Tool::ALL {
            let shown = conversation
                .system
                .contains(&format!("- `{}`: {}", tool.name(), tool.snippet()));
            let wanted = tool.default_active() && !own.contains(&tool);
            assert_eq!(
                shown, wanted,
                "the prompt's list is the request's: {tool} with {excluded:?} excluded"
            );
        }
        if conversation.assistant_messages() == 0 {
            continue;
        }
        for (call, answer) in conversation.calls().filter(|(call, _)| call.name != "forge_comment") {
            let answer = answer.expect("each call is answered");
            assert!(answer.contains("not found"), "{}: {answer}", call.name);
        }
        seen.insert(excluded);
    }
    assert_eq!(seen.len(), 255, "each set's calls came back to the model");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_that_a_trigger_can_name_are_those_of_the_pi_in_the_image() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let ran = docker(
        &[
            "run",
            "--rm",
            "--network",
            "none",
            "--read-only",
            "--tmpfs",
            "/tmp:mode=1777",
            "--tmpfs",
            "/run/pi-agent:uid=10001,gid=10001,mode=0700",
            "--tmpfs",
            "/session:mode=1777",
            "--tmpfs",
            "/workspace:mode=1777",
            "--tmpfs",
            "/home/job:uid=10001,gid=10001,mode=0700",
            IMAGE,
            "builtin-tools",
        ],
        b"",
    );
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: BuiltinTools = serde_json::from_slice(&ran.stdout).expect("the runner prints its list");

    assert_eq!(found.pi, contract::PI_VERSION);
    let mut found: Vec<(String, bool, String)> = found
        .tools
        .into_iter()
        .map(|tool| (tool.name, tool.active, tool.snippet))
        .collect();
    let mut ours = Tool::ALL.map(|tool| (tool.name().to_owned(), tool.default_active(), tool.snippet().to_owned()));
    found.sort();
    ours.sort();
    // pi tells the snippets of active tools alone.
    let told = |tools: &[(String, bool, String)]| -> Vec<(String, bool, String)> {
        let keep = |(name, active, snippet): &(String, bool, String)| {
            (
                name.clone(),
                *active,
                if *active { snippet.clone() } else { String::new() },
            )
        };
        tools.iter().map(keep).collect()
    };
    assert_eq!(told(&found), told(&ours));
}
