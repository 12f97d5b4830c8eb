//! Repositories on the host: fetched into bare caches of our own, read as objects, copied into workspaces.
//!
//! `DATA/git/FORGE/ID.git` holds, shallow, the commits that jobs were given. git runs only there and only as this module
//! starts it: no system or user configuration, no hooks, filters or prompts, `https` alone (`http` to loopback),
//! redirects off, the token in the environment and never in an argument. What is read of a commit is read as objects:
//! nothing is ever checked out where we look, and a link or a submodule is refused, not followed.
//!
//! A workspace is a clone without remote or credential that belongs to the job's user. From the moment a job has it,
//! no git of ours runs in it again: its `.git/config` is the job's code.
//!
//! Fails with [`GitError`], one variant per reaction: only [`GitError::Missing`] and [`GitError::Forbidden`] are the
//! repository's answer; everything else is worth another try. Source of what git does: 2.39, tried.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::RwLock;

use cache::Cache;
pub use flow::{Flow, FlowSource, RepoContext, SkillFile};
use git::Git;
pub use objects::{Blob, Listing, ListingBounds};

mod cache;
mod flow;
mod git;
#[cfg(test)]
mod http_tests;
mod objects;
#[cfg(test)]
mod tests;

/// How git is run here.
#[derive(Debug, Clone)]
pub struct GitSettings {
    /// A fetch that takes longer is ended.
    pub fetch_timeout: Duration,
    /// Any other git that takes longer is ended.
    pub local_timeout: Duration,
    /// Bytes that one cache may hold. A cache that has more is thrown away and fetched anew; if it still has more, the
    /// repository is [`GitError::TooLarge`].
    pub max_cache: u64,
    /// Bytes that the files of a commit may have together in a workspace.
    pub max_tree: u64,
    /// Files that a commit may have.
    pub max_files: u64,
}

impl Default for GitSettings {
    fn default() -> Self {
        GitSettings {
            fetch_timeout: Duration::from_secs(5 * 60),
            local_timeout: Duration::from_secs(60),
            max_cache: 2 << 30,
            max_tree: 1 << 30,
            max_files: 200_000,
        }
    }
}

/// Which repository: the forge's configured name and its number there. Names of repositories move, numbers do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepoKey {
    /// The forge's configured name.
    pub forge: String,
    /// The repository's number there.
    pub id: i64,
}

/// What to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// The head of a branch.
    Branch(String),
    /// One commit by its full id.
    Commit(String),
    /// The head of a pull request, by its number.
    PullRequest(i64),
}

/// A commit that is in its repository's cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit {
    /// Where it is.
    pub repo: RepoKey,
    /// Its full id, lower-case hex.
    pub id: String,
}

