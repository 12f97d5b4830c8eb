//! Words that the job's contract shares with this crate.

use serde::{Deserialize, Serialize};

/// Whole micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

/// The two ways of speaking with a model that the door lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiShape {
    /// `POST /v1/chat/completions`.
    OpenaiCompletions,
    /// `POST /v1/messages`.
    AnthropicMessages,
}

/// Placeholder until the contract publishes its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A person, or the worker.
    Asked,
}
