//! A step in the words of either language: server-sent events piece by piece, or one JSON.

use super::conversation::{Api, Conversation};
use super::script::{Finish, Step, Usage};
use axum::body::Bytes;
use serde_json::{Value, json};

/// How many bytes of words or arguments one event carries.
const PIECE: usize = 48;

/// The answer in pieces, each a whole event; one piece when no stream is wanted.
pub(super) fn pieces(conversation: &Conversation, step: &Step, number: usize) -> Vec<Bytes> {
    let said = Said::new(conversation, step, number);
    match (conversation.api, conversation.stream) {
        (Api::OpenAi, true) => said.openai_events(),
        (Api::OpenAi, false) => vec![said.openai_json().to_string().into()],
        (Api::Anthropic, true) => said.anthropic_events(),
        (Api::Anthropic, false) => vec![said.anthropic_json().to_string().into()],
    }
}

struct Said<'a> {
    conversation: &'a Conversation,
    step: &'a Step,
    number: usize,
    /// Tokens of the prompt and of the answer, when they are told.
    usage: Option<(u64, u64)>,
}

impl<'a> Said<'a> {
    fn new(conversation: &'a Conversation, step: &'a Step, number: usize) -> Self {
        let calls = step
            .calls
            .iter()
            .map(|(tool, arguments)| tool.len() + arguments.to_string().len());
        let answer = step.text.len() + calls.sum::<usize>();
        let usage = match step.usage {
            Usage::Sizes => Some((tokens(conversation.bytes), tokens(answer))),
            Usage::Absent => None,
            Usage::Zero => Some((0, 0)),
            Usage::Is(prompt, answer) => Some((prompt, answer)),
        };
        Self {
            conversation,
            step,
            number,
            usage,
        }
    }

    /// The id of a call: unlike all others of the conversation, and the same whenever it is asked again.
    fn call_id(&self, index: usize) -> String {
        let word = if self.conversation.api == Api::OpenAi {
            "call"
        } else {
            "toolu"
        };
        format!("{word}_{}_{index}", self.conversation.assistant_messages())
    }

