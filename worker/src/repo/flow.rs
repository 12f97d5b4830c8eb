//! The flow's skill and the repository's own words for the prompt.

use std::path::PathBuf;

/// Where a flow's skill came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowSource {
    /// The repository's default branch.
    Repository,
    /// The operator's overlay.
    Overlay,
}

/// A flow's skill, read and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The flow's name.
    pub name: String,
    /// Where it came from.
    pub source: FlowSource,
    /// The overlay has one of the same name, which the repository's own shadows. To be logged.
    pub shadows_overlay: bool,
    /// The text of `SKILL.md` without its front matter.
    pub text: String,
    /// Its front matter says `allowed-tools`, which enforces nothing. To be said by `check` and by the run.
    pub says_allowed_tools: bool,
    /// The files of the skill's folder, for `/job/skill`; `SKILL.md` is one of them.
    pub files: Vec<SkillFile>,
    /// What was left out of `files` (links, submodules, what passed a bound), as one line each. To be logged.
    pub left_out: Vec<String>,
}

/// One file of a skill's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Where, below the skill's folder: plain segments only.
    pub path: PathBuf,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether it may be run.
    pub executable: bool,
}

/// What the prompt takes from the default branch beside the skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepoContext {
    /// `.pi/APPEND_SYSTEM.md`.
    pub append_system: Option<String>,
    /// The first of `AGENTS.override.md`, `AGENTS.md`, `CLAUDE.md` at the root: its name and its text.
    pub agents: Option<(String, String)>,
    /// What was left out (a link, too large, not text), as one line each. To be logged.
    pub left_out: Vec<String>,
}
