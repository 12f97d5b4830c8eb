//! Model traffic: what goes through, what is refused, and what the provider may do to us.

use std::time::Duration;

use crate::world::{Act, KEY, World, anthropic_text, chunked, head, json_answer, openai_text};
use contract::{ApiShape, StopReason};
use gateway::{DoorEvent, Settled};
use serde_json::{Value, json};

const OPENAI: ApiShape = ApiShape::OpenaiCompletions;
const ANTHROPIC: ApiShape = ApiShape::AnthropicMessages;

fn good(api: ApiShape) -> Vec<Act> {
    match api {
        ApiShape::OpenaiCompletions => openai_text(
            "hello there",
            Some(json!({ "prompt_tokens": 1_000, "completion_tokens": 50 })),
        ),
        ApiShape::AnthropicMessages => anthropic_text(
            "hello there",
            json!({ "input_tokens": 1_000, "output_tokens": 1 }),
            json!({ "output_tokens": 50 }),
        ),
    }
}

fn function(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": "d", "parameters": { "type": "object" } } })
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "d", "input_schema": { "type": "object" } })
}

/// Asks, and expects 403 with this word, an event of that word, and nothing at the provider.
async fn refused(world: &World, reply: crate::world::Reply, word: &str) {
    assert_eq!(reply.status, 403, "{word}: {reply:?}");
    assert!(
        reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .ends_with(&format!(": {word}")),
        "{word}: {}",
        reply.body
    );
    let is_it = |event: &DoorEvent| matches!(event, DoorEvent::RequestRefused { why, .. } if why == word);
    world.books.wait_for(word, is_it).await;
    assert_eq!(world.provider.seen().len(), 0, "{word}");
    assert_eq!(world.books.reserved().len(), 0, "{word}");
}

#[tokio::test]
async fn a_good_request_goes_through_rewritten_with_our_headers_alone_and_is_settled() {
    for api in [OPENAI, ANTHROPIC] {
        let (world, _control) = World::new(api, move |_| good(api)).await;
        let body = format!(" {} ", world.good());
        let reply = world.ask_text(&body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.body.contains("hello there"));
        assert!(reply.head.contains("content-type: text/event-stream"));

        let seen = world.provider.seen().remove(0);
        let head = seen.head.to_ascii_lowercase();
        let (line, key) = match api {
            ApiShape::OpenaiCompletions => (
                "post /v1/chat/completions http/1.1",
                format!("authorization: bearer {KEY}"),
            ),
            ApiShape::AnthropicMessages => ("post /v1/messages http/1.1", format!("x-api-key: {KEY}")),
        };
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains(&key.to_ascii_lowercase()), "{head}");
        for foreign in ["held-by-the-gateway", "x-stainless", "pi/1.6.0", "gzip"] {
            assert!(!head.contains(foreign), "{foreign} in {head}");
        }
        assert!(
            !seen.body.starts_with(' '),
            "what is forwarded is the parse, not the bytes"
        );

        let (end, settlement) = world.books.end().await;
        assert_eq!((end.as_str(), settlement.how), ("complete", Settled::Usage));
        assert_eq!(
            (settlement.usage.input, settlement.usage.output, settlement.cost.0),
            (1_000, 50, 3_000 + 750)
        );
        let words = world.books.events();
        let sent = words
            .iter()
            .position(|event| matches!(event, DoorEvent::RequestSent { .. }));
        let ended = words
            .iter()
            .position(|event| matches!(event, DoorEvent::RequestEnded { .. }));
        assert!(sent < ended, "{words:?}");
    }
}

#[tokio::test]
async fn a_stream_arrives_piece_by_piece_while_the_provider_is_still_speaking() {
    let half = || {
        vec![
            Act::Say(head("200 OK", "text/event-stream", "")),
            Act::Say(chunked("data: {\"choices\":[]}\n\n")),
            Act::Hang,
        ]
    };
    let (world, _control) = World::new(OPENAI, move |_| half()).await;
    let reply = world.ask(&world.good()).await;
    assert!(reply.body.starts_with("data: {\"choices\":[]}\n\n"), "{reply:?}");
    assert!(reply.body.contains("fell silent"), "{reply:?}");
    let (end, settlement) = world.books.end().await;
    assert_eq!((end.as_str(), settlement.how), ("silent", Settled::WorstCase));
}

