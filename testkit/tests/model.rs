//! The scripted model speaks both languages, streams and not, and goes wrong on demand.

use serde_json::{Value, json};
use std::time::Duration;
use testkit::model::{Fault, Plan, Script, ScriptedModel, Step, Usage};

/// One event of a stream: its name (Anthropic's have one) and its data.
type Event = (Option<String>, Value);

fn events(body: &str) -> Vec<Event> {
    let read = |block: &str| {
        let field = |name: &str| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::to_owned)
        };
        let data = field("data: ")?;
        Some((
            field("event: "),
            serde_json::from_str(&data).unwrap_or(Value::String(data)),
        ))
    };
    body.split("\n\n").filter_map(read).collect()
}

async fn ask(url: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    reqwest::Client::builder()
        .no_proxy()
        .build()?
        .post(url)
        .header("authorization", "Bearer the-key")
        .json(body)
        .send()
        .await
}

fn openai(messages: Value, stream: bool) -> Value {
    json!({
        "model": "scripted-1", "messages": messages, "stream": stream,
        "tools": [{ "type": "function", "function": { "name": "read", "parameters": {} } }],
    })
}

fn anthropic(messages: Value, stream: bool) -> Value {
    json!({
        "model": "scripted-1", "system": [{ "type": "text", "text": "be kind" }], "messages": messages, "stream": stream,
        "max_tokens": 100, "tools": [{ "name": "read", "input_schema": {} }],
    })
}

fn asked() -> Value {
    json!([{ "role": "user", "content": "what is in the file?" }])
}

fn reads_then_answers() -> Script {
    let long = "a".repeat(100);
    Script::steps([
        Step::says(&long).and_calls("read", json!({ "path": "ä€.md" })),
        Step::says("It says hello."),
    ])
}

#[tokio::test]
async fn chat_completions_come_as_chunks_that_add_up() {
    let model = ScriptedModel::start(reads_then_answers());
    let url = format!("{}/chat/completions", model.openai_url());

    let body = ask(&url, &openai(asked(), true))
        .await
        .expect("it answers")
        .text()
        .await
        .expect("a body");

    let events = events(&body);
    let delta = |event: &Event| event.1["choices"][0]["delta"].clone();
    let text: String = events
        .iter()
        .filter_map(|event| delta(event)["content"].as_str().map(str::to_owned))
        .collect();
    let call = |event: &Event| delta(event)["tool_calls"][0]["function"].clone();
    let arguments: String = events
        .iter()
        .filter_map(|event| call(event)["arguments"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "a".repeat(100));
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).expect("JSON"),
        json!({ "path": "ä€.md" })
    );
    assert_eq!(
        events
            .iter()
            .find_map(|event| call(event)["name"].as_str().map(str::to_owned))
            .as_deref(),
        Some("read")
    );
    let finish = events
        .iter()
        .find_map(|event| event.1["choices"][0]["finish_reason"].as_str().map(str::to_owned));
    assert_eq!(finish.as_deref(), Some("tool_calls"));
    let [.., (_, usage), (_, done)] = events.as_slice() else {
        panic!("too short: {body}")
    };
    assert_eq!((&usage["choices"], done), (&json!([]), &json!("[DONE]")));
    let expected = openai(asked(), true).to_string().len().div_ceil(4);
    assert_eq!(usage["usage"]["prompt_tokens"], expected, "four bytes are a token");
}

#[tokio::test]
async fn messages_come_as_named_events_that_add_up() {
    let model = ScriptedModel::start(reads_then_answers());
    let url = format!("{}/v1/messages?beta=true", model.anthropic_url());

    let body = ask(&url, &anthropic(asked(), true))
        .await
        .expect("it answers")
        .text()
        .await
        .expect("a body");

    let events = events(&body);
    let names: Vec<&str> = events.iter().filter_map(|(name, _)| name.as_deref()).collect();
    assert_eq!(
        (names.first(), names.last()),
        (Some(&"message_start"), Some(&"message_stop"))
    );
    assert!(events.iter().all(|(name, data)| data["type"] == json!(name)));
    let text: String = events
        .iter()
        .filter_map(|(_, data)| data["delta"]["text"].as_str())
        .collect();
    let arguments: String = events
        .iter()
        .filter_map(|(_, data)| data["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(text, "a".repeat(100));
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).expect("JSON"),
        json!({ "path": "ä€.md" })
    );
    let tool = events
        .iter()
        .find(|(_, data)| data["content_block"]["type"] == "tool_use")
        .expect("a call");
    assert_eq!(
        (&tool.1["index"], &tool.1["content_block"]["name"]),
        (&json!(1), &json!("read"))
    );
    let end = events
        .iter()
        .find(|(name, _)| name.as_deref() == Some("message_delta"))
        .expect("an end");
    assert_eq!(end.1["delta"]["stop_reason"], "tool_use");
    assert!(end.1["usage"]["output_tokens"].as_u64() > Some(20));
    assert!(events[0].1["message"]["usage"]["input_tokens"].as_u64() > Some(20));
}

