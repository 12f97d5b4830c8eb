//! Money: reserved before a byte leaves, settled from usage that is not believed blindly, never past the cap.

use crate::world::{Act, World, anthropic_text, chunked, head, openai_text};
use contract::{ApiShape, Micros, StopReason};
use gateway::{DoorEvent, Settled};
use serde_json::{Value, json};

const OPENAI: ApiShape = ApiShape::OpenaiCompletions;
const ANTHROPIC: ApiShape = ApiShape::AnthropicMessages;

/// A conversation of about this many bytes.
fn long(world: &World, bytes: usize) -> Value {
    world.with_field(
        "messages",
        json!([{ "role": "user", "content": "word ".repeat(bytes / 5) }]),
    )
}

#[tokio::test]
async fn the_worst_case_is_committed_before_a_byte_leaves() {
    let (world, _control) = World::new(OPENAI, |_| openai_text("hi", None)).await;
    world.books.set_broken(true);
    assert_eq!(world.ask(&world.good()).await.status, 503, "pi may try again");
    assert_eq!(world.provider.seen().len(), 0);
    world.books.set_broken(false);
    assert_eq!(world.ask(&world.good()).await.status, 200);
    let reserved = world.books.reserved().remove(0);
    assert_eq!(reserved.output_tokens, 1_000);
    // Input at the dearest input rate, output at its own.
    let worst = (i64::try_from(reserved.input_tokens).unwrap() * 3_750_000 + 1_000 * 15_000_000 + 999_999) / 1_000_000;
    assert_eq!(reserved.worst, Micros(worst));
}

#[tokio::test]
async fn without_usable_usage_the_worst_case_stays() {
    let no_usage = openai_text("hi", None);
    let mut cut = openai_text("hi", Some(json!({ "prompt_tokens": 10, "completion_tokens": 1 })));
    cut.truncate(2);
    cut.push(Act::Say("zzz\r\n".into()));
    let negative = openai_text("hi", Some(json!({ "prompt_tokens": -5, "completion_tokens": -5 })));
    let words = openai_text("hi", Some(json!({ "prompt_tokens": "10", "completion_tokens": "1" })));
    let early = vec![
        Act::Say(head("200 OK", "text/event-stream", "")),
        Act::Say(
            chunked("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n")
                + &chunked(""),
        ),
    ];
    let start = json!({ "input_tokens": 10, "output_tokens": 1 });
    let mut stopped = anthropic_text("hi", start.clone(), json!({ "output_tokens": 5 }));
    stopped.truncate(4);
    stopped.push(Act::Say(chunked("")));
    let silent_delta = anthropic_text("hi", start, json!({}));
    let cases = [
        (OPENAI, no_usage),
        (OPENAI, cut),
        (OPENAI, negative),
        (OPENAI, words),
        (OPENAI, early),
        (ANTHROPIC, stopped),
        (ANTHROPIC, silent_delta),
    ];
    for (index, (api, acts)) in cases.into_iter().enumerate() {
        let (world, _control) = World::new(api, move |_| acts.clone()).await;
        world.ask(&world.good()).await;
        let (_, settlement) = world.books.end().await;
        assert_eq!(settlement.how, Settled::WorstCase, "case {index}");
        assert_eq!(settlement.cost, world.books.reserved()[0].worst, "case {index}");
    }
}

#[tokio::test]
async fn usage_below_what_the_bytes_allow_is_raised_to_it() {
    let zero = json!({ "prompt_tokens": 0, "completion_tokens": 0 });
    let text = "an answer of some length ".repeat(100);
    let (world, _control) = World::new(OPENAI, move |_| openai_text(&text, Some(zero.clone()))).await;
    assert_eq!(world.ask(&long(&world, 32_000)).await.status, 200);
    let (end, settlement) = world.books.end().await;
    assert_eq!((end.as_str(), settlement.how), ("complete", Settled::Raised));
    assert_eq!(settlement.usage.output, 2_500 / 16);
    assert!(settlement.usage.input >= 32_000 / 16, "{settlement:?}");
    assert!(settlement.cost > Micros::ZERO && settlement.cost < world.books.reserved()[0].worst);
}

#[tokio::test]
async fn usage_above_the_reservation_is_charged_as_it_is() {
    let much = json!({ "prompt_tokens": 1_000_000, "completion_tokens": 100_000 });
    let (world, _control) = World::new(OPENAI, move |_| openai_text("hi", Some(much.clone()))).await;
    world.ask(&world.good()).await;
    assert_eq!(world.books.end().await.1.cost, Micros(3_000_000 + 1_500_000));
}

