//! The files of `/job`: what one attempt is told, read-only in its container.
//!
//! The folder is made by [`crate::folders`] under a parent that only the worker may enter. Files are 0644 and folders
//! 0755, whatever the process's mask: the job's user must read them, and the mount is read-only. Nothing is written
//! over: a file that is there already is a fault.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};

use contract::{JobFile, ToolsFile, limits};
use serde::Serialize;

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
    let job = json("job.json", files.job)?;
    let tools = json("tools.json", files.tools)?;
    let texts: [(&'static str, &[u8], usize); 6] = [
        ("job.json", &job, limits::INPUT_FILE),
        ("system.md", files.system.as_bytes(), limits::PROMPT_FILE),
        ("prompt.md", files.first_message.as_bytes(), limits::PROMPT_FILE),
        ("event.json", &json("event.json", files.event)?, limits::PROMPT_FILE),
        ("tools.json", &tools, limits::INPUT_FILE),
        ("models.json", &json("models.json", files.models)?, limits::INPUT_FILE),
    ];
    for (file, bytes, max) in texts {
        if bytes.len() > max {
            return Err(JobDirError::TooLarge {
                file,
                bytes: bytes.len(),
                max,
            });
        }
        put(&dir.join(file), bytes, 0o644).map_err(host(file))?;
    }

    let skill = dir.join("skill");
    folder(&skill).map_err(host("skill"))?;
    for file in files.skill {
        let name = || format!("skill/{}", triggers::visible(&file.path.to_string_lossy()));
        if !is_plain(&file.path) {
            return Err(JobDirError::Path);
        }
        let mut at = skill.clone();
        for part in file.path.parent().into_iter().flat_map(Path::components) {
            at.push(part);
            if !at.is_dir() {
                folder(&at).map_err(host(&name()))?;
            }
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        put(&skill.join(&file.path), &file.bytes, mode).map_err(host(&name()))?;
    }
    Ok(())
}

fn json(file: &'static str, value: &impl Serialize) -> Result<Vec<u8>, JobDirError> {
    serde_json::to_vec_pretty(value).map_err(|fault| JobDirError::Json { file, fault })
}

fn host(file: &str) -> impl FnOnce(io::Error) -> JobDirError {
    let file = file.to_owned();
    move |fault| JobDirError::Host { file, fault }
}

/// One name after another, none of them `.` or `..`, no root.
fn is_plain(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

fn folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// The mode is set again behind the process's mask.
fn put(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use contract::{ApiShape, JOB_FILE_VERSION, JobLimits, ProposalTool, Thinking, Tool};
    use serde_json::json;

    use super::*;

    fn job() -> JobFile {
        JobFile {
            version: JOB_FILE_VERSION,
            job: 7,
            attempt: 1,
            exclude_tools: vec![Tool::Bash],
            provider: "local".to_owned(),
            model: "small".to_owned(),
            api: ApiShape::OpenaiCompletions,
            thinking: Thinking::Off,
            limits: JobLimits::default(),
            proposals: vec!["forge_comment".to_owned()],
            system_sha256: "aa".to_owned(),
            prompt_sha256: "bb".to_owned(),
        }
    }

    fn write_with(dir: &Path, system: &str, skill: &[SkillFile]) -> Result<(), JobDirError> {
        let (job, tools) = (job(), ToolsFile::new(vec![ProposalTool::forge_comment()]));
        let (event, models) = (json!({ "said": "hello" }), json!({ "providers": {} }));
        let files = JobFiles {
            job: &job,
            system,
            first_message: "first",
            event: &event,
            tools: &tools,
            models: &models,
            skill,
        };
        write(dir, &files)
    }

    fn file(path: &str, executable: bool) -> SkillFile {
        SkillFile {
            path: PathBuf::from(path),
            bytes: path.as_bytes().to_vec(),
            executable,
        }
    }

    #[test]
    fn everything_is_there_and_readable_by_the_jobs_user() {
        let dir = tempfile::tempdir().unwrap();

        write_with(
            dir.path(),
            "system",
            &[file("SKILL.md", false), file("scripts/deep/run.sh", true)],
        )
        .unwrap();

        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        assert_eq!(JobFile::parse(&read("job.json")).unwrap(), job());
        assert_eq!(read("system.md"), b"system");
        assert_eq!(read("prompt.md"), b"first");
        assert_eq!(read("skill/scripts/deep/run.sh"), b"scripts/deep/run.sh");
        for (name, mode) in [
            ("job.json", 0o644),
            ("system.md", 0o644),
            ("prompt.md", 0o644),
            ("event.json", 0o644),
            ("tools.json", 0o644),
            ("models.json", 0o644),
            ("skill", 0o755),
            ("skill/SKILL.md", 0o644),
            ("skill/scripts/deep", 0o755),
            ("skill/scripts/deep/run.sh", 0o755),
        ] {
            let found = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{name}");
        }
    }

    #[test]
    fn a_skill_cannot_leave_its_folder() {
        for path in ["../x", "/etc/x", "a/../../x", "", "."] {
            let dir = tempfile::tempdir().unwrap();
            let result = write_with(dir.path(), "system", &[file(path, false)]);
            assert!(matches!(result, Err(JobDirError::Path)), "{path:?}: {result:?}");
        }
    }

    #[test]
    fn nothing_is_written_over_and_no_link_is_written_through() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = other.path().join("target");
        symlink(&target, dir.path().join("system.md")).unwrap();

        let result = write_with(dir.path(), "system", &[]);

        assert!(matches!(result, Err(JobDirError::Host { .. })), "{result:?}");
        assert!(!target.exists());
    }

    #[test]
    fn what_the_runner_would_not_read_is_not_written() {
        let dir = tempfile::tempdir().unwrap();

        let result = write_with(dir.path(), &"x".repeat(limits::PROMPT_FILE + 1), &[]);

        assert!(
            matches!(result, Err(JobDirError::TooLarge { file: "system.md", .. })),
            "{result:?}"
        );
    }
}
