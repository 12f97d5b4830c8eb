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

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use flow::{Flow, FlowSource, RepoContext, SkillFile};
pub use objects::{Blob, Listing, ListingBounds};

mod flow;
mod objects;

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
    /// The forge does not let our token read it (401, 403, or a question for a name).
    #[error("our token may not read the repository")]
    Forbidden,
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

/// The caches of this host.
#[derive(Debug, Clone)]
pub struct Repos {
    root: PathBuf,
    settings: GitSettings,
}

impl Repos {
    /// The caches under `DATA/git`, which is made private to us.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(data_dir: &Path, settings: GitSettings) -> Result<Repos, GitError> {
        let _ = (data_dir, settings);
        todo!()
    }

    /// Fetches one commit, shallow. Two fetches of one repository wait for each other; a commit that is there already
    /// is not fetched again.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn fetch(&self, repo: &RepoKey, remote: &forges::GitRemote, want: &Want) -> Result<Commit, GitError> {
        let _ = (repo, remote, want);
        todo!()
    }

    /// Reads one file of a commit, with its size capped. `None` when nothing is there.
    ///
    /// # Errors
    /// See [`GitError`]; what stands there instead of a file is an answer ([`Blob`]).
    pub async fn blob(&self, commit: &Commit, path: &str, max: u64) -> Result<Option<Blob>, GitError> {
        let _ = (commit, path, max);
        todo!()
    }

    /// The names of a commit's files, bounded.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn listing(&self, commit: &Commit, bounds: ListingBounds) -> Result<Listing, GitError> {
        let _ = (commit, bounds);
        todo!()
    }

    /// The flow's skill: the commit's own, else the overlay's, else `None`. Give it the default branch's commit.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn flow(&self, commit: &Commit, name: &str, overlay: Option<&Path>) -> Result<Option<Flow>, GitError> {
        let _ = (commit, name, overlay);
        todo!()
    }

    /// What the prompt takes from a repository beside the skill. Give it the default branch's commit.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn context(&self, commit: &Commit) -> Result<RepoContext, GitError> {
        let _ = (commit,);
        todo!()
    }

    /// Makes the workspace: a shallow clone of that commit, checked out, with no remote, no credential and no hook.
    ///
    /// `dir` must be there, empty, ours, and under a folder that only we may enter. Handing it to the job's user is the
    /// last step and the caller's ([`crate::folders`]): after it, no git of ours may run there.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn workspace(&self, commit: &Commit, dir: &Path) -> Result<(), GitError> {
        let _ = (commit, dir);
        todo!()
    }
}
