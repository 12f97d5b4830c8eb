//! What an agent may propose. The types here check what comes out; their schemas are what the agent is offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;

/// The version of [`ToolsFile`].
pub const TOOLS_FILE_VERSION: u32 = 1;

/// `/job/tools.json`: the tools that the bridge registers. The bridge holds no schema of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsFile {
    /// [`TOOLS_FILE_VERSION`].
    pub version: u32,
    /// The tools, in the order in which the prompt names them.
    pub tools: Vec<ProposalTool>,
}

impl ToolsFile {
    /// A file of these tools.
    pub fn new(tools: Vec<ProposalTool>) -> ToolsFile {
        ToolsFile {
            version: TOOLS_FILE_VERSION,
            tools,
        }
    }
}

/// One proposing tool, as the agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalTool {
    /// The name.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// One line for the prompt's list of tools.
    pub prompt_snippet: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

impl ProposalTool {
    /// The tool `forge_comment`.
    pub fn forge_comment() -> ProposalTool {
        ProposalTool {
            name: ForgeComment::TOOL.to_owned(),
            description: "Propose the comment that answers this job on the forge. It is checked and posted after the \
                          run ends. The text is Markdown; it should stand on its own."
                .to_owned(),
            prompt_snippet: "Propose the comment that answers this job".to_owned(),
            parameters: schema::<ForgeComment>(),
        }
    }
}

/// The schema without its `$schema` and `title`: providers' strict modes refuse what they do not know.
fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    schema
}

/// A comment under the job's subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeComment {
    /// The comment's text, in Markdown.
    pub body: String,
}

impl ForgeComment {
    /// The tool's name.
    pub const TOOL: &'static str = "forge_comment";
}

/// A proposal that was read and is of a known shape. What it may say is checked by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", content = "arguments", rename_all = "snake_case")]
pub enum Proposal {
    /// `forge_comment`.
    ForgeComment(ForgeComment),
}

/// Why a proposal was not even read. The text is shown to the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalFault {
    /// No tool of that name proposes anything.
    #[error("there is no proposing tool of that name")]
    UnknownTool,
    /// The arguments are not of the tool's schema.
    #[error("the arguments do not fit the tool's schema")]
    Shape,
    /// Nothing in it.
    #[error("the body is empty")]
    Empty,
    /// Too much.
    #[error("the body is longer than {} bytes; shorten it", limits::COMMENT)]
    TooLong,
}

impl Proposal {
    /// Reads what a model wrote for `tool`.
    pub fn read(tool: &str, arguments: &Value) -> Result<Proposal, ProposalFault> {
        match tool {
            ForgeComment::TOOL => {
                let comment = ForgeComment::deserialize(arguments).map_err(|_| ProposalFault::Shape)?;
                if comment.body.trim().is_empty() {
                    return Err(ProposalFault::Empty);
                }
                if comment.body.len() > limits::COMMENT {
                    return Err(ProposalFault::TooLong);
                }
                Ok(Proposal::ForgeComment(comment))
            }
            _ => Err(ProposalFault::UnknownTool),
        }
    }

    /// The name of the tool that made it.
    pub const fn tool(&self) -> &'static str {
        match self {
            Proposal::ForgeComment(_) => ForgeComment::TOOL,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_that_an_agent_is_offered_is_closed_and_plain() {
        assert_eq!(
            ProposalTool::forge_comment().parameters,
            json!({
                "type": "object",
                "properties": { "body": { "type": "string", "description": "The comment's text, in Markdown." } },
                "required": ["body"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_proposal_is_read_only_when_it_fits_its_tool() {
        let read = |arguments| Proposal::read("forge_comment", &arguments);
        assert!(read(json!({ "body": "It is the cache." })).is_ok());
        assert_eq!(read(json!({ "body": " \n" })), Err(ProposalFault::Empty));
        assert_eq!(
            read(json!({ "body": "a".repeat(limits::COMMENT + 1) })),
            Err(ProposalFault::TooLong)
        );
        for odd in [
            json!({}),
            json!("text"),
            json!({ "body": 1 }),
            json!({ "body": "x", "issue": 4 }),
            json!(null),
        ] {
            assert_eq!(read(odd), Err(ProposalFault::Shape));
        }
        assert_eq!(
            Proposal::read("forge_merge", &json!({ "body": "x" })),
            Err(ProposalFault::UnknownTool)
        );
    }
}
