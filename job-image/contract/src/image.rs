//! What an image says about itself.

use serde::{Deserialize, Serialize};

use crate::{Tool, labels};

/// Something that a job may need and an image may lack. An inclusion list: an image without the label has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// The runner reads [`crate::EXCLUDE_TOOLS_VARIABLE`] and proves the exclusions.
    ExcludeTools,
    /// The bridge registers the tools of `/job/tools.json` and the runner forwards what they propose.
    Proposals,
}

impl Capability {
    /// All of them: what the image of this tree has.
    pub const ALL: [Capability; 2] = [Capability::ExcludeTools, Capability::Proposals];

    /// The token in the label. Exact, case included.
    pub const fn token(self) -> &'static str {
        match self {
            Capability::ExcludeTools => "excludeTools",
            Capability::Proposals => "proposals",
        }
    }

    /// The kebab-case form, as in `job-image-<capability>-unsupported`.
    pub const fn word(self) -> &'static str {
        match self {
            Capability::ExcludeTools => "exclude-tools",
            Capability::Proposals => "proposals",
        }
    }

    /// Whether a value of the label [`labels::CAPABILITIES`] holds it. Tokens are exact: no trimming, no case folding.
    pub fn is_in(self, label: &str) -> bool {
        label.split(',').any(|token| token == self.token())
    }

    /// The label's value for an image that has all of them.
    pub fn label() -> (&'static str, String) {
        (labels::CAPABILITIES, Capability::ALL.map(Capability::token).join(","))
    }
}

/// The file [`crate::paths::BUILTIN_TOOLS`]: what the real pi had built in when the image was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinTools {
    /// What `pi --version` printed.
    pub pi: String,
    /// Its tools, in pi's order.
    pub tools: Vec<BuiltinTool>,
}

/// One of pi's own tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinTool {
    /// pi's name for it.
    pub name: String,
    /// Active in a session that nobody asked for anything.
    pub active: bool,
    /// pi's own line about it.
    pub snippet: String,
}

impl BuiltinTools {
    /// The list that this tree was written for.
    pub fn pinned() -> BuiltinTools {
        let tools = Tool::ALL.into_iter().map(|tool| BuiltinTool {
            name: tool.name().to_owned(),
            active: tool.default_active(),
            snippet: tool.snippet().to_owned(),
        });
        BuiltinTools {
            pi: crate::PI_VERSION.to_owned(),
            tools: tools.collect(),
        }
    }

    /// Whether pi has a tool of exactly that name.
    pub fn knows(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_an_exact_token_of_the_label() {
        let has = |label| Capability::ExcludeTools.is_in(label);
        assert!(has("excludeTools"));
        assert!(has("proposals,excludeTools"));
        for without in [
            "",
            "excludetools",
            "excludeTools2",
            " excludeTools",
            "notexcludeTools,x",
            "exclude,Tools",
        ] {
            assert!(!has(without), "{without:?}");
        }
    }

    #[test]
    fn the_label_of_this_tree_holds_every_capability() {
        let (name, value) = Capability::label();
        assert_eq!(
            (name, value.as_str()),
            ("dev.pi-dispatch.capabilities", "excludeTools,proposals")
        );
    }
}