#[tokio::test]
async fn cached_input_is_counted_where_each_provider_says_it() {
    let openai = [
        json!({ "prompt_tokens": 1_000, "completion_tokens": 10, "prompt_tokens_details": { "cached_tokens": 400, "cache_write_tokens": 100 } }),
        json!({ "prompt_tokens": 1_000, "completion_tokens": 10, "prompt_cache_hit_tokens": 400, "prompt_tokens_details": { "cache_write_tokens": 100 } }),
        json!({ "prompt_tokens": 1_000, "completion_tokens": 10, "cached_tokens": 400, "prompt_tokens_details": { "cache_write_tokens": 100 } }),
    ];
    let start = json!({ "input_tokens": 500, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 100, "output_tokens": 1 });
    let mut cases: Vec<(ApiShape, Vec<Act>)> = openai
        .into_iter()
        .map(|usage| (OPENAI, openai_text("hi", Some(usage))))
        .collect();
    cases.push((ANTHROPIC, anthropic_text("hi", start, json!({ "output_tokens": 10 }))));
    for (api, acts) in cases {
        let (world, _control) = World::new(api, move |_| acts.clone()).await;
        world.ask(&world.good()).await;
        let (_, settlement) = world.books.end().await;
        let usage = settlement.usage;
        assert_eq!(
            (usage.input, usage.cache_read, usage.cache_write, usage.output),
            (500, 400, 100, 10)
        );
        assert_eq!(settlement.cost, Micros(1_500 + 120 + 375 + 150));
    }
}

#[tokio::test]
async fn near_the_cap_a_request_may_write_less_and_past_it_the_job_is_stopped() {
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 4_000 });
    let (world, mut control) = World::new(OPENAI, move |_| openai_text("hi", Some(usage.clone()))).await;
    // 8,192 tokens of output are 0.123 dollars, 4,096 are half of it.
    world.books.set_cap(Micros(100_000));
    let body = world.with_field("max_completion_tokens", json!(8_192));
    assert_eq!(world.ask(&body).await.status, 200);
    assert_eq!(world.provider.seen().remove(0).json()["max_completion_tokens"], 4_096);
    world.books.end().await;

    let reply = world.ask(&body).await;
    assert_eq!(reply.status, 402);
    assert!(
        reply.body.contains("out of budget") && reply.body.contains("cost-cap"),
        "{}",
        reply.body
    );
    let event = world
        .books
        .wait_for("cap", |event| matches!(event, DoorEvent::CapReached { .. }))
        .await;
    assert_eq!(event.stops_the_job(), Some(StopReason::CostCap));
    assert_eq!(
        control.hear().await.as_deref(),
        Some(r#"{"type":"stop","reason":"cost-cap"}"#)
    );
    assert_eq!(world.provider.seen().len(), 1);
}

#[tokio::test]
async fn an_output_limit_is_never_lowered_under_a_thinking_budget() {
    let (world, _control) = World::new(ANTHROPIC, |_| {
        anthropic_text("hi", json!({ "input_tokens": 10 }), json!({ "output_tokens": 10 }))
    })
    .await;
    world.books.set_cap(Micros(100_000));
    let mut body = world.with_field("max_tokens", json!(8_192));
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 7_000, "display": "summarized" });
    assert_eq!(
        world.ask(&body).await.status,
        402,
        "7,000 tokens of thinking and an answer cost more than the cap"
    );
    assert_eq!(world.provider.seen().len(), 0);
}

#[tokio::test]
async fn twenty_requests_at_once_never_pass_the_cap() {
    // The dearest provider that there can be: as many input tokens as bytes, and every token of output that was allowed.
    let script = |request: &crate::world::Request| {
        let tokens = request.body.len();
        openai_text(
            "hi",
            Some(json!({ "prompt_tokens": tokens, "completion_tokens": 1_000 })),
        )
    };
    let (world, _control) = World::with(OPENAI, script, |spec| spec.caps.parallel = 20).await;
    let cap = Micros(200_000);
    world.books.set_cap(cap);
    let body = long(&world, 4_000);
    let replies = futures_util::future::join_all((0..20).map(|_| world.ask(&body))).await;
    let passed = replies.iter().filter(|reply| reply.status == 200).count();
    assert!((5..20).contains(&passed), "{passed}");
    world
        .books
        .wait_for("cap", |event| matches!(event, DoorEvent::CapReached { .. }))
        .await;
    assert!(world.books.most_ever() <= cap, "{} of {cap}", world.books.most_ever());
    assert_eq!(world.provider.seen().len(), passed);
    let caps = world
        .books
        .events()
        .iter()
        .filter(|event| matches!(event, DoorEvent::CapReached { .. }))
        .count();
    assert_eq!(caps, 1, "said once");
}

#[tokio::test]
async fn an_unpriced_model_is_said_to_be_unpriced() {
    let unpriced = |spec: &mut gateway::DoorSpec| {
        let model = gateway::providers::ModelConfig {
            id: crate::world::MODEL.into(),
            name: None,
            context_window: 1_000,
            max_tokens: 1_000,
            reasoning: false,
            images: false,
            cost: None,
            compat: None,
        };
        let config = gateway::providers::ProviderConfig {
            api: Some(OPENAI),
            base_url: Some("http://127.0.0.1:1/v1".into()),
            models: vec![model],
            key: None,
        };
        let catalog = gateway::providers::Catalog::new([("fake".to_owned(), config)].into()).unwrap();
        spec.grant = catalog.grant("fake", crate::world::MODEL, false).unwrap();
    };
    let (world, _control) = World::with(OPENAI, |_| Vec::new(), unpriced).await;
    world.ask(&world.good()).await;
    let reserved = world.books.reserved().remove(0);
    assert!(!reserved.priced && reserved.worst == Micros::ZERO && reserved.input_tokens > 0);
}
