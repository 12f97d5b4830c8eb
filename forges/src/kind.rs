//! Which forge software a configured forge runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The forge software, as `kind` in the configuration and in a trigger names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeKind {
    /// Forgejo (Codeberg).
    Forgejo,
    /// Gitea: the same module, with its own header names.
    Gitea,
}

impl ForgeKind {
    /// All kinds, in the order in which they are listed to people.
    pub const ALL: [Self; 2] = [Self::Forgejo, Self::Gitea];

    /// The word for it in configuration, triggers and rows.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Forgejo => "forgejo",
            Self::Gitea => "gitea",
        }
    }
}

impl fmt::Display for ForgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no forge software that we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of forge; known are `forgejo` and `gitea`")]
pub struct UnknownKind;

impl FromStr for ForgeKind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.word() == word)
            .ok_or(UnknownKind)
    }
}