#[tokio::test]
async fn the_output_limit_is_written_in_when_it_is_absent_or_larger_than_allowed() {
    for (asked, sent) in [(None, 8_192), (Some(1_000_000), 8_192), (Some(100), 100)] {
        let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
        let mut body = world.good();
        body.as_object_mut().unwrap().remove("max_completion_tokens");
        body.as_object_mut().unwrap().remove("stream_options");
        if let Some(asked) = asked {
            body["max_tokens"] = asked.into();
        }
        assert_eq!(world.ask(&body).await.status, 200);
        let seen = world.provider.seen().remove(0).json();
        assert_eq!(
            seen["max_completion_tokens"], sent,
            "in the field that the endpoint knows"
        );
        assert_eq!(seen.get("max_tokens"), None);
        assert_eq!(seen["stream_options"], json!({ "include_usage": true }));
    }
    let (world, _control) = World::new(ANTHROPIC, |_| good(ANTHROPIC)).await;
    assert_eq!(
        world.ask(&world.with_field("max_tokens", json!(64_000))).await.status,
        200
    );
    assert_eq!(world.provider.seen().remove(0).json()["max_tokens"], 8_192);
}

#[tokio::test]
async fn offering_an_excluded_tool_in_any_shape_ends_the_job_and_shuts_the_door() {
    let openai = [
        function("bash"),
        json!({ "type": "custom", "custom": { "name": "edit" } }),
        json!({ "type": "bash", "name": "bash" }),
        json!({ "name": "powershell" }),
    ];
    let anthropic = [
        tool("write"),
        json!({ "type": "bash_20250124", "name": "bash" }),
        json!({ "name": "edit" }),
    ];
    let shapes = openai
        .into_iter()
        .map(|tool| (OPENAI, tool))
        .chain(anthropic.into_iter().map(|tool| (ANTHROPIC, tool)));
    for (api, offered) in shapes {
        let (world, mut control) = World::new(api, move |_| good(api)).await;
        let reply = world.ask(&world.with_field("tools", json!([offered]))).await;
        assert_eq!(reply.status, 403, "{offered}");
        let breach = world
            .books
            .wait_for("breach", |event| matches!(event, DoorEvent::Breach { .. }))
            .await;
        assert_eq!(breach.stops_the_job(), Some(StopReason::ExcludeToolsBreached));
        assert_eq!(
            control.hear().await.as_deref(),
            Some(r#"{"type":"stop","reason":"exclude-tools-breached"}"#)
        );
        assert_eq!(world.ask(&world.good()).await.status, 403, "the door stays shut");
        assert_eq!(world.provider.seen().len(), 0);
    }
}

#[tokio::test]
async fn a_tool_that_is_not_a_client_function_of_the_jobs_set_is_refused() {
    let web = json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 5 });
    let served_read = json!({ "type": "text_editor_20250728", "name": "read" });
    let cases = [
        (OPENAI, function("Bash"), "tool"),
        (OPENAI, function("bash "), "tool"),
        (OPENAI, function("shell"), "tool"),
        (OPENAI, function("grep"), "tool"),
        (OPENAI, json!({ "type": "web_search_preview" }), "tool-kind"),
        (
            OPENAI,
            json!({ "type": "custom", "custom": { "name": "read" } }),
            "tool-kind",
        ),
        (
            OPENAI,
            json!({ "type": "mcp", "server_url": "https://example.org" }),
            "tool-kind",
        ),
        (ANTHROPIC, tool("BASH"), "tool"),
        (ANTHROPIC, web, "tool"),
        (ANTHROPIC, served_read, "tool-kind"),
        (
            ANTHROPIC,
            json!({ "type": "mcp_toolset", "mcp_server_name": "x" }),
            "tool-kind",
        ),
        (
            ANTHROPIC,
            json!({ "name": "read", "input_schema": { "type": "object" }, "defer_loading": true }),
            "field-unknown",
        ),
        (
            ANTHROPIC,
            json!({ "name": "read", "input_schema": { "$ref": "https://example.org/schema" } }),
            "remote",
        ),
    ];
    for (api, offered, word) in cases {
        let (world, _control) = World::new(api, move |_| good(api)).await;
        let reply = world.ask(&world.with_field("tools", json!([offered]))).await;
        refused(&world, reply, word).await;
    }
    let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    let reply = world
        .ask(&world.with_field("tools", json!([function("read"), function("read")])))
        .await;
    refused(&world, reply, "tool-twice").await;
}

