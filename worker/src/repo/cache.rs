//! One bare repository of ours: made by hand, cleaned before each fetch, watched while it grows.
//!
//! Each commit that was given out is held by a reference of its own, `refs/kept/ID`, so that nothing else is needed to
//! find it again. The files of references are ours and small; they are read and written without a git process, since a
//! job waits for every millisecond of it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::{GitError, RepoKey, is_commit};
use crate::disk::{self, Bounds, Measured};
use crate::folders;

/// Where a fetch leaves what it fetched.
pub(super) const FETCHED: &str = "refs/fetched/now";

/// A cache is measured so often while git fetches.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Files of a cache; a shallow one has few. More means that it was never cleaned.
const MAX_FILES: u64 = 100_000;

/// Where a commit is kept.
pub(super) fn kept(id: &str) -> String {
    format!("refs/kept/{id}")
}

/// The cache of one repository. Whoever changes it holds its lock.
pub(super) struct Cache {
    path: PathBuf,
    home: PathBuf,
}

impl Cache {
    /// Where it is; made when it is not there.
    pub(super) fn open(root: &Path, repo: &RepoKey) -> Result<Cache, GitError> {
        if !triggers::flow_name_is_safe(&repo.forge) {
            return Err(GitError::Refused("no name of a forge"));
        }
        let forge = root.join("caches").join(&repo.forge);
        let path = forge.join(format!("{}.git", repo.id));
        if !path.join("HEAD").is_file() {
            folders::private(&forge)?;
            make_repository(&path, true)?;
        }
        Ok(Cache {
            path,
            home: super::git::home(root),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a commit is here.
    pub(super) fn has(&self, id: &str) -> bool {
        is_commit(id) && self.path.join(kept(id)).is_file()
    }

    /// Readies it for a fetch: what a git that was ended has left is removed, and a cache that has grown past half of
    /// its bound begins anew.
    pub(super) async fn prepare(&self, most: u64) -> Result<(), GitError> {
        let (path, bounds) = (
            self.path.clone(),
            Bounds {
                bytes: most / 2,
                files: MAX_FILES,
            },
        );
        let measured = spawn_blocking(move || disk::measure(&path, bounds))
            .await
            .map_err(io::Error::other)?;
        match measured.map_err(io::Error::from)? {
            Measured::Fits { .. } => {}
            Measured::Over(_) => {
                self.remove()?;
                make_repository(&self.path, true)?;
            }
        }
        for leftover in [
            "shallow.lock",
            "HEAD.lock",
            "packed-refs.lock",
            "config.lock",
            FETCHED,
            "refs/fetched/now.lock",
        ] {
            remove_file(&self.path.join(leftover))?;
        }
        let packs = self.path.join("objects/pack");
        for entry in fs::read_dir(&packs)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b"tmp_") {
                remove_file(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Runs a fetch, and ends it when the cache outgrows its bound.
    pub(super) async fn watched<T>(
        &self,
        most: u64,
        fetch: impl Future<Output = Result<T, GitError>>,
    ) -> Result<T, GitError> {
        tokio::pin!(fetch);
        let bounds = Bounds {
            bytes: most,
            files: MAX_FILES,
        };
        loop {
            tokio::select! {
                biased;
                fetched = &mut fetch => {
                    let fetched = fetched?;
                    return if self.fits(bounds).await? { Ok(fetched) } else { Err(TOO_LARGE) };
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    if !self.fits(bounds).await? {
                        return Err(TOO_LARGE);
                    }
                }
            }
        }
    }

    async fn fits(&self, bounds: Bounds) -> Result<bool, GitError> {
        let path = self.path.clone();
        let measured = spawn_blocking(move || disk::measure(&path, bounds))
            .await
            .map_err(io::Error::other)?;
        Ok(matches!(measured.map_err(io::Error::from)?, Measured::Fits { .. }))
    }

    /// Gives what was fetched a reference of its own, and says which commit it is.
    pub(super) fn keep_fetched(&self) -> Result<String, GitError> {
        let mut id = String::new();
        fs::File::open(self.path.join(FETCHED))?
            .take(128)
            .read_to_string(&mut id)?;
        let id = id.trim();
        if !is_commit(id) {
            return Err(GitError::Failed("a fetch left no commit".to_owned()));
        }
        let reference = self.path.join(kept(id));
        if let Some(folder) = reference.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&reference, format!("{id}\n"))?;
        remove_file(&self.path.join(FETCHED))?;
        Ok(id.to_owned())
    }

    /// Throws it away.
    pub(super) fn remove(&self) -> Result<(), GitError> {
        match fs::remove_dir_all(&self.path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault.into()),
            _ => Ok(()),
        }
    }
}

const TOO_LARGE: GitError = GitError::TooLarge("its objects have too many bytes");

/// An empty repository, without hooks, templates or anything that the host's git would add.
pub(super) fn make_repository(path: &Path, bare: bool) -> io::Result<()> {
    for folder in ["objects/pack", "objects/info", "refs/heads"] {
        fs::create_dir_all(path.join(folder))?;
    }
    fs::write(
        path.join("config"),
        format!("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {bare}\n"),
    )?;
    // The last file that is written: a folder without it is no repository yet.
    fs::write(path.join("HEAD"), "ref: refs/heads/none\n")
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}
