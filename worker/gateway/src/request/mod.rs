//! The allowlist: what of a model request may leave, per API shape. Everything that is not named here is refused.
//!
//! The lists are what pi 1.6.0 sends for every thinking level and compatibility flag that [`crate::providers::models_json`] leaves switched on
//! (`README.md` of this crate has the findings), and nothing more. A tool in a request must be a client function whose name is in the job's set;
//! a name in the *history* of a conversation is only text: a model that asked for `bash` and was told that there is none may go on.

mod anthropic;
mod fields;
mod head;
mod openai;

use std::collections::BTreeSet;

use contract::ApiShape;

pub(crate) use fields::Refusal;
pub(crate) use head::{Head, check as check_head};

use crate::{ModelGrant, json::Json};

/// What a job's requests are held against.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) grant: &'a ModelGrant,
    pub(crate) allowed: &'a BTreeSet<String>,
    pub(crate) excluded: &'a BTreeSet<String>,
}

/// Why a request does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum No {
    /// 403 and an event.
    Refused(Refusal),
    /// 403, an event, and the end of the job: an excluded tool was offered.
    Breach(String),
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What an allowed body asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The tools that it offers to the model, in its order.
    pub(crate) tools: Vec<String>,
    /// Images in it, and the bytes of their base64 text.
    pub(crate) images: u64,
    pub(crate) image_bytes: u64,
    /// The output limit that it asks for.
    pub(crate) output: Option<u64>,
    /// A thinking budget that must fit under the output limit.
    pub(crate) budget: u64,
    /// Whether the answer is to be a stream.
    pub(crate) stream: bool,
}

/// Checks a body that was read strictly.
pub(crate) fn check_body(rules: &Rules<'_>, body: &Json<'_>) -> Result<Asked, No> {
    match rules.grant.api {
        ApiShape::OpenaiCompletions => openai::check(rules, body),
        ApiShape::AnthropicMessages => anthropic::check(rules, body),
    }
}

/// Writes the output limit into the body, and what makes the provider report usage.
pub(crate) fn write_limits(grant: &ModelGrant, body: &mut Json<'_>, output: u64, stream: bool) {
    let limit = Json::Number(output.to_string().into());
    match grant.api {
        ApiShape::OpenaiCompletions => {
            body.remove("max_tokens");
            body.remove("max_completion_tokens");
            body.set(grant.max_tokens_field(), limit);
            if stream && grant.says_usage_in_streams() {
                body.set(
                    "stream_options",
                    Json::Object(vec![("include_usage".into(), Json::Bool(true))]),
                );
            } else {
                body.remove("stream_options");
            }
        }
        ApiShape::AnthropicMessages => body.set("max_tokens", limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of the real pi, one a line, one of each shape that 59 models made: thinking off and high, first and second turn.
    const RECORDED: &str = include_str!("../../tests/pi-1.6.0/requests.jsonl");

    fn grant(api: ApiShape, model: &str) -> ModelGrant {
        ModelGrant {
            provider: "recorded".into(),
            model: model.into(),
            api,
            base_url: url::Url::parse("https://models.example.org").unwrap(),
            key: None,
            prices: None,
            max_tokens: 1_000,
            context_window: 100_000,
            entry: serde_json::Map::new(),
        }
    }

    #[test]
    fn what_the_real_pi_sends_for_every_dialect_goes_through() {
        let allowed = BTreeSet::from(["read".to_owned(), "forge_comment".to_owned()]);
        let excluded = BTreeSet::from(["bash".to_owned()]);
        for line in RECORDED.lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let target = record["target"].as_str().unwrap();
            let is_anthropic = target.starts_with("/v1/messages");
            let api = if is_anthropic {
                ApiShape::AnthropicMessages
            } else {
                ApiShape::OpenaiCompletions
            };
            let mut request = http::Request::post(target);
            for (name, value) in record["headers"].as_object().unwrap() {
                request = request.header(name, value.as_str().unwrap());
            }
            let head = check_head(api, &request.body(()).unwrap());
            assert!(head.is_ok(), "{head:?} in {line}");

            let text = record["body"].to_string();
            let body = crate::json::read(text.as_bytes()).unwrap();
            let grant = grant(api, record["body"]["model"].as_str().unwrap());
            let rules = Rules {
                grant: &grant,
                allowed: &allowed,
                excluded: &excluded,
            };
            let asked = check_body(&rules, &body);
            assert!(
                asked.as_ref().is_ok_and(|asked| asked.tools.len() == 2 && asked.stream),
                "{asked:?} in {line}"
            );
        }
    }
}