#[tokio::test]
async fn what_would_reach_further_than_one_answer_of_the_jobs_model_is_refused() {
    let image =
        |url: &str| json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] }]);
    let source = |source: Value| json!([{ "role": "user", "content": [{ "type": "image", "source": source }] }]);
    let block = |kind: &str| json!([{ "role": "user", "content": [{ "type": kind, "text": "x" }] }]);
    let cases = [
        (OPENAI, "model", json!("gpt-bigger"), "model"),
        (OPENAI, "models", json!(["fake-1", "other"]), "field-unknown"),
        (OPENAI, "functions", json!([{ "name": "bash" }]), "field-unknown"),
        (OPENAI, "plugins", json!([{ "id": "web" }]), "field-unknown"),
        (OPENAI, "n", json!(100), "field-unknown"),
        (OPENAI, "best_of", json!(2), "field-unknown"),
        (OPENAI, "service_tier", json!("priority"), "field-unknown"),
        (OPENAI, "store", json!(true), "stored-state"),
        (OPENAI, "previous_response_id", json!("r1"), "field-unknown"),
        (OPENAI, "metadata", json!({ "a": "b" }), "field-unknown"),
        (OPENAI, "web_search_options", json!({}), "field-unknown"),
        (OPENAI, "provider", json!({ "order": ["x"] }), "field-unknown"),
        (OPENAI, "route", json!("fallback"), "field-unknown"),
        (OPENAI, "prediction", json!({}), "field-unknown"),
        (OPENAI, "audio", json!({}), "field-unknown"),
        (OPENAI, "prompt_cache_key", json!("k"), "field-unknown"),
        (OPENAI, "user", json!("u"), "field-unknown"),
        (OPENAI, "max_tokens", json!(-1), "value"),
        (OPENAI, "messages", image("https://example.org/track.png"), "remote"),
        (OPENAI, "messages", image("http://169.254.169.254/"), "remote"),
        (OPENAI, "messages", image("data:text/html;base64,AAAA"), "value"),
        (
            OPENAI,
            "messages",
            json!([{ "role": "user", "content": [{ "type": "file", "file": { "file_id": "f" } }] }]),
            "value",
        ),
        (
            OPENAI,
            "messages",
            json!([{ "role": "system", "content": "x", "tools": [function("bash")] }]),
            "field-unknown",
        ),
        (
            OPENAI,
            "tool_choice",
            json!({ "type": "function", "function": { "name": "shell" } }),
            "tool",
        ),
        (ANTHROPIC, "model", json!("claude-other"), "model"),
        (ANTHROPIC, "service_tier", json!("auto"), "field-unknown"),
        (ANTHROPIC, "container", json!("c1"), "field-unknown"),
        (
            ANTHROPIC,
            "mcp_servers",
            json!([{ "type": "url", "url": "https://example.org" }]),
            "field-unknown",
        ),
        (ANTHROPIC, "thread", json!({ "type": "create" }), "field-unknown"),
        (ANTHROPIC, "fallbacks", json!([{ "model": "other" }]), "field-unknown"),
        (ANTHROPIC, "context_management", json!({}), "field-unknown"),
        (ANTHROPIC, "metadata", json!({ "user_id": "u" }), "field-unknown"),
        (
            ANTHROPIC,
            "messages",
            source(json!({ "type": "url", "url": "https://example.org/a.png" })),
            "remote",
        ),
        (
            ANTHROPIC,
            "messages",
            source(json!({ "type": "file", "file_id": "f1" })),
            "remote",
        ),
        (ANTHROPIC, "messages", block("document"), "value"),
        (ANTHROPIC, "messages", block("tool_addition"), "value"),
        (
            ANTHROPIC,
            "system",
            json!([{ "type": "text", "text": "x", "cache_control": { "type": "ephemeral", "ttl": "1h" } }]),
            "value",
        ),
    ];
    for (api, field, value, word) in cases {
        let (world, _control) = World::new(api, move |_| good(api)).await;
        let reply = world.ask(&world.with_field(field, value.clone())).await;
        eprintln!("{field} = {value}");
        refused(&world, reply, word).await;
    }
}

