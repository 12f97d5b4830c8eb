//! The files of `/job`: what one attempt is told, read-only in its container.
//!
//! The folder is made by [`crate::folders`] under a parent that only the worker may enter. Files are 0644 and folders
//! 0755, whatever the process's mask: the job's user must read them, and the mount is read-only. Nothing is written
//! over: a file that is there already is a fault.

use std::path::Path;

use contract::{JobFile, ToolsFile};

use crate::repo::SkillFile;

/// What goes into `/job`.
#[derive(Debug, Clone, Copy)]
pub struct JobFiles<'a> {
    /// `job.json`.
    pub job: &'a JobFile,
    /// `system.md`.
    pub system: &'a str,
    /// `prompt.md`.
    pub first_message: &'a str,
    /// `event.json`: the confirmed event as data.
    pub event: &'a serde_json::Value,
    /// `tools.json`.
    pub tools: &'a ToolsFile,
    /// `models.json`.
    pub models: &'a serde_json::Value,
    /// `skill/`.
    pub skill: &'a [SkillFile],
}

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum JobDirError {
    /// The host's file system.
    #[error("{file}: {fault}")]
    Host {
        /// Which file, below `/job`.
        file: String,
        /// What happened.
        fault: std::io::Error,
    },
    /// More than the runner reads.
    #[error("{file} has {bytes} bytes, the runner reads {max}")]
    TooLarge {
        /// Which file.
        file: &'static str,
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        max: usize,
    },
    /// A value that cannot be written as JSON. A fault of ours.
    #[error("{file}: {fault}")]
    Json {
        /// Which file.
        file: &'static str,
        /// What serde says.
        fault: serde_json::Error,
    },
    /// A path of a skill's file that leaves its folder.
    #[error("a file of the skill has a path that leaves its folder")]
    Path,
}

/// Writes them into `dir`, which is there and empty. Blocking: call it through `spawn_blocking`.
///
/// # Errors
/// See [`JobDirError`].
pub fn write(dir: &Path, files: &JobFiles<'_>) -> Result<(), JobDirError> {
    let _ = (dir, files);
    todo!()
}
