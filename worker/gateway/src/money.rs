//! The meter: the worst case before a request is sent, and what it is charged afterwards.
//!
//! *Estimate.* Two bytes of ASCII, or one byte of anything else, are taken as one token; usual text has three to four bytes in a token, so this is
//! about twice what comes. An image counts 5,000 tokens. The output limit is the number that the door writes into the request.
//!
//! *Floor.* No tokenizer makes tokens of more than 16 bytes on average. Usage below one token for 16 bytes is raised to that: an endpoint (or
//! whatever answers in its place) that reports nothing for a long conversation is not believed.
//!
//! *Without usage* the worst case stays, whatever the reason: a cut stream, silence, an answer that cannot be read.
//! An error status is charged 0 where it means that the request was not taken: every 4xx, 503 and 529. Any other 5xx keeps the worst case: a proxy's
//! time-out (504) may hide a finished, billed answer. A connection that could not be made is charged 0.

use contract::Micros;

use crate::{ModelGrant, Settled, Settlement, Usage, json::Json, request::Asked};

/// What an image may cost at most, in tokens.
const IMAGE_TOKENS: u64 = 5_000;
/// The longest average token, in bytes.
const FLOOR_BYTES: u64 = 16;
/// Tokens that a provider adds around messages and tools, at most, beside what the bytes say.
const OVERHEAD_TOKENS: u64 = 512;

/// The bytes of a request, image data left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Of everything: keys, punctuation, texts.
    ascii: u64,
    other: u64,
    /// Of texts alone.
    texts: u64,
    images: u64,
}

impl Size {
    /// Measures a body.
    pub(crate) fn of(body: &Json<'_>, asked: &Asked) -> Self {
        let mut size = Self {
            images: asked.images,
            ..Self::default()
        };
        size.add(body);
        size.ascii = size.ascii.saturating_sub(asked.image_bytes);
        size.texts = size.texts.saturating_sub(asked.image_bytes);
        size
    }

    fn add(&mut self, json: &Json<'_>) {
        match json {
            Json::Null | Json::Bool(_) => self.ascii += 5,
            Json::Number(digits) => self.ascii += digits.len() as u64,
            Json::String(text) => {
                self.text(text);
                self.texts += text.len() as u64;
            }
            Json::Array(items) => {
                self.ascii += 2 + items.len() as u64;
                items.iter().for_each(|item| self.add(item));
            }
            Json::Object(fields) => {
                self.ascii += 2 + 2 * fields.len() as u64;
                for (key, value) in fields {
                    self.text(key);
                    self.add(value);
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
        self.ascii += ascii + 2;
        self.other += text.len() as u64 - ascii;
    }

    /// Input tokens, on the high side.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.ascii.div_ceil(2) + self.other + self.images * IMAGE_TOKENS + OVERHEAD_TOKENS
    }

    /// Input tokens that cannot be fewer.
    fn floor(&self) -> u64 {
        self.texts / FLOOR_BYTES
    }
}

/// One request's meter, from its reservation to its settlement.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    grant_prices: Option<crate::providers::Prices>,
    size: Size,
    /// Input and output tokens reserved.
    input: u64,
    output: u64,
}

impl Meter {
    pub(crate) fn new(grant: &ModelGrant, size: Size, output: u64) -> Self {
        Self {
            grant_prices: grant.prices.clone(),
            input: size.input_tokens(),
            size,
            output,
        }
    }

    /// The input tokens and the cost of the worst case.
    pub(crate) fn worst(&self) -> (u64, Micros) {
        let cost = self
            .grant_prices
            .as_ref()
            .map_or(Micros::ZERO, |prices| prices.worst(self.input, self.output));
        (self.input, cost)
    }

    /// The worst case stays.
    pub(crate) fn keep(&self, status: Option<u16>) -> Settlement {
        let usage = Usage {
            input: self.input,
            output: self.output,
            ..Usage::default()
        };
        Settlement {
            how: Settled::WorstCase,
            usage,
            cost: self.worst().1,
            status,
        }
    }

    /// Nothing was taken.
    pub(crate) fn nothing(&self, status: Option<u16>) -> Settlement {
        Settlement {
            how: Settled::Nothing,
            usage: Usage::default(),
            cost: Micros::ZERO,
            status,
        }
    }

    /// An error status without usage; see the module's words.
    pub(crate) fn refused(&self, status: u16) -> Settlement {
        match status {
            400..500 | 503 | 529 => self.nothing(Some(status)),
            _ => self.keep(Some(status)),
        }
    }

    /// The provider's usage, raised to what `written` bytes of output and the request's own bytes allow.
    pub(crate) fn usage(&self, said: Usage, written: u64, status: u16) -> Settlement {
        let mut usage = said;
        let input = said.total().saturating_sub(said.output);
        usage.input = usage.input.saturating_add(self.size.floor().saturating_sub(input));
        usage.output = usage.output.max(written / FLOOR_BYTES);
        let how = if usage == said { Settled::Usage } else { Settled::Raised };
        let cost = self
            .grant_prices
            .as_ref()
            .map_or(Micros::ZERO, |prices| prices.cost(&usage));
        Settlement {
            how,
            usage,
            cost,
            status: Some(status),
        }
    }
}