#[tokio::test]
async fn every_other_path_method_query_and_header_is_refused() {
    for (path, word) in [
        ("/v1/chat/../chat/completions", "path"),
        ("/v1/chat/completions/", "path"),
        ("//v1/chat/completions", "path"),
        ("/v1/chat/%63ompletions", "path"),
        ("/v1/chat%2fcompletions", "path"),
        ("/v1/messages", "path"),
        ("/v1/responses", "path"),
        ("/v1/batches", "path"),
        ("/v1/files", "path"),
        ("/v1/models", "path"),
        ("/v1/realtime", "path"),
        ("http://example.org/v1/chat/completions", "path"),
        ("/v1/chat/completions?beta=true", "query"),
        ("/v1/chat/completions?", "query"),
    ] {
        let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
        let reply = world.send_raw(&world.post(path, &[], &world.good().to_string())).await;
        eprintln!("{path}");
        refused(&world, reply, word).await;
    }
    for (name, value, word) in [
        ("content-encoding", "gzip", "content-encoding"),
        ("content-type", "text/plain", "content-type"),
        ("content-type", "multipart/form-data; boundary=x", "content-type"),
        ("openai-organization", "org-1", "header"),
        ("x-forwarded-for", "127.0.0.1", "header"),
        ("cookie", "a=b", "header"),
        ("expect", "100-continue", "header"),
        ("x-http-method-override", "DELETE", "header"),
        ("upgrade", "websocket", "upgrade"),
        ("upgrade", "h2c", "upgrade"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", "upgrade"),
        ("anthropic-beta", "interleaved-thinking-2025-05-14", "beta"),
    ] {
        let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
        let reply = world
            .send_raw(&world.post(world.path(), &[(name, value)], &world.good().to_string()))
            .await;
        eprintln!("{name}: {value}");
        refused(&world, reply, word).await;
    }
    for method in ["GET", "PUT", "CONNECT", "OPTIONS"] {
        let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
        let text = String::from_utf8(world.post(world.path(), &[], &world.good().to_string())).unwrap();
        let reply = world.send_raw(text.replacen("POST", method, 1).as_bytes()).await;
        assert!(reply.status == 403 || reply.status == 400, "{method}: {reply:?}");
        assert_eq!(world.provider.seen().len(), 0);
    }
}

#[tokio::test]
async fn anthropics_features_are_a_list_and_its_query_is_passed_on() {
    let (world, _control) = World::new(ANTHROPIC, |_| good(ANTHROPIC)).await;
    let ask = |betas| {
        world.post(
            "/v1/messages?beta=true",
            &[("anthropic-beta", betas)],
            &world.good().to_string(),
        )
    };
    let reply = world
        .send_raw(&ask(
            "interleaved-thinking-2025-05-14, fine-grained-tool-streaming-2025-05-14",
        ))
        .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let head = world.provider.seen().remove(0).head;
    assert!(head.starts_with("POST /v1/messages?beta=true HTTP/1.1"), "{head}");
    assert!(
        head.contains("anthropic-beta: interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14"),
        "{head}"
    );

    for beta in [
        "message-threads-2026-08-12",
        "server-side-fallback-2026-07-01",
        "mcp-client-2025-11-20",
        "files-api-2025-04-14",
        "",
    ] {
        assert_eq!(world.send_raw(&ask(beta)).await.status, 403, "{beta}");
    }
    assert_eq!(world.provider.seen().len(), 1);
}

#[tokio::test]
async fn bodies_are_strict_json_within_their_size() {
    let model = r#""model":"fake-1","messages":[]"#;
    for (body, word) in [
        (String::new(), "body-not-json"),
        ("[]".into(), "value"),
        (format!("{{{model},}}"), "body-not-json"),
        (format!("{{{model},\"model\":\"other\"}}"), "duplicate-key"),
        (format!("{{{model},\"m\\u006fdel\":\"other\"}}"), "duplicate-key"),
        (
            format!(
                "{{{model},\"tools\":[{{\"type\":\"function\",\"function\":{{\"name\":\"read\",\"name\":\"bash\"}}}}]}}"
            ),
            "duplicate-key",
        ),
        (
            format!("{{{model},\"x\":{}{}}}", "[".repeat(70), "]".repeat(70)),
            "body-too-deep",
        ),
        (format!("{{{model}}}{{}}"), "body-not-json"),
        ("{\"messages\":[]}".into(), "model"),
        ("{\"model\":\"fake-1\"}".into(), "value"),
        (
            format!("{{{model},\"temperature\":\"{}\"}}", "x".repeat(70_000)),
            "body-too-large",
        ),
    ] {
        let (world, _control) = World::with(OPENAI, |_| good(OPENAI), |spec| spec.caps.body_bytes = 65_536).await;
        let reply = world.ask_text(&body).await;
        refused(&world, reply, word).await;
    }
}

#[tokio::test]
async fn a_name_that_the_job_chose_is_cleaned_before_it_is_shown() {
    let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    world
        .ask(&world.with_field("\u{1b}[2J<script>\u{202e}", json!(1)))
        .await;
    let event = world
        .books
        .wait_for("refusal", |event| matches!(event, DoorEvent::RequestRefused { .. }))
        .await;
    assert_eq!(
        event.to_string(),
        "a model request was refused: field-unknown (body.?[2J?script??)"
    );
}

#[tokio::test]
async fn a_refused_request_leaves_the_door_open_for_the_next_good_one() {
    let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    assert_eq!(world.ask(&world.with_field("n", json!(2))).await.status, 403);
    assert_eq!(world.ask(&world.good()).await.status, 200);
}

#[tokio::test]
async fn a_model_that_asked_for_an_excluded_tool_may_be_told_so_and_go_on() {
    let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    let call = json!({ "id": "t1", "type": "function", "function": { "name": "bash", "arguments": "{}" } });
    let messages = json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "t1", "content": "Tool bash not found" },
    ]);
    assert_eq!(world.ask(&world.with_field("messages", messages)).await.status, 200);
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_passed_on_whole_and_its_usage_counts() {
    let answers = [
        (
            OPENAI,
            json!({ "choices": [{ "message": { "content": "hi" } }], "usage": { "prompt_tokens": 900, "completion_tokens": 9, "prompt_tokens_details": { "cached_tokens": 300 } } }),
        ),
        (
            ANTHROPIC,
            json!({ "content": [{ "type": "text", "text": "hi" }], "usage": { "input_tokens": 600, "output_tokens": 9, "cache_read_input_tokens": 300 } }),
        ),
    ];
    for (api, answer) in answers {
        let text = answer.to_string();
        let (world, _control) = World::new(api, move |_| json_answer("200 OK", &text)).await;
        let mut body = world.good();
        body["stream"] = false.into();
        if api == OPENAI {
            body.as_object_mut().unwrap().remove("stream_options");
        }
        assert_eq!(world.ask(&body).await.json(), answer);
        let (_, settlement) = world.books.end().await;
        let usage = settlement.usage;
        assert_eq!((usage.input, usage.cache_read, usage.output), (600, 300, 9));
        assert_eq!(settlement.cost.0, 1_800 + 90 + 135);
    }
}

