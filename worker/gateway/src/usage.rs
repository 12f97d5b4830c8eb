//! Reads the provider's usage out of its answer while the answer passes by: two stream shapes and two JSON shapes.
//!
//! Nothing here decides what is forwarded. What cannot be read (a line that is too long, a number that is none) makes the usage unknown.

use contract::ApiShape;

use crate::{
    Usage,
    json::{self, Json},
};

/// The longest line of a stream, and the largest JSON answer, that is read for its usage.
const MOST: usize = 4 * 1024 * 1024;

/// Follows one answer.
#[derive(Debug)]
pub(crate) struct UsageReader {
    api: ApiShape,
    stream: bool,
    line: Vec<u8>,
    /// A line, or the whole, was too long: usage that stood there is lost.
    lost: bool,
    seen: Seen,
}

/// What has been seen so far.
#[derive(Debug, Default)]
struct Seen {
    usage: Option<Usage>,
    /// Anthropic's first event has input alone; only a `message_delta` makes the figure whole.
    whole: bool,
    /// Bytes of text that the model wrote.
    written: u64,
    /// The stream came to its own end.
    ended: bool,
    /// The stream carried an error.
    failed: bool,
}

/// What is known at the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Usage that speaks of the whole answer.
    pub(crate) usage: Option<Usage>,
    /// Bytes of text that the model wrote.
    pub(crate) written: u64,
    /// The answer came to its own end.
    pub(crate) complete: bool,
}

impl UsageReader {
    pub(crate) fn new(api: ApiShape, stream: bool) -> Self {
        Self {
            api,
            stream,
            line: Vec::new(),
            lost: false,
            seen: Seen::default(),
        }
    }

    /// Takes the next bytes of the answer.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.stream {
            self.keep(bytes);
            return;
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > MOST {
            self.lost = true;
        }
        if !self.lost {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let data = line.strip_prefix(b"data:").map(|data| data.trim_ascii());
        match data {
            Some(b"[DONE]") => self.seen.ended = true,
            Some(data) if !data.is_empty() => match (json::read(data), self.api) {
                (Ok(event), ApiShape::OpenaiCompletions) => self.seen.openai_chunk(&event),
                (Ok(event), ApiShape::AnthropicMessages) => self.seen.anthropic_event(&event),
                (Err(_), _) => self.seen.failed = true,
            },
            _ => {}
        }
        self.line = line;
        self.line.clear();
    }

    /// The answer ended; `cleanly` when the connection did.
    pub(crate) fn finish(mut self, cleanly: bool) -> Found {
        if self.stream {
            // A last line without its end.
            self.end_line();
        } else if let (Ok(answer), false) = (json::read(&self.line), self.lost) {
            self.seen.answer(self.api, &answer);
        }
        let seen = self.seen;
        let complete = cleanly && seen.ended && !seen.failed;
        let usage = seen.usage.filter(|_| seen.whole && !self.lost && complete);
        Found {
            usage,
            written: seen.written,
            complete,
        }
    }
}

impl Seen {
    fn openai_chunk(&mut self, chunk: &Json<'_>) {
        if chunk.get("error").is_some_and(|error| *error != Json::Null) {
            self.failed = true;
        }
        let choices = chunk.get("choices").and_then(Json::as_array).unwrap_or(&[]);
        // Moonshot reports in the choice, everybody else beside it.
        let usages = [chunk.get("usage")]
            .into_iter()
            .chain(choices.iter().map(|choice| choice.get("usage")));
        for usage in usages.flatten() {
            self.openai_usage(usage);
        }
        for choice in choices {
            if choice.get("finish_reason").and_then(Json::as_str).is_some() {
                self.ended = true;
            }
            if let Some(delta) = choice.get("delta") {
                self.openai_text(delta);
            }
        }
    }

    fn openai_text(&mut self, message: &Json<'_>) {
        for key in ["content", "reasoning_content"] {
            self.written += message
                .get(key)
                .and_then(Json::as_str)
                .map_or(0, |text| text.len() as u64);
        }
        for call in message.get("tool_calls").and_then(Json::as_array).unwrap_or(&[]) {
            let arguments = call.get("function").and_then(|function| function.get("arguments"));
            self.written += arguments.and_then(Json::as_str).map_or(0, |text| text.len() as u64);
        }
    }

    fn openai_usage(&mut self, usage: &Json<'_>) {
        let prompt = usage.get("prompt_tokens").and_then(Json::as_u64);
        let output = usage.get("completion_tokens").and_then(Json::as_u64);
        let (Some(prompt), Some(output)) = (prompt, output) else {
            return;
        };
        let details = usage.get("prompt_tokens_details");
        let detail = |key: &str| details.and_then(|details| details.get(key)).and_then(Json::as_u64);
        let top = |key: &str| usage.get(key).and_then(Json::as_u64);
        let cached = detail("cached_tokens")
            .or(top("prompt_cache_hit_tokens"))
            .or(top("cached_tokens"))
            .unwrap_or(0);
        // A part is not larger than the whole.
        let cache_read = cached.min(prompt);
        let cache_write = detail("cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
        let input = prompt - cache_read - cache_write;
        self.usage = Some(Usage {
            input,
            output,
            cache_read,
            cache_write,
        });
        self.whole = true;
    }

    fn anthropic_event(&mut self, event: &Json<'_>) {
        match event.get("type").and_then(Json::as_str) {
            Some("message_start") => {
                if let Some(usage) = event.get("message").and_then(|message| message.get("usage")) {
                    self.anthropic_usage(usage);
                    self.whole = false;
                }
            }
            Some("message_delta") => {
                if let Some(usage) = event.get("usage") {
                    self.anthropic_usage(usage);
                }
            }
            Some("message_stop") => self.ended = true,
            Some("content_block_start") => {
                if let Some(block) = event.get("content_block") {
                    self.anthropic_text(block);
                }
            }
            Some("content_block_delta") => {
                if let Some(delta) = event.get("delta") {
                    self.anthropic_text(delta);
                }
            }
            Some("error") => self.failed = true,
            _ => {}
        }
    }

    fn anthropic_text(&mut self, block: &Json<'_>) {
        for key in ["text", "thinking", "partial_json"] {
            self.written += block
                .get(key)
                .and_then(Json::as_str)
                .map_or(0, |text| text.len() as u64);
        }
    }

    fn anthropic_usage(&mut self, usage: &Json<'_>) {
        let old = self.usage.unwrap_or_default();
        let read = |key: &str, old: u64| usage.get(key).and_then(Json::as_u64).unwrap_or(old);
        self.usage = Some(Usage {
            input: read("input_tokens", old.input),
            output: read("output_tokens", old.output),
            cache_read: read("cache_read_input_tokens", old.cache_read),
            cache_write: read("cache_creation_input_tokens", old.cache_write),
        });
        self.whole = usage.get("output_tokens").and_then(Json::as_u64).is_some();
    }

    fn answer(&mut self, api: ApiShape, answer: &Json<'_>) {
        self.ended = true;
        match api {
            ApiShape::OpenaiCompletions => {
                if let Some(usage) = answer.get("usage") {
                    self.openai_usage(usage);
                }
                for choice in answer.get("choices").and_then(Json::as_array).unwrap_or(&[]) {
                    if let Some(message) = choice.get("message") {
                        self.openai_text(message);
                    }
                }
            }
            ApiShape::AnthropicMessages => {
                if let Some(usage) = answer.get("usage") {
                    self.anthropic_usage(usage);
                }
                for block in answer.get("content").and_then(Json::as_array).unwrap_or(&[]) {
                    self.anthropic_text(block);
                }
            }
        }
    }
}
