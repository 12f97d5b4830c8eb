//! The demo's story: a triage by a model that only looks like one.
//!
//! Everything that the answer claims is taken from the conversation: what `read` gave back, and what became of the
//! attempt to use `bash`. So a demo whose tools do not work ends with an answer that says so.

use super::conversation::{Call, Conversation};
use super::script::Step;
use serde_json::{Value, json};

const README: &str = "README.md";
const TESTS: &str = "python3 -m unittest";

/// What to say next: the first thing that has not been done yet.
pub(super) fn step(conversation: &Conversation) -> Step {
    let done = Done::of(conversation);
    let reads = conversation.offers("read");
    if reads && done.readme.is_none() {
        return Step::says("I begin with the README.").and_calls("read", json!({ "path": README }));
    }
    let source = done.readme.and_then(first_source);
    if let Some(source) = source.filter(|_| reads && done.source.is_none()) {
        let text = format!("The issue is about `{source}`, it seems. I read that next.");
        return Step::says(&text).and_calls("read", json!({ "path": source }));
    }
    if done.shell.is_none() {
        return Step::says("Now I run the tests.").and_calls("bash", json!({ "command": TESTS }));
    }
    let answer = answer(&done);
    if !conversation.offers("forge_comment") {
        return Step::says(&answer);
    }
    match done.comment {
        None => {}
        Some(result) if result.contains("refused") => {
            return Step::says(&format!(
                "My comment was not taken (\"{}\"). This is what it said:\n\n{answer}",
                first_line(result)
            ));
        }
        Some(_) => return Step::says("I have answered under the issue. Nothing was changed."),
    }
    Step::calls("forge_comment", json!({ "body": answer }))
}

/// What has been done so far, with what came back (empty when nothing has).
#[derive(Default)]
struct Done<'a> {
    readme: Option<&'a str>,
    source: Option<(&'a str, &'a str)>,
    shell: Option<&'a str>,
    comment: Option<&'a str>,
}

impl<'a> Done<'a> {
    fn of(conversation: &'a Conversation) -> Self {
        let mut done = Self::default();
        for (call, result) in conversation.calls() {
            let result = result.unwrap_or_default();
            match (call.name.as_str(), path(call)) {
                ("read", Some(README)) => done.readme = Some(result),
                ("read", Some(path)) => done.source = Some((path, result)),
                ("bash", _) => done.shell = Some(result),
                ("forge_comment", _) => done.comment = Some(result),
                _ => {}
            }
        }
        done
    }
}

fn path(call: &Call) -> Option<&str> {
    call.arguments.get("path").and_then(Value::as_str)
}

/// The first source file that a README names between backticks.
fn first_source(readme: &str) -> Option<&str> {
    let quoted = readme.split('`').skip(1).step_by(2);
    quoted.into_iter().find(|name| {
        let kind = name.rsplit_once('.').map(|(_, kind)| kind);
        !name.contains(char::is_whitespace)
            && name.contains('/')
            && matches!(kind, Some("py" | "rs" | "js" | "ts" | "go"))
    })
}

fn answer(done: &Done<'_>) -> String {
    let mut parts = vec![finding(done)];
    let read: Vec<String> = [done.readme.map(|_| README), done.source.map(|(path, _)| path)]
        .into_iter()
        .flatten()
        .map(|path| format!("`{path}`"))
        .collect();
    parts.push(if read.is_empty() {
        "**What I read:** nothing. This job has no tool to read files with.".to_owned()
    } else {
        format!("**What I read:** {}.", read.join(" and "))
    });
    parts.push(match done.shell {
        Some(result) if result.to_lowercase().contains("not found") => format!(
            "**What I could not check:** I tried to run the tests, but this job has no shell (the answer was \"{}\"). \
             So this comes from reading alone, and no file was changed.",
            first_line(result)
        ),
        Some(result) => format!("**What I ran:** `{TESTS}`, which said: \"{}\".", first_line(result)),
        None => String::new(),
    });
    parts.join("\n\n")
}

/// What is wrong, as far as the file that was read shows it: a function that turns right by turning left.
fn finding(done: &Done<'_>) -> String {
    let Some((path, text)) = done.source else {
        return "I cannot say what is wrong here: I have not seen the code.".to_owned();
    };
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().enumerate().find_map(|(at, line)| {
        let calls_left = line.contains("return turned_left(");
        let function = lines[..at]
            .iter()
            .rev()
            .find_map(|line| line.split("def ").nth(1)?.split('(').next())?;
        (calls_left && function.contains("right")).then_some((at + 1, function, line.trim()))
    });
    match found {
        Some((line, function, code)) => format!(
            "**A turn to the right is carried out as a turn to the left.** The report is right.\n\n\
             In `{path}`, line {line}, `{function}` says `{code}`: it counts the heading down like a turn to the left, \
             so `right 90` from north gives 270. The README calls headings clockwise, so it must count up.\n\n\
             **Next step:** `return (heading + degrees) % FULL_CIRCLE` in `{function}`, and a test of `right 90`. \
             The report says that the tests pass, so none of them seems to cover a quarter turn to the right."
        ),
        None => format!(
            "I read `{path}` (it begins with \"{}\") and see nothing there that explains it.",
            first_line(text)
        ),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    line.chars().take(120).collect()
}