#[tokio::test]
async fn the_step_is_counted_in_the_request_so_jobs_do_not_mix() {
    let model = ScriptedModel::start(reads_then_answers());
    let openai_url = format!("{}/chat/completions", model.openai_url());
    let later = json!([
        { "role": "user", "content": "what is in the file?" },
        { "role": "assistant", "content": "", "tool_calls": [
            { "id": "call_0_0", "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"x\"}" } } ] },
        { "role": "tool", "tool_call_id": "call_0_0", "content": "hello" },
    ]);
    let same = json!([
        { "role": "user", "content": "what is in the file?" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_0_0", "name": "read", "input": { "path": "x" } }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_0_0", "content": [{ "type": "text", "text": "hello" }] }] },
    ]);

    let second: Value = ask(&openai_url, &openai(later, false))
        .await
        .expect("2")
        .json()
        .await
        .expect("JSON");
    let first: Value = ask(&openai_url, &openai(asked(), false))
        .await
        .expect("1")
        .json()
        .await
        .expect("JSON");
    let url = format!("{}/v1/messages", model.anthropic_url());
    let other: Value = ask(&url, &anthropic(same, false))
        .await
        .expect("3")
        .json()
        .await
        .expect("JSON");

    assert_eq!(second["choices"][0]["message"]["content"], "It says hello.");
    assert_eq!(
        first["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        "read"
    );
    assert_eq!(other["content"][0]["text"], "It says hello.");
    assert_eq!(other["stop_reason"], "end_turn");
    let requests = model.requests();
    let results = |index: usize| {
        let conversation = requests[index].conversation.as_ref().expect("a conversation");
        conversation
            .calls()
            .map(|(call, result)| (call.name.clone(), result.map(str::to_owned)))
            .collect::<Vec<_>>()
    };
    assert_eq!(results(0), [("read".to_owned(), Some("hello".to_owned()))]);
    assert_eq!(results(0), results(2), "both languages are read alike");
    assert_eq!(requests[0].header("authorization"), Some("Bearer the-key"));
    assert_eq!(model.offered_tools().into_iter().collect::<Vec<_>>(), ["read"]);
}

#[tokio::test]
async fn a_step_goes_wrong_so_many_times_and_then_is_said() {
    let fails_twice = Script::steps([Step::says("at last").after(2, Fault::Status(529))]);
    let model = ScriptedModel::start(fails_twice);
    let url = format!("{}/chat/completions", model.openai_url());
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(
            ask(&url, &openai(asked(), true))
                .await
                .expect("it answers")
                .status()
                .as_u16(),
        );
    }
    let another = json!([{ "role": "user", "content": "another job" }]);
    statuses.push(
        ask(&url, &openai(another, true))
            .await
            .expect("it answers")
            .status()
            .as_u16(),
    );

    assert_eq!(statuses, [529, 529, 200, 529], "counted for each conversation");
    let noted: Vec<u16> = model.requests().iter().filter_map(|request| request.status).collect();
    assert_eq!(noted, statuses);
}

#[tokio::test]
async fn what_goes_wrong_looks_as_it_does_in_the_world() {
    let model = ScriptedModel::start(Script::says("x"));
    let url = format!("{}/chat/completions", model.openai_url());
    let say = async |step: Step| {
        model.set_plan(Script::steps([step]));
        ask(&url, &openai(asked(), true)).await
    };
    let long = Step::says(&"word ".repeat(200));

    let refused = say(Step::fails(Fault::Status(401))).await.expect("it answers");
    assert_eq!(refused.status(), 401);
    assert!(
        refused.text().await.expect("a body").contains("the-key"),
        "an endpoint that repeats the key"
    );
    let cut = say(long.clone().with(Fault::Cut))
        .await
        .expect("it begins")
        .text()
        .await;
    assert!(cut.is_err(), "the stream breaks: {cut:?}");
    assert!(say(Step::fails(Fault::Close)).await.is_err());
    let patience = Duration::from_millis(100);
    assert!(
        tokio::time::timeout(patience, say(Step::fails(Fault::Hang)))
            .await
            .is_err()
    );
    let silent = say(long.clone().with(Fault::FallSilent)).await.expect("it begins");
    assert!(tokio::time::timeout(patience, silent.text()).await.is_err());
    let echo = say(long.clone().with(Fault::EchoHeaders)).await.expect("it answers");
    for name in ["authorization", "x-echo-authorization"] {
        assert_eq!(echo.headers()[name], "Bearer the-key");
    }
    let words = say(long.clone().with(Fault::EchoInWords))
        .await
        .expect("it answers")
        .text()
        .await
        .expect("a body");
    assert!(words.contains("Bearer the-key"));
    let flood = say(Step::fails(Fault::Flood(1 << 20)))
        .await
        .expect("it answers")
        .text()
        .await
        .expect("a body");
    assert!(flood.len() > 1 << 20);
    let length = say(long.clone().cut_at_length())
        .await
        .expect("it answers")
        .text()
        .await
        .expect("a body");
    assert!(length.contains("\"finish_reason\":\"length\""));
    let unknown = ask(&format!("{}/files", model.openai_url()), &json!({}))
        .await
        .expect("it answers");
    assert_eq!(unknown.status(), 404);
    assert_eq!(
        model.requests().last().map(|request| request.path.clone()).as_deref(),
        Some("/v1/files"),
        "noted all the same"
    );
}

