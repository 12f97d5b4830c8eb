//! The flow's skill and the repository's own words for the prompt.
//!
//! Both come from the default branch's commit, as objects: never from a workspace, never from a pull request's head.
//! The operator's overlay is read from the host's disk; links in it are refused all the same, so that what `/job/skill`
//! holds is what stands in that folder.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::objects::{self, Blob, Entry, Mode};
use super::{Commit, GitError, Repos};

/// `SKILL.md`, `APPEND_SYSTEM.md`, `AGENTS.md` and its like: bytes of each.
const MAX_TEXT: u64 = 64 * 1024;
/// Files of a skill's folder.
const MAX_FILES: usize = 100;
/// Bytes of one of them.
const MAX_FILE: u64 = 512 * 1024;
/// Bytes of all of them.
const MAX_FOLDER: u64 = 2 * 1024 * 1024;
/// Folders within a skill's folder.
const MAX_DEPTH: usize = 8;
/// Notes about what was left out.
const MAX_NOTES: usize = 20;

const SKILL: &str = "SKILL.md";
const APPEND_SYSTEM: &str = ".pi/APPEND_SYSTEM.md";
/// The first that is there is taken.
const AGENTS: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];

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

pub(super) async fn find(
    repos: &Repos,
    commit: &Commit,
    name: &str,
    overlay: Option<&Path>,
) -> Result<Option<Flow>, GitError> {
    if !triggers::flow_name_is_safe(name) {
        return Err(GitError::Refused("no name of a flow"));
    }
    let in_overlay = overlay.map(|overlay| overlay.join("skills").join(name));
    let has_overlay = in_overlay.as_deref().is_some_and(|folder| is_file(&folder.join(SKILL)));

    let (files, mut left_out) = from_repository(repos, commit, name).await?;
    if let Some(text) = skill_text(&files, &mut left_out) {
        return Ok(Some(flow(
            name,
            FlowSource::Repository,
            has_overlay,
            &text,
            files,
            left_out,
        )));
    }
    let Some(folder) = in_overlay.filter(|_| has_overlay) else {
        return Ok(None);
    };
    let (files, more) = tokio::task::spawn_blocking(move || from_overlay(&folder))
        .await
        .map_err(std::io::Error::other)??;
    left_out.extend(more);
    let text = skill_text(&files, &mut left_out);
    Ok(text.map(|text| flow(name, FlowSource::Overlay, false, &text, files, left_out)))
}

fn flow(
    name: &str,
    source: FlowSource,
    shadows_overlay: bool,
    whole: &str,
    files: Vec<SkillFile>,
    mut left_out: Vec<String>,
) -> Flow {
    let (front, text) = front_matter(whole);
    left_out.truncate(MAX_NOTES);
    Flow {
        name: name.to_owned(),
        source,
        shadows_overlay,
        text: text.trim().to_owned(),
        says_allowed_tools: front.lines().any(says_allowed_tools),
        files,
        left_out,
    }
}

/// The text of `SKILL.md`; an empty one is no flow.
fn skill_text(files: &[SkillFile], left_out: &mut Vec<String>) -> Option<String> {
    let skill = files.iter().find(|file| file.path == Path::new(SKILL))?;
    if u64::try_from(skill.bytes.len()).is_ok_and(|bytes| bytes > MAX_TEXT) {
        left_out.push(format!("{SKILL}: it has more than {MAX_TEXT} bytes"));
        return None;
    }
    match std::str::from_utf8(&skill.bytes) {
        Ok(text) if !front_matter(text).1.trim().is_empty() => Some(text.to_owned()),
        Ok(_) => {
            left_out.push(format!("{SKILL}: it says nothing"));
            None
        }
        Err(_) => {
            left_out.push(format!("{SKILL}: it is not UTF-8"));
            None
        }
    }
}

/// What stands between a first line `---` and the next such line, and what follows it.
fn front_matter(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')))
    else {
        return ("", text);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (&rest[..at], &rest[at + line.len()..]);
        }
        at += line.len();
    }
    // Never closed: then it is text.
    ("", text)
}

fn says_allowed_tools(line: &str) -> bool {
    let key = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    line.contains(':')
        && matches!(
            key.as_str(),
            "allowed-tools" | "allowed_tools" | "allowedtools" | "tools"
        )
}

async fn from_repository(
    repos: &Repos,
    commit: &Commit,
    name: &str,
) -> Result<(Vec<SkillFile>, Vec<String>), GitError> {
    let folder = format!(".pi/skills/{name}");
    let lock = repos.lock(&commit.repo);
    let _shared = lock.read().await;
    let cache = repos.cache(&commit.repo)?;
    let git = repos.git(&cache);
    let (entries, cut) = objects::entries_beneath(&git, &commit.id, Some(&folder), 256 * 1024).await?;

    let mut chosen = Chosen::default();
    if cut {
        chosen.leave_out("the folder", "it has too many files");
    }
    let picked: Vec<(&Entry, PathBuf)> = entries
        .iter()
        .filter_map(|entry| chosen.entry(&folder, entry))
        .collect();
    let blobs: Vec<&Entry> = picked.iter().map(|(entry, _)| *entry).collect();
    let contents = objects::contents(&git, &blobs, MAX_FOLDER).await?;
    let files = picked
        .into_iter()
        .zip(contents)
        .map(|((entry, path), bytes)| SkillFile {
            path,
            bytes,
            executable: entry.mode == Mode::Executable,
        });
    Ok((files.collect(), chosen.left_out))
}