#[tokio::test]
async fn an_error_of_the_provider_becomes_its_status_and_class_and_none_of_its_words() {
    let echo = format!("the key {KEY} is wrong");
    for (status, shown, code, how) in [
        ("400 Bad Request", 400, "invalid_request", Settled::Nothing),
        ("401 Unauthorized", 401, "unauthorized", Settled::Nothing),
        ("404 Not Found", 404, "not_found", Settled::Nothing),
        ("413 Too Large", 400, "context_length_exceeded", Settled::Nothing),
        ("429 Too Many Requests", 429, "rate_limit", Settled::Nothing),
        ("500 Oops", 500, "server_error", Settled::WorstCase),
        ("502 Bad Gateway", 502, "server_error", Settled::WorstCase),
        ("503 Unavailable", 503, "overloaded", Settled::Nothing),
        ("504 Time-out", 504, "server_error", Settled::WorstCase),
        ("529 Overloaded", 529, "overloaded", Settled::Nothing),
        ("302 Found", 502, "redirect", Settled::WorstCase),
        ("204 No Content", 502, "unusable", Settled::WorstCase),
    ] {
        let body = json!({ "error": { "message": echo, "type": "x" } }).to_string();
        let (world, _control) = World::new(OPENAI, move |_| json_answer(status, &body)).await;
        let reply = world.ask(&world.good()).await;
        assert_eq!(reply.status, shown, "{status}");
        assert_eq!(reply.json()["error"]["code"], code, "{status}");
        assert!(
            !reply.body.contains("is wrong") && !reply.body.contains(KEY),
            "{}",
            reply.body
        );
        assert_eq!(world.books.end().await.1.how, how, "{status}");
    }
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": echo } }).to_string();
    let (world, _control) = World::new(ANTHROPIC, move |_| json_answer("529 Overloaded", &overloaded)).await;
    let said =
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "the provider is overloaded" } });
    assert_eq!(world.ask(&world.good()).await.json(), said);
}

