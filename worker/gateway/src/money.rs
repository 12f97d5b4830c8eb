//! The meter: the worst case before a request is sent, and what it is charged afterwards.
//!
//! *Estimate.* One byte is taken as one token: no tokenizer makes more tokens than bytes, so a job cannot write a text that costs more than was
//! reserved. It is at most the model's context window, since more than that is refused by the provider. An image counts 5,000 tokens. Usual text
//! has three to four bytes in a token; what was reserved too much is free again when the request is settled. The output limit is the number that
//! the door writes into the request.
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
    all: u64,
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
        size.all = size.all.saturating_sub(asked.image_bytes);
        size.texts = size.texts.saturating_sub(asked.image_bytes);
        size
    }

    fn add(&mut self, json: &Json<'_>) {
        match json {
            Json::Null | Json::Bool(_) => self.all += 5,
            Json::Number(digits) => self.all += digits.len() as u64,
            Json::String(text) => {
                self.all += text.len() as u64 + 2;
                self.texts += text.len() as u64;
            }
            Json::Array(items) => {
                self.all += 2 + items.len() as u64;
                items.iter().for_each(|item| self.add(item));
            }
            Json::Object(fields) => {
                self.all += 2 + 2 * fields.len() as u64;
                for (key, value) in fields {
                    self.all += key.len() as u64 + 2;
                    self.add(value);
                }
            }
        }
    }

    /// Input tokens, more than which it cannot be.
    fn input_tokens(&self, context_window: u64) -> u64 {
        let bytes = self
            .all
            .saturating_add(self.images.saturating_mul(IMAGE_TOKENS))
            .saturating_add(OVERHEAD_TOKENS);
        bytes.min(context_window)
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
            input: size.input_tokens(grant.context_window),
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
