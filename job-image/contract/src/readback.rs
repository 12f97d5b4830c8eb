//! What a live session of pi really has, as the bridge reads it back.

use serde::{Deserialize, Serialize};

/// One look at the live session. The runner compares it with what the job asked for, before anything is spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Names of the active tools, in pi's order.
    pub active: Vec<String>,
    /// Every registered tool.
    pub registered: Vec<SeenTool>,
    /// `provider/id` of the model, when there is one.
    pub model: Option<String>,
    /// The thinking level in force.
    pub thinking: Option<String>,
    /// The working directory.
    pub cwd: String,
    /// SHA-256 of the whole system prompt, pi's own part about the working directory included, lower-case hex.
    pub system_sha256: String,
    /// Names of the skills that pi found. There must be none.
    pub skills: Vec<String>,
}

/// A registered tool and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTool {
    /// Its name.
    pub name: String,
    /// pi's word for the origin: `builtin`, or `cli` for an extension that was passed.
    pub source: String,
    /// `builtin:NAME`, or the path of the extension.
    pub path: String,
}