/// What git could not do.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The forge says that there is no such repository (404).
    #[error("the forge knows no such repository")]
    Missing,
    /// The forge does not let our token read it (403).
    #[error("our token may not read the repository")]
    Forbidden,
    /// The forge does not know our token (401, or it asks for a name): a fault of the set-up, to be waited for.
    #[error("the forge does not take our token")]
    Unauthorized,
    /// The repository is there, what was wanted is not.
    #[error("the repository has no such branch or commit")]
    NoSuchRef,
    /// The repository's address moved: the forge answered with a redirect, which is not followed.
    #[error("the repository is no longer at this address")]
    Moved,
    /// The forge cannot be reached, or it failed.
    #[error("the forge could not be reached over git: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("git took longer than {0:?}")]
    TimedOut(Duration),
    /// More than this host takes.
    #[error("the repository is larger than this worker takes: {0}")]
    TooLarge(&'static str),
    /// An address that is neither `https` nor loopback, or a name that git could take for an option.
    #[error("the address or name is not one that git is given here: {0}")]
    Refused(&'static str),
    /// git ended otherwise. The text is git's own, bounded, without the token.
    #[error("git failed: {0}")]
    Failed(String),
    /// The host's file system, or git is not installed.
    #[error("the host could not run git: {0}")]
    Host(#[from] std::io::Error),
}

/// The caches of this host. Clones share the locks; a data folder belongs to one worker.
#[derive(Debug, Clone)]
pub struct Repos {
    root: PathBuf,
    settings: GitSettings,
    /// One lock per cache: a fetch has it alone, readers share it.
    locks: Arc<Mutex<HashMap<RepoKey, Arc<RwLock<()>>>>>,
    /// Tests fetch from folders.
    local_remotes: bool,
}

impl Repos {
    /// The caches under `DATA/git`, which is made private to us.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(data_dir: &Path, settings: GitSettings) -> Result<Repos, GitError> {
        let root = std::path::absolute(data_dir)?.join("git");
        crate::folders::private(&root)?;
        crate::folders::private(&git::home(&root))?;
        Ok(Repos {
            root,
            settings,
            locks: Arc::default(),
            local_remotes: false,
        })
    }

    /// As [`Repos::new`], and `file://` addresses may be fetched from.
    #[cfg(test)]
    fn with_local_remotes(data_dir: &Path, settings: GitSettings) -> Result<Repos, GitError> {
        Ok(Repos {
            local_remotes: true,
            ..Repos::new(data_dir, settings)?
        })
    }

    /// Fetches one commit, shallow. Two fetches of one repository wait for each other; a commit that is there already
    /// is not fetched again.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn fetch(&self, repo: &RepoKey, remote: &forges::GitRemote, want: &Want) -> Result<Commit, GitError> {
        let protocol = git::protocol(&remote.url, self.local_remotes)?;
        let reference = want.reference()?;
        let lock = self.lock(repo);
        let _alone = lock.write().await;

        let cache = self.cache(repo)?;
        let commit = |id| Commit { repo: repo.clone(), id };
        if let Want::Commit(id) = want
            && cache.has(id)
        {
            return Ok(commit(id.clone()));
        }
        cache.prepare(self.settings.max_cache).await?;
        let git = Git {
            header: Some(&remote.header),
            protocol,
            timeout: self.settings.fetch_timeout,
            ..self.git(&cache)
        };
        let refspec = format!("+{reference}:{}", cache::FETCHED);
        let arguments = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--force",
            "--end-of-options",
            remote.url.as_str(),
            refspec.as_str(),
        ];
        let fetched = cache
            .watched(self.settings.max_cache, git.run(&arguments, None, 64 * 1024))
            .await;
        match fetched {
            Ok(_) => cache.keep_fetched().map(commit),
            Err(fault) => {
                // What cannot be told from a damaged cache is not worth keeping: the next fetch begins anew.
                if matches!(fault, GitError::Failed(_) | GitError::TooLarge(_)) {
                    cache.remove()?;
                }
                Err(fault)
            }
        }
    }

    /// Reads one file of a commit, with its size capped. `None` when nothing is there.
    ///
    /// # Errors
    /// See [`GitError`]; what stands there instead of a file is an answer ([`Blob`]).
    pub async fn blob(&self, commit: &Commit, path: &str, max: u64) -> Result<Option<Blob>, GitError> {
        let mut blobs = self.blobs(commit, &[path], max).await?;
        Ok(blobs.pop().flatten())
    }

    /// Reads several files of a commit, each with its size capped, in the order asked for.
    ///
    /// # Errors
    /// As [`Repos::blob`].
    pub async fn blobs(&self, commit: &Commit, paths: &[&str], max: u64) -> Result<Vec<Option<Blob>>, GitError> {
        let lock = self.lock(&commit.repo);
        let _shared = lock.read().await;
        let cache = self.cache(&commit.repo)?;
        let git = self.git(&cache);

        let entries = objects::entries(&git, &commit.id, paths).await?;
        let at = |path: &&str| entries.iter().find(|entry| entry.path == path.as_bytes());
        let found: Vec<_> = paths.iter().map(at).collect();
        let readable: Vec<_> = found
            .iter()
            .flatten()
            .copied()
            .filter(|entry| entry.is_file() && entry.size <= max)
            .collect();
        let most = readable.iter().map(|entry| entry.size).sum();
        let mut contents = objects::contents(&git, &readable, most).await?.into_iter();

        let mut blob = |entry: &objects::Entry| {
            if !entry.is_file() {
                return Some(Blob::NotAFile);
            }
            if entry.size > max {
                return Some(Blob::TooLarge(entry.size));
            }
            contents.next().map(|bytes| Blob::File {
                bytes,
                executable: entry.mode == objects::Mode::Executable,
            })
        };
        Ok(found.into_iter().map(|entry| entry.and_then(&mut blob)).collect())
    }

    /// The names of a commit's files, bounded.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn listing(&self, commit: &Commit, bounds: ListingBounds) -> Result<Listing, GitError> {
        let lock = self.lock(&commit.repo);
        let _shared = lock.read().await;
        let cache = self.cache(&commit.repo)?;
        // A line of `ls-tree` has about 70 bytes beside the name.
        let most = bounds.bytes.saturating_add(bounds.files.saturating_mul(80));
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let (entries, mut cut) = objects::entries_beneath(&self.git(&cache), &commit.id, None, most).await?;

        let mut names = Vec::new();
        let mut bytes = 0;
        for entry in &entries {
            bytes += entry.path.len();
            if names.len() >= bounds.files || bytes > bounds.bytes {
                cut = true;
                break;
            }
            names.push(String::from_utf8_lossy(&entry.path).into_owned());
        }
        Ok(Listing { names, cut })
    }

    /// The flow's skill: the commit's own, else the overlay's, else `None`. Give it the default branch's commit.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn flow(&self, commit: &Commit, name: &str, overlay: Option<&Path>) -> Result<Option<Flow>, GitError> {
        flow::find(self, commit, name, overlay).await
    }

    /// What the prompt takes from a repository beside the skill. Give it the default branch's commit.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn context(&self, commit: &Commit) -> Result<RepoContext, GitError> {
        flow::context(self, commit).await
    }

    /// Makes the workspace: a shallow clone of that commit, checked out, with no remote, no credential and no hook.
    ///
    /// `dir` must be there, empty, ours, and under a folder that only we may enter. Handing it to the job's user is the
    /// last step and the caller's ([`crate::folders`]): after it, no git of ours may run there.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn workspace(&self, commit: &Commit, dir: &Path) -> Result<(), GitError> {
        let lock = self.lock(&commit.repo);
        let _shared = lock.read().await;
        let cache = self.cache(&commit.repo)?;
        self.fits(&cache, commit).await?;

        let git_dir = std::path::absolute(dir)?.join(".git");
        cache::make_repository(&git_dir, false)?;
        fs::write(git_dir.join("HEAD"), format!("ref: {WORK_BRANCH}\n"))?;
        let git = Git {
            git_dir: &git_dir,
            work_tree: Some(dir),
            protocol: "file",
            ..self.git(&cache)
        };
        let from = git::file_url(cache.path())?;
        let refspec = format!("{}:{WORK_BRANCH}", cache::kept(&commit.id));
        let arguments = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--update-head-ok",
            "--end-of-options",
            from.as_str(),
            refspec.as_str(),
        ];
        git.run(&arguments, None, 64 * 1024).await?;
        git.run(
            &["checkout", "--quiet", "--force", WORK_BRANCH_NAME, "--"],
            None,
            64 * 1024,
        )
        .await?;
        Ok(())
    }

    /// A tree can say that it has a billion files in a few kilobytes: it is counted before it is written out.
    async fn fits(&self, cache: &Cache, commit: &Commit) -> Result<(), GitError> {
        let git = self.git(cache);
        let most = self.settings.max_files.saturating_mul(200);
        let (entries, cut) = objects::entries_beneath(&git, &commit.id, None, most).await?;
        let files = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        if cut || files > self.settings.max_files {
            return Err(GitError::TooLarge("it has too many files"));
        }
        let bytes = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        if bytes > self.settings.max_tree {
            return Err(GitError::TooLarge("its files have too many bytes"));
        }
        Ok(())
    }

    fn git<'a>(&'a self, cache: &'a Cache) -> Git<'a> {
        Git {
            git_dir: cache.path(),
            work_tree: None,
            home: cache.home(),
            header: None,
            protocol: "none",
            timeout: self.settings.local_timeout,
        }
    }

    fn cache(&self, repo: &RepoKey) -> Result<Cache, GitError> {
        Cache::open(&self.root, repo)
    }

    fn lock(&self, repo: &RepoKey) -> Arc<RwLock<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(repo.clone()).or_default().clone()
    }
}

/// The one branch of a workspace.
const WORK_BRANCH: &str = "refs/heads/work";
const WORK_BRANCH_NAME: &str = "work";

impl Want {
    /// What stands on the left of a refspec, when it is a name that git takes for nothing else.
    fn reference(&self) -> Result<String, GitError> {
        match self {
            Want::Branch(name) if is_branch(name) => Ok(format!("refs/heads/{name}")),
            Want::Branch(_) => Err(GitError::Refused("no name of a branch")),
            Want::Commit(id) if is_commit(id) => Ok(id.clone()),
            Want::Commit(_) => Err(GitError::Refused("no full id of a commit")),
            Want::PullRequest(number) if *number > 0 => Ok(format!("refs/pull/{number}/head")),
            Want::PullRequest(_) => Err(GitError::Refused("no number of a pull request")),
        }
    }
}

/// git's own rules for names (`git check-ref-format`), and none that begins like an option.
fn is_branch(name: &str) -> bool {
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    !name.is_empty()
        && name.len() <= 255
        && !name.contains(odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.split('/').all(|part| {
            !part.is_empty() && !part.starts_with('.') && !part.starts_with('-') && !part.ends_with(".lock")
        })
}

fn is_commit(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