    fn finish(&self) -> &'static str {
        match (self.conversation.api, self.step.finish, self.step.calls.is_empty()) {
            (Api::OpenAi, Finish::Length, _) => "length",
            (Api::OpenAi, Finish::Natural, true) => "stop",
            (Api::OpenAi, Finish::Natural, false) => "tool_calls",
            (Api::Anthropic, Finish::Length, _) => "max_tokens",
            (Api::Anthropic, Finish::Natural, true) => "end_turn",
            (Api::Anthropic, Finish::Natural, false) => "tool_use",
        }
    }

    fn openai_usage(&self) -> Value {
        self.usage.map_or(Value::Null, |(prompt, answer)| {
            json!({
                "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
                "prompt_tokens_details": { "cached_tokens": 0 },
            })
        })
    }

    fn openai_events(&self) -> Vec<Bytes> {
        let base = |choices: Value| {
            json!({
                "id": format!("chatcmpl-{}", self.number), "object": "chat.completion.chunk", "created": 1_764_500_000,
                "model": self.conversation.model, "choices": choices,
            })
        };
        let event =
            |delta: Value, finish: Value| data(&base(json!([{ "index": 0, "delta": delta, "finish_reason": finish }])));
        let mut events = vec![event(json!({ "role": "assistant", "content": "" }), Value::Null)];
        for piece in cut(&self.step.text) {
            events.push(event(json!({ "content": piece }), Value::Null));
        }
        for (index, (tool, arguments)) in self.step.calls.iter().enumerate() {
            let begin = json!({ "index": index, "id": self.call_id(index), "type": "function",
                "function": { "name": tool, "arguments": "" } });
            events.push(event(json!({ "tool_calls": [begin] }), Value::Null));
            for piece in cut(&arguments.to_string()) {
                let more = json!({ "index": index, "function": { "arguments": piece } });
                events.push(event(json!({ "tool_calls": [more] }), Value::Null));
            }
        }
        events.push(event(json!({}), json!(self.finish())));
        if self.usage.is_some() {
            let mut last = base(json!([]));
            last["usage"] = self.openai_usage();
            events.push(data(&last));
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events
    }

    fn openai_json(&self) -> Value {
        let call = |(index, (tool, arguments)): (usize, &(String, Value))| {
            json!({ "id": self.call_id(index), "type": "function",
                "function": { "name": tool, "arguments": arguments.to_string() } })
        };
        let mut message = json!({ "role": "assistant", "content": self.step.text });
        if !self.step.calls.is_empty() {
            message["tool_calls"] = self.step.calls.iter().enumerate().map(call).collect();
        }
        let mut answer = json!({
            "id": format!("chatcmpl-{}", self.number), "object": "chat.completion", "created": 1_764_500_000,
            "model": self.conversation.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish() }],
        });
        if self.usage.is_some() {
            answer["usage"] = self.openai_usage();
        }
        answer
    }

    fn anthropic_message(&self, content: Value, stop: Value) -> Value {
        let mut message = json!({
            "id": format!("msg_{}", self.number), "type": "message", "role": "assistant",
            "model": self.conversation.model, "content": content, "stop_reason": stop, "stop_sequence": null,
        });
        if let Some((prompt, answer)) = self.usage {
            message["usage"] = json!({
                "input_tokens": prompt, "output_tokens": answer, "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0,
            });
        }
        message
    }

    fn anthropic_events(&self) -> Vec<Bytes> {
        let mut begin = self.anthropic_message(json!([]), Value::Null);
        if let Some((_, answer)) = self.usage {
            begin["usage"]["output_tokens"] = json!(answer.min(1));
        }
        let mut events = vec![named("message_start", json!({ "message": begin }))];
        let mut index = 0;
        let mut block = |block: Value, deltas: Vec<Value>| {
            events.push(named(
                "content_block_start",
                json!({ "index": index, "content_block": block }),
            ));
            let deltas = deltas
                .into_iter()
                .map(|delta| json!({ "index": index, "delta": delta }));
            events.extend(deltas.map(|delta| named("content_block_delta", delta)));
            events.push(named("content_block_stop", json!({ "index": index })));
            index += 1;
        };
        if !self.step.text.is_empty() {
            let deltas = cut(&self.step.text)
                .map(|piece| json!({ "type": "text_delta", "text": piece }))
                .collect();
            block(json!({ "type": "text", "text": "" }), deltas);
        }
        for (number, (tool, arguments)) in self.step.calls.iter().enumerate() {
            let arguments = arguments.to_string();
            let deltas = cut(&arguments).map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
            let start = json!({ "type": "tool_use", "id": self.call_id(number), "name": tool, "input": {} });
            block(start, deltas.collect());
        }
        let mut end = json!({ "delta": { "stop_reason": self.finish(), "stop_sequence": null } });
        if let Some((_, answer)) = self.usage {
            end["usage"] = json!({ "output_tokens": answer });
        }
        events.push(named("message_delta", end));
        events.push(named("message_stop", json!({})));
        events
    }

    fn anthropic_json(&self) -> Value {
        let mut content = Vec::new();
        if !self.step.text.is_empty() {
            content.push(json!({ "type": "text", "text": self.step.text }));
        }
        for (index, (tool, arguments)) in self.step.calls.iter().enumerate() {
            let id = self.call_id(index);
            content.push(json!({ "type": "tool_use", "id": id, "name": tool, "input": arguments }));
        }
        self.anthropic_message(Value::Array(content), json!(self.finish()))
    }
}

/// Four bytes are a token, begun ones count.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

fn data(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

fn named(event: &str, mut value: Value) -> Bytes {
    value["type"] = json!(event);
    format!("event: {event}\ndata: {value}\n\n").into()
}

/// A text in pieces of about [`PIECE`] bytes, never within a letter.
fn cut(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut at = PIECE.min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, after) = rest.split_at(at);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