#[tokio::test]
async fn what_pi_acts_upon_is_told_in_words_that_it_knows() {
    for (words, told) in [
        (
            "This model's maximum context length is 8192 tokens",
            "prompt is too long",
        ),
        ("Too many strict tools (25 > 20)", "Too many strict tools ("),
        (
            "You exceeded your current quota: insufficient_quota",
            "insufficient_quota",
        ),
    ] {
        let body = json!({ "error": { "message": words } }).to_string();
        let (world, _control) = World::new(OPENAI, move |_| json_answer("400 Bad Request", &body)).await;
        let reply = world.ask(&world.good()).await;
        assert!(reply.body.contains(told), "{}", reply.body);
    }
}

#[tokio::test]
async fn an_endpoint_that_echoes_every_header_does_not_get_the_key_to_the_job() {
    // In its own headers, in an error, in the body, in pieces, in disguise.
    let more = format!("x-key: {KEY}\r\nset-cookie: key={KEY}\r\nretry-after: {KEY}\r\n");
    let text = |text: &str| {
        chunked(&format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        ))
    };
    let (first, second) = KEY.split_at(9);
    let reversed: String = KEY.chars().rev().collect();
    let start = Act::Say(head("200 OK", "text/event-stream", &more));
    let shapes: Vec<Vec<Act>> = vec![
        vec![start.clone(), Act::Say(text(KEY))],
        vec![
            start.clone(),
            Act::Say(chunked(&format!("data: {first}"))),
            Act::Say(chunked(&format!("{second}\n\n"))),
        ],
        vec![start.clone(), Act::Say(text(&reversed))],
        vec![Act::Say(format!(
            "HTTP/1.1 401 No\r\n{more}content-length: {}\r\n\r\n{KEY}",
            KEY.len()
        ))],
        vec![Act::Say(format!(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/{KEY}\r\n{more}content-length: 0\r\n\r\n"
        ))],
    ];
    for acts in shapes {
        let (world, _control) = World::new(OPENAI, move |_| acts.clone()).await;
        let reply = world.ask(&world.good()).await;
        let all = format!("{}{}", reply.head, reply.body);
        for secret in [
            KEY,
            second,
            reversed.as_str(),
            &KEY.to_ascii_lowercase(),
            "set-cookie",
            "x-key",
            "location",
        ] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        let (end, _) = world.books.end().await;
        assert!(
            ["key-echoed", "provider-unauthorized", "redirect"].contains(&end.as_str()),
            "{end}"
        );
        assert!(!format!("{:?}", world.books.events()).contains(second));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    let target = elsewhere.provider.origin();
    let acts = move |_: &crate::world::Request| {
        vec![Act::Say(format!(
            "HTTP/1.1 307 Temporary\r\nlocation: {target}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n"
        ))]
    };
    let (world, _control) = World::new(OPENAI, acts).await;
    assert_eq!(world.ask(&world.good()).await.status, 502);
    assert_eq!(elsewhere.provider.seen().len(), 0);
}

#[tokio::test]
async fn an_answer_without_end_is_cut_at_its_cap() {
    let piece = chunked(&format!("data: {}\n\n", "x".repeat(60_000)));
    let endless = move |_: &crate::world::Request| {
        let start = Act::Say(head("200 OK", "text/event-stream", ""));
        std::iter::once(start)
            .chain(std::iter::repeat_n(Act::Say(piece.clone()), 100))
            .collect()
    };
    let (world, _control) = World::with(OPENAI, endless, |spec| spec.caps.response_bytes = 300_000).await;
    let reply = world.ask(&world.good()).await;
    assert!(reply.body.len() <= 301_000, "{}", reply.body.len());
    assert!(reply.body.contains("larger than allowed"));
    assert_eq!(world.books.end().await.0, "too-large");
}

