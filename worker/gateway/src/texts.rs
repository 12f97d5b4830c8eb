//! Every sentence of this crate that a person or the agent reads.

use std::fmt;

use contract::ApiShape;
use serde_json::json;

use crate::{DoorEvent, upstream::ErrorClass};

/// An event, as one line of the job's log.
pub(crate) fn event(event: &DoorEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        DoorEvent::ControlOpened => f.write_str("the runner opened its control connection"),
        DoorEvent::ControlClosed => f.write_str("the control connection ended"),
        DoorEvent::ControlSilent { seconds } => write!(f, "the runner has said nothing for {seconds} s"),
        DoorEvent::ConnectionRefused { socket, pid, why } => {
            let socket = match socket {
                crate::Socket::Control => "control",
                crate::Socket::Model => "model",
            };
            match pid {
                Some(pid) => write!(
                    f,
                    "a connection to the {socket} socket from process {pid} was refused: {why}"
                ),
                None => write!(f, "a connection to the {socket} socket was refused: {why}"),
            }
        }
        DoorEvent::RequestRefused { why, place } if place.is_empty() => write!(f, "a model request was refused: {why}"),
        DoorEvent::RequestRefused { why, place } => write!(f, "a model request was refused: {why} ({place})"),
        DoorEvent::RefusalsUnlisted => f.write_str("further refused model requests are counted, not listed"),
        DoorEvent::RequestSent { reserved, tools, .. } => write!(
            f,
            "model request {}: at most {} input and {} output tokens reserved, {} tools offered",
            reserved.request,
            reserved.input_tokens,
            reserved.output_tokens,
            tools.len()
        ),
        DoorEvent::RequestEnded { settlement, end, .. } => {
            write!(
                f,
                "model request ended ({end}): {} tokens charged",
                settlement.usage.total()
            )
        }
        DoorEvent::Breach { tool } => write!(
            f,
            "a model request offered the excluded tool `{tool}`; nothing was sent"
        ),
        DoorEvent::CapReached { cap } => write!(f, "a model request would pass the cap `{}`", cap.stop_reason()),
        DoorEvent::HostFailed { asked } => write!(f, "the worker could not answer `{asked}`; nothing was sent"),
    }
}

/// What the door answers instead of a provider's words, or in its own name. pi decides by status and by these words whether it tries again:
/// none of those that are final may hold a word like "timeout" or "overloaded", which pi takes as passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) status: u16,
    kind: &'static str,
    code: &'static str,
    message: &'static str,
}

const fn said(status: u16, kind: &'static str, code: &'static str, message: &'static str) -> Said {
    Said {
        status,
        kind,
        code,
        message,
    }
}

/// The request is not on the list.
pub(crate) const REFUSED: Said = said(403, "permission_error", "refused", "the gateway refused this request");
/// A cap of the run or the day.
pub(crate) const OVER_CAP: Said = said(
    402,
    "permission_error",
    "out_of_budget",
    "out of budget: a cap of this run or of the day would be passed",
);
/// The job is being stopped.
pub(crate) const STOPPING: Said = said(403, "permission_error", "stopping", "this run is being stopped");
/// Too many requests at the same time.
pub(crate) const BUSY: Said = said(
    429,
    "rate_limit_error",
    "rate_limit",
    "rate limit: too many requests of this job at the same time",
);
/// The worker, or the control connection, is not there for a moment.
pub(crate) const NOT_READY: Said = said(
    503,
    "overloaded_error",
    "unavailable",
    "the gateway is temporarily unavailable",
);
/// No connection to the provider.
pub(crate) const UNREACHABLE: Said = said(
    502,
    "api_error",
    "unreachable",
    "connection error: the provider cannot be reached",
);
/// The connection to the provider broke.
pub(crate) const LOST: Said = said(502, "api_error", "lost", "connection lost: the provider gave no answer");
/// The provider did not begin to answer.
pub(crate) const SILENT: Said = said(
    504,
    "api_error",
    "silent",
    "timeout: the provider did not answer in time",
);
/// The answer is not of a kind that is passed on.
pub(crate) const UNUSABLE: Said = said(
    502,
    "invalid_request_error",
    "unusable",
    "the provider answered with something that is no model answer",
);
/// In the middle of a stream: the connection broke.
pub(crate) const CUT: Said = said(502, "api_error", "cut", "stream was interrupted: connection lost");
/// In the middle of a stream: too long without a byte, or too long in all.
pub(crate) const STALLED: Said = said(504, "api_error", "silent", "timeout: the provider fell silent");
/// In the middle of a stream: more bytes than allowed.
pub(crate) const TOO_LARGE: Said = said(
    502,
    "invalid_request_error",
    "too_large",
    "the answer was larger than allowed",
);
/// The answer held the key.
pub(crate) const WITHHELD: Said = said(
    502,
    "invalid_request_error",
    "withheld",
    "the answer held a secret of this host and was withheld",
);