/// What was taken so far, and what was not.
#[derive(Default)]
struct Chosen {
    files: usize,
    bytes: u64,
    left_out: Vec<String>,
}

impl Chosen {
    fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.len() < MAX_NOTES {
            let name: String = name.chars().take(200).collect();
            self.left_out.push(format!("{}: {why}", triggers::visible(&name)));
        }
    }

    fn entry<'a>(&mut self, folder: &str, entry: &'a Entry) -> Option<(&'a Entry, PathBuf)> {
        let name = String::from_utf8_lossy(&entry.path).into_owned();
        if !entry.is_file() {
            self.leave_out(&name, "it is a link or a submodule");
            return None;
        }
        let path = std::str::from_utf8(&entry.path)
            .ok()?
            .strip_prefix(folder)?
            .strip_prefix('/')?;
        self.take(path, entry.size).then(|| (entry, PathBuf::from(path)))
    }

    /// Whether one more file fits. `SKILL.md` is always looked at first by its readers, not here.
    fn take(&mut self, path: &str, size: u64) -> bool {
        let plain = path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains('\0'));
        if !plain || path.split('/').count() > MAX_DEPTH {
            self.leave_out(path, "its path is not plain, or too deep");
        } else if size > MAX_FILE {
            self.leave_out(path, "it is too large");
        } else if self.files >= MAX_FILES || self.bytes + size > MAX_FOLDER {
            self.leave_out(path, "the folder has more than a skill may have");
        } else {
            self.files += 1;
            self.bytes += size;
            return true;
        }
        false
    }
}

/// The overlay's folder, in the order of its names.
fn from_overlay(folder: &Path) -> Result<(Vec<SkillFile>, Vec<String>), std::io::Error> {
    let mut chosen = Chosen::default();
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(folder.join(&inner))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = inner.join(entry.file_name());
            let name = path.to_string_lossy().into_owned();
            let found = entry.path().symlink_metadata()?;
            if found.is_dir() && path.components().count() < MAX_DEPTH {
                folders.push(path);
            } else if !found.is_file() {
                chosen.leave_out(&name, "it is a link, or no file");
            } else if chosen.take(&name, found.len()) {
                let mut bytes = Vec::new();
                fs::File::open(entry.path())?.take(MAX_FILE).read_to_end(&mut bytes)?;
                let executable = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o100 != 0;
                files.push(SkillFile {
                    path,
                    bytes,
                    executable,
                });
            }
        }
    }
    Ok((files, chosen.left_out))
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

pub(super) async fn context(repos: &Repos, commit: &Commit) -> Result<RepoContext, GitError> {
    let mut paths = vec![APPEND_SYSTEM];
    paths.extend(AGENTS);
    let mut blobs = repos.blobs(commit, &paths, MAX_TEXT).await?.into_iter();

    let mut context = RepoContext::default();
    context.append_system = blobs
        .next()
        .flatten()
        .and_then(|blob| text_of(APPEND_SYSTEM, blob, &mut context.left_out));
    for (name, blob) in AGENTS.into_iter().zip(blobs) {
        // The first that is there decides, also when it cannot be read: the next would be another file's words.
        if let Some(blob) = blob {
            context.agents = text_of(name, blob, &mut context.left_out).map(|text| (name.to_owned(), text));
            break;
        }
    }
    Ok(context)
}

fn text_of(name: &str, blob: Blob, left_out: &mut Vec<String>) -> Option<String> {
    let why = match blob {
        Blob::File { bytes, .. } => match String::from_utf8(bytes) {
            Ok(text) => return Some(text).filter(|text| !text.trim().is_empty()),
            Err(_) => "it is not UTF-8",
        },
        Blob::TooLarge(_) => "it is too large",
        Blob::NotAFile => "it is a link, a submodule or a folder",
    };
    left_out.push(format!("{name}: {why}"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_cut_off_only_where_it_is_closed() {
        assert_eq!(front_matter("---\nname: x\n---\ntext"), ("name: x\n", "text"));
        assert_eq!(front_matter("---\r\nname: x\r\n---\r\ntext"), ("name: x\r\n", "text"));
        assert_eq!(front_matter("---\nnever closed"), ("", "---\nnever closed"));
        assert_eq!(front_matter("----\nx\n---\n"), ("", "----\nx\n---\n"));
        assert_eq!(front_matter("text\n---\nx\n---\n"), ("", "text\n---\nx\n---\n"));
        assert_eq!(front_matter(""), ("", ""));
    }

    #[test]
    fn allowed_tools_of_a_skill_are_noticed() {
        assert!(says_allowed_tools("allowed-tools: read"));
        assert!(says_allowed_tools("  Allowed_Tools : [bash]"));
        assert!(!says_allowed_tools("description: says allowed-tools"));
    }
}