#[tokio::test]
async fn an_answer_of_another_kind_or_compressed_is_not_passed_on() {
    for (kind, more) in [
        ("text/html", ""),
        ("application/json", ""),
        ("text/event-stream", "content-encoding: gzip\r\n"),
    ] {
        let start = head("200 OK", kind, more) + &chunked("data: <html>") + &chunked("");
        let (world, _control) = World::new(OPENAI, move |_| vec![Act::Say(start.clone())]).await;
        let reply = world.ask(&world.good()).await;
        assert_eq!(reply.status, 502, "{kind} {more}");
        assert!(!reply.body.contains("html"));
    }
}

#[tokio::test]
async fn a_provider_that_never_answers_or_is_not_there_is_told_apart() {
    let (world, _control) = World::new(OPENAI, |_| vec![Act::Hang]).await;
    assert_eq!(world.ask(&world.good()).await.status, 504);
    let (end, settlement) = world.books.end().await;
    assert_eq!((end.as_str(), settlement.how), ("silent", Settled::WorstCase));

    // A port that nothing listens on: not a byte of the request left.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let nowhere = |spec: &mut gateway::DoorSpec| {
        spec.grant = crate::world::grant(OPENAI, &format!("http://{free}/v1"), json!({}))
    };
    let (world, _control) = World::with(OPENAI, |_| Vec::new(), nowhere).await;
    assert_eq!(world.ask(&world.good()).await.status, 502);
    let (end, settlement) = world.books.end().await;
    assert_eq!(
        (end.as_str(), settlement.how, settlement.cost.0),
        ("unreachable", Settled::Nothing, 0)
    );
}

#[tokio::test]
async fn a_job_that_goes_away_in_the_middle_pays_the_worst_case() {
    let half = |_: &crate::world::Request| {
        vec![
            Act::Say(head("200 OK", "text/event-stream", "")),
            Act::Say(chunked("data: {}\n\n")),
            Act::Hang,
        ]
    };
    let (world, _control) = World::with(OPENAI, half, |spec| spec.timeouts.silence = Duration::from_secs(60)).await;
    let text = world.post(world.path(), &[], &world.good().to_string());
    let mut stream = tokio::net::UnixStream::connect(world.dir.join("model.sock"))
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &text).await.unwrap();
    world
        .books
        .wait_for("request", |event| matches!(event, DoorEvent::RequestSent { .. }))
        .await;
    drop(stream);
    let (end, settlement) = world.books.end().await;
    assert_eq!((end.as_str(), settlement.how), ("abandoned", Settled::WorstCase));
}

#[tokio::test]
async fn requests_at_the_same_time_and_in_all_are_bounded() {
    let (world, _control) = World::with(OPENAI, |_| vec![Act::Hang], |spec| spec.caps.parallel = 1).await;
    let good = world.good();
    let (first, second) = tokio::join!(world.ask(&good), async {
        world
            .books
            .wait_for("request", |event| matches!(event, DoorEvent::RequestSent { .. }))
            .await;
        world.ask(&good).await
    });
    assert_eq!((first.status, second.status), (504, 429));

    let (world, mut control) = World::with(OPENAI, |_| good_answer(), |spec| spec.caps.requests = 2).await;
    assert_eq!(world.ask(&world.good()).await.status, 200);
    assert_eq!(world.ask(&world.good()).await.status, 200);
    assert_eq!(world.ask(&world.good()).await.status, 402);
    assert_eq!(
        control.hear().await.as_deref(),
        Some(r#"{"type":"stop","reason":"request-cap"}"#)
    );
}

fn good_answer() -> Vec<Act> {
    good(OPENAI)
}

#[tokio::test]
async fn a_flood_of_refusals_is_counted_and_not_listed() {
    let (world, _control) = World::new(OPENAI, |_| good(OPENAI)).await;
    let bad = world.with_field("n", json!(2));
    for _ in 0..20 {
        futures_util::future::join_all((0..11).map(|_| world.ask(&bad))).await;
    }
    world
        .books
        .wait_for("summary", |event| *event == DoorEvent::RefusalsUnlisted)
        .await;
    assert!(world.books.refusals().len() <= 200);
}
