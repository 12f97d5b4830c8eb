//! A conversation as a request carries it, in either language, read into one shape.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The language of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `openai-completions`.
    OpenAi,
    /// `anthropic-messages`.
    Anthropic,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The instructions (`system`, `developer`).
    System,
    /// The person, or the job.
    User,
    /// The model.
    Assistant,
    /// What a tool gave back; Anthropic's are read out of the user's messages.
    Tool,
}

/// A call of a tool, as the model made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its id in the conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; a string when they were not JSON.
    pub arguments: Value,
}

/// What came back for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The text.
    pub text: String,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Its text, parts joined.
    pub text: String,
    /// The calls that it makes.
    pub calls: Vec<Call>,
    /// The results that it brings.
    pub results: Vec<ToolResult>,
}

/// What a request says: everything that the next answer may depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The language.
    pub api: Api,
    /// The model that is asked for.
    pub model: String,
    /// Whether the answer is to be server-sent events.
    pub stream: bool,
    /// The instructions.
    pub system: String,
    /// Everything said so far, the instructions aside.
    pub messages: Vec<Message>,
    /// The names of the tools on offer, in the request's order.
    pub tools: Vec<String>,
    /// How long the request was, in bytes.
    pub bytes: usize,
}

impl Conversation {
    /// Reads a request's body; `None` when it is no conversation.
    pub fn read(api: Api, body: &Value) -> Option<Self> {
        let (mut system, mut messages) = (content(body.get("system")), Vec::new());
        for message in body.get("messages")?.as_array()? {
            let message = read_message(message)?;
            if message.role == Role::System {
                system.push_str(&message.text);
            } else {
                messages.push(message);
            }
        }
        let tools = body
            .get("tools")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let name = |tool: &Value| text(tool.get("function").unwrap_or(tool).get("name"));
        Some(Self {
            api,
            model: text(body.get("model")),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            system,
            messages,
            tools: tools.iter().map(name).collect(),
            bytes: body.to_string().len(),
        })
    }

    /// How often the model has spoken: the number of the next step.
    pub fn assistant_messages(&self) -> usize {
        self.messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .count()
    }

    /// What the person, or the job, said first.
    pub fn first_message(&self) -> &str {
        self.messages
            .iter()
            .find(|message| message.role == Role::User)
            .map_or("", |message| &message.text)
    }

    /// Whether a tool of this name is on offer.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|have| have == tool)
    }

    /// Every call made so far, with what came back.
    pub fn calls(&self) -> impl Iterator<Item = (&Call, Option<&str>)> {
        let calls = self.messages.iter().flat_map(|message| &message.calls);
        calls.map(|call| {
            let results = self.messages.iter().flat_map(|message| &message.results);
            (
                call,
                results
                    .into_iter()
                    .find(|result| result.id == call.id)
                    .map(|result| result.text.as_str()),
            )
        })
    }

    /// Tells conversations apart: the instructions and the first message, hashed.
    pub fn key(&self) -> String {
        let digest = Sha256::new()
            .chain_update(&self.system)
            .chain_update([0])
            .chain_update(self.first_message());
        hex::encode(digest.finalize())
    }
}

fn read_message(message: &Value) -> Option<Message> {
    let role = match message.get("role")?.as_str()? {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return None,
    };
    let mut read = Message {
        role,
        text: content(message.get("content")),
        calls: Vec::new(),
        results: Vec::new(),
    };
    // OpenAI: calls stand beside the content, a result is a message of its own.
    for call in message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let function = call.get("function").unwrap_or(&Value::Null);
        let raw = text(function.get("arguments"));
        let arguments = serde_json::from_str(&raw).unwrap_or(Value::String(raw));
        read.calls.push(Call {
            id: text(call.get("id")),
            name: text(function.get("name")),
            arguments,
        });
    }
    if let Some(id) = message.get("tool_call_id") {
        read.results.push(ToolResult {
            id: text(Some(id)),
            text: read.text.clone(),
        });
    }
    // Anthropic: calls and results are blocks of the content.
    for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => read.calls.push(Call {
                id: text(block.get("id")),
                name: text(block.get("name")),
                arguments: block.get("input").cloned().unwrap_or(Value::Null),
            }),
            Some("tool_result") => read.results.push(ToolResult {
                id: text(block.get("tool_use_id")),
                text: content(block.get("content")),
            }),
            _ => {}
        }
    }
    if role == Role::User && !read.results.is_empty() && read.text.is_empty() {
        read.role = Role::Tool;
    }
    Some(read)
}

/// The text of a content: a string, or the text blocks of a list.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks.iter().map(|block| text(block.get("text"))).collect(),
        _ => String::new(),
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
