//! pi's built-in tools: the only names that `run.excludeTools` may hold.
//!
//! Source: pi 1.6.0, `dist/core/tools/*`. A test of the job image compares names, activity and snippets with the real
//! pi; what the real pi had when the image was built stands in the image itself ([`crate::BuiltinTools`]).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A built-in tool of the pinned pi.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// Reads a file.
    Read,
    /// Runs a command in bash.
    Bash,
    /// Runs a command in PowerShell. Registered on Linux too.
    Powershell,
    /// Replaces text in a file.
    Edit,
    /// Writes a file.
    Write,
    /// Searches the contents of files.
    Grep,
    /// Finds files by name.
    Find,
    /// Lists a directory.
    Ls,
}

impl Tool {
    /// All eight, in the order in which every refusal prints them.
    pub const ALL: [Tool; 8] = [
        Tool::Read,
        Tool::Bash,
        Tool::Powershell,
        Tool::Edit,
        Tool::Write,
        Tool::Grep,
        Tool::Find,
        Tool::Ls,
    ];

    /// The name, exactly as pi and the triggers file spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Bash => "bash",
            Tool::Powershell => "powershell",
            Tool::Edit => "edit",
            Tool::Write => "write",
            Tool::Grep => "grep",
            Tool::Find => "find",
            Tool::Ls => "ls",
        }
    }

    /// The tool of that exact name. Case counts: pi silently ignores `Bash`, so we never accept it.
    pub fn from_name(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether a session has it active without being asked. The others are registered and inactive, and excluding
    /// them still counts: nothing in the job can activate what is not in the registry.
    pub const fn default_active(self) -> bool {
        matches!(self, Tool::Read | Tool::Bash | Tool::Edit | Tool::Write)
    }

    /// The line with which pi's own prompt introduces it. Our prompt replaces pi's, so it repeats the line.
    pub const fn snippet(self) -> &'static str {
        match self {
            Tool::Read => "Read file contents",
            Tool::Bash => "Execute bash commands (ls, grep, find, etc.)",
            Tool::Powershell => "Execute PowerShell commands",
            Tool::Edit => {
                "Make precise file edits with exact text replacement, including multiple disjoint edits in one call"
            }
            Tool::Write => "Create or overwrite files",
            Tool::Grep => "Search file contents for patterns (respects .gitignore)",
            Tool::Find => "Find files by glob pattern (respects .gitignore)",
            Tool::Ls => "List directory contents",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No built-in tool has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pi {} has no built-in tool of that name", crate::PI_VERSION)]
pub struct UnknownTool;

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Tool::from_name(name).ok_or(UnknownTool)
    }
}

/// What a session must have registered: all built-in tools without the excluded ones, and the proposing tools; sorted.
pub fn expected_registered<'a>(excluded: &[Tool], proposing: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    expected(|_| true, excluded, proposing)
}

/// What a session must have active: pi's default four without the excluded ones, and the proposing tools; sorted.
pub fn expected_active<'a>(excluded: &[Tool], proposing: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    expected(Tool::default_active, excluded, proposing)
}

fn expected<'a>(of: fn(Tool) -> bool, excluded: &[Tool], proposing: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let left = Tool::ALL
        .into_iter()
        .filter(|tool| of(*tool) && !excluded.contains(tool));
    let mut names: Vec<String> = left.map(|tool| tool.name().to_owned()).collect();
    names.extend(proposing.into_iter().map(str::to_owned));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_found_by_its_own_name_and_by_no_other() {
        for tool in Tool::ALL {
            assert_eq!(Tool::from_name(tool.name()), Some(tool));
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.name());
        }
        for near in ["Bash", "bash ", "BASH", "shell", "", "bash,read", "*"] {
            assert_eq!(Tool::from_name(near), None, "{near:?}");
        }
    }

    #[test]
    fn excluding_an_inactive_tool_changes_what_must_be_registered_and_not_what_must_be_active() {
        assert_eq!(expected_active(&[Tool::Grep], []), ["bash", "edit", "read", "write"]);
        assert_eq!(
            expected_registered(&[Tool::Grep], []),
            ["bash", "edit", "find", "ls", "powershell", "read", "write"]
        );
    }

    #[test]
    fn proposing_tools_stay_when_all_eight_are_excluded() {
        assert_eq!(expected_active(&Tool::ALL, ["forge_comment"]), ["forge_comment"]);
        assert_eq!(expected_registered(&Tool::ALL, ["forge_comment"]), ["forge_comment"]);
    }
}