/// What stands for a provider's error.
pub(crate) fn provider_error(class: ErrorClass, status: u16) -> Said {
    match class {
        ErrorClass::ContextOverflow => said(
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "prompt is too long",
        ),
        ErrorClass::StrictTools => said(
            400,
            "invalid_request_error",
            "strict_tools",
            "Too many strict tools (the provider's limit)",
        ),
        ErrorClass::Quota => said(
            status,
            "billing_error",
            "insufficient_quota",
            "the provider's account has no quota left",
        ),
        ErrorClass::Unauthorized => said(
            status,
            "authentication_error",
            "unauthorized",
            "the provider did not take the host's key",
        ),
        ErrorClass::RateLimit => said(429, "rate_limit_error", "rate_limit", "rate limit of the provider"),
        ErrorClass::Overloaded => said(status, "overloaded_error", "overloaded", "the provider is overloaded"),
        ErrorClass::Server => said(status, "api_error", "server_error", "server error of the provider"),
        ErrorClass::Invalid => said(
            status,
            "invalid_request_error",
            "invalid_request",
            "the provider did not accept the request",
        ),
        ErrorClass::NotFound => said(
            404,
            "not_found_error",
            "not_found",
            "the provider does not know this model",
        ),
        ErrorClass::Redirect => said(
            502,
            "invalid_request_error",
            "redirect",
            "the provider answered with a redirect, which is not followed",
        ),
    }
}

/// How a request ended, in one word for its event.
pub(crate) fn class_word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ContextOverflow => "context-overflow",
        ErrorClass::StrictTools => "strict-tools",
        ErrorClass::Quota => "provider-quota",
        ErrorClass::Unauthorized => "provider-unauthorized",
        ErrorClass::RateLimit => "rate-limited",
        ErrorClass::Overloaded => "overloaded",
        ErrorClass::Server => "provider-failed",
        ErrorClass::Invalid => "refused-by-provider",
        ErrorClass::NotFound => "not-found",
        ErrorClass::Redirect => "redirect",
    }
}

impl Said {
    /// The answer's body in the API's own error shape. `detail` is one of our own words.
    pub(crate) fn body(self, api: ApiShape, detail: Option<&str>) -> String {
        let message = detail.map_or_else(
            || self.message.to_owned(),
            |detail| format!("{}: {detail}", self.message),
        );
        match api {
            ApiShape::OpenaiCompletions => {
                json!({ "error": { "message": message, "type": self.kind, "param": null, "code": self.code } })
            }
            ApiShape::AnthropicMessages => {
                json!({ "type": "error", "error": { "type": self.kind, "message": message } })
            }
        }
        .to_string()
    }

    /// The error as the last event of a stream.
    pub(crate) fn stream_event(self, api: ApiShape) -> String {
        let body = self.body(api, None);
        match api {
            ApiShape::OpenaiCompletions => format!("\n\ndata: {body}\n\n"),
            ApiShape::AnthropicMessages => format!("\n\nevent: error\ndata: {body}\n\n"),
        }
    }
}

/// The agent proposed with a tool that this job does not have.
pub(crate) const NO_SUCH_TOOL: &str = "there is no proposing tool of that name";
/// The agent proposed more than is taken.
pub(crate) const PROPOSAL_TOO_LONG: &str = "the proposal is too long; shorten it";