#[tokio::test]
async fn usage_can_be_absent_zero_or_as_told() {
    let model = ScriptedModel::start(Script::says("x"));
    let url = format!("{}/chat/completions", model.openai_url());
    let usage = async |usage: Usage| {
        model.set_plan(Script::steps([Step::says("hello").usage(usage)]));
        let body = ask(&url, &openai(asked(), true))
            .await
            .expect("it answers")
            .text()
            .await
            .expect("a body");
        events(&body)
            .into_iter()
            .find_map(|(_, data)| data.get("usage").cloned())
    };

    assert_eq!(usage(Usage::Absent).await, None);
    assert_eq!(usage(Usage::Zero).await.expect("usage")["total_tokens"], 0);
    assert_eq!(usage(Usage::Is(7, 5)).await.expect("usage")["total_tokens"], 12);
}

#[tokio::test]
async fn a_plan_may_choose_by_what_was_asked() {
    let plan = Plan::by(|conversation| {
        Step::says(if conversation.first_message().contains("weather") {
            "It rains."
        } else {
            "I do not know."
        })
    });
    let model = ScriptedModel::start(plan);
    let url = format!("{}/chat/completions", model.openai_url());
    let answer = async |text: &str| {
        let body = openai(json!([{ "role": "user", "content": text }]), false);
        let answer: Value = ask(&url, &body).await.expect("it answers").json().await.expect("JSON");
        answer["choices"][0]["message"]["content"].clone()
    };

    assert_eq!(answer("how is the weather?").await, "It rains.");
    assert_eq!(answer("and you?").await, "I do not know.");
}

/// Plays the demo's story to its end, as pi would: reads answer from `files`, other tools as `tool` says.
async fn play(tools: &[&str], tool: impl Fn(&str, &Value) -> String) -> (Vec<String>, String) {
    let model = ScriptedModel::demo();
    let url = format!("{}/chat/completions", model.openai_url());
    let offered: Vec<Value> = tools
        .iter()
        .map(|name| json!({ "type": "function", "function": { "name": name } }))
        .collect();
    let mut messages = vec![json!({ "role": "user", "content": "issue 1: A turn to the right goes left" })];
    let mut called = Vec::new();
    for _ in 0..10 {
        let body = json!({ "model": "m", "messages": messages, "tools": offered });
        let message = match ask(&url, &body).await {
            Ok(answer) => answer.json::<Value>().await.unwrap_or_default()["choices"][0]["message"].clone(),
            Err(error) => panic!("the model does not answer: {error}"),
        };
        messages.push(message.clone());
        let Some(calls) = message["tool_calls"].as_array() else {
            return (called, message["content"].as_str().unwrap_or_default().to_owned());
        };
        for call in calls {
            let name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().unwrap_or("")).unwrap_or_default();
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": tool(&name, &arguments) }));
            called.push(format!("{name} {arguments}"));
        }
    }
    panic!("the story does not end: {called:?}")
}

fn sample(path: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixture/widgets");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| format!("{error}"))
}

#[tokio::test]
async fn the_demo_reads_is_refused_a_shell_and_answers_from_what_it_read() {
    let (called, last) = play(&["read", "forge_comment"], |name, arguments| match name {
        "read" => sample(arguments["path"].as_str().unwrap_or_default()),
        "bash" => "Tool bash not found".to_owned(),
        _ => "posted later".to_owned(),
    })
    .await;

    assert_eq!(
        called[..3],
        [
            r#"read {"path":"README.md"}"#,
            r#"read {"path":"widgets/turn.py"}"#,
            r#"bash {"command":"python3 -m unittest"}"#
        ]
    );
    let [comment] = &called[3..] else {
        panic!("one comment: {called:?}")
    };
    for expected in [
        "forge_comment",
        "`README.md` and `widgets/turn.py`",
        "line 13",
        "turned_right",
        "Tool bash not found",
        "no shell",
    ] {
        assert!(comment.contains(expected), "{expected}: {comment}");
    }
    assert!(last.contains("answered under the issue"));
    assert!(
        sample("widgets/turn.py")
            .lines()
            .nth(12)
            .is_some_and(|line| line.contains("return turned_left")),
        "line 13 is right"
    );
}

#[tokio::test]
async fn the_demo_says_what_it_could_not_do() {
    let (called, last) = play(&["bash"], |_, _| "Ran 2 tests in 0.001s".to_owned()).await;
    assert_eq!(called.len(), 1);
    assert!(
        last.contains("nothing. This job has no tool to read files") && last.contains("Ran 2 tests"),
        "{last}"
    );

    let (called, last) = play(&["read"], |_, _| "ENOENT: no such file".to_owned()).await;
    assert_eq!(called.len(), 2, "no second file is named: {called:?}");
    assert!(last.contains("I have not seen the code"), "{last}");
}
