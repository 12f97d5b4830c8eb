//! Asking and telling a forge: one [`Api`] per configured forge, the same calls for each kind.
//!
//! Every call that takes a [`RepoRef`] finds the repository by its id first, so a renamed one is followed and a
//! name that somebody else took is not. Redirects are never followed. Nothing is retried here: the caller has rows
//! and patience, and [`ApiError::is_final`] says whether they are of use.
//!
//! The address comes from the configuration only; `http` is taken for loopback hosts alone, unless the settings say
//! otherwise. Source: `facts/forges.md`, "What we call", and the forge's `/api/swagger`.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use url::Url;

use crate::forgejo;
use crate::http::Http;
use crate::{Actor, ApiError, ForgeKind, RepoRef};

/// What the configuration says about a forge, as far as calling it goes.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// The software.
    pub kind: ForgeKind,
    /// Its address as in the browser, e.g. `https://codeberg.org`; a path is allowed, a query is not.
    pub url: String,
    /// The token of our own account.
    pub token: SecretString,
    /// Read-only, of a repository admin: asks for other people's permissions.
    pub permission_token: Option<SecretString>,
    /// Lets `http` go to a host that is not loopback. For a forge behind a private network only.
    pub plain_http: bool,
}

/// Why a forge's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No URL, or one with a query, a fragment or a user in it.
    #[error("the forge's `url` must be an address like https://forge.example.org: {0}")]
    BadUrl(String),
    /// `http` to another machine would show the token to everybody on the way.
    #[error("the forge's `url` must be https: http is taken for loopback addresses only")]
    PlainHttp,
    /// A token that no header can carry.
    #[error("the forge's `{0}` holds characters that no token has (is there a line break inside?)")]
    BadToken(&'static str),
    /// The HTTP client could not be made: a fault of the machine.
    #[error("the HTTP client could not be made: {0}")]
    Client(String),
}

/// An account as the forge knows it.
pub type Account = Actor;

/// A repository as the forge knows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Its id and present name.
    pub repo: RepoRef,
    /// The default branch; empty for a repository without commits.
    pub default_branch: String,
    /// Seen by members only.
    pub private: bool,
    /// Read only: nothing can be posted.
    pub archived: bool,
    /// No commit yet.
    pub empty: bool,
}

/// A comment as the forge has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The forge's id.
    pub id: i64,
    /// Who wrote it. Id 0 for an account that is gone.
    pub author: Actor,
    /// Its text.
    pub text: String,
    /// Its page.
    pub url: String,
    /// The issue or pull request it stands under, when the answer says so.
    pub number: Option<i64>,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// Open or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectState {
    /// Open.
    Open,
    /// Closed, or merged.
    Closed,
}

/// An issue as the forge has it now. A pull request is one too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Its number.
    pub number: i64,
    /// Its title.
    pub title: String,
    /// Its first text.
    pub text: String,
    /// Who opened it.
    pub author: Actor,
    /// Open or closed.
    pub state: SubjectState,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// It is a pull request.
    pub is_pull: bool,
    /// Its page.
    pub url: String,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// A pull request as the forge has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: i64,
    /// Its title.
    pub title: String,
    /// Its first text.
    pub text: String,
    /// Who opened it.
    pub author: Actor,
    /// Open or closed.
    pub state: SubjectState,
    /// It was merged.
    pub merged: bool,
    /// The commit at its head.
    pub head_sha: String,
    /// The branch at its head.
    pub head_branch: String,
    /// The repository of its head; `None` when that is gone.
    pub head_repo_id: Option<i64>,
    /// The branch it wants to go into.
    pub base_branch: String,
    /// Its page.
    pub url: String,
}

/// What the forge answered when asked what somebody may do in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It knows the account.
    Known {
        /// What the account may do.
        level: PermissionLevel,
        /// The account that has this name *now*. Compare the id: names change hands.
        user: Actor,
    },
    /// Nobody has that name.
    NoSuchUser,
    /// Our token may not ask (403): a fault of the set-up, not an answer "no".
    /// On Forgejo only a repository admin may; see `permission_token`.
    CannotAsk,
}

/// A level of permission, in the forge's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionLevel {
    /// Owner of the repository or organisation, or the site's admin.
    Owner,
    /// Repository admin.
    Admin,
    /// May push.
    Write,
    /// May read, or write issues only.
    Read,
    /// Nothing.
    None,
    /// A word that we do not know: not known yet, neither yes nor no.
    Unknown(String),
}

impl PermissionLevel {
    /// Whether that is write access or more; `None` for a word that we do not know.
    #[must_use]
    pub fn may_write(&self) -> Option<bool> {
        match self {
            Self::Owner | Self::Admin | Self::Write => Some(true),
            Self::Read | Self::None => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// The forge's word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Write => "write",
            Self::Read => "read",
            Self::None => "none",
            Self::Unknown(word) => word,
        }
    }
}

/// A branch as the forge has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// The commit at its head.
    pub commit: String,
    /// Protected by a rule of the repository.
    pub protected: bool,
}

/// Where a reaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionTarget {
    /// A comment, by its id.
    Comment(i64),
    /// An issue or pull request, by its number.
    Subject(i64),
}

/// How git reaches a repository.
#[derive(Debug, Clone)]
pub struct GitRemote {
    /// The address, without anything secret.
    pub url: String,
    /// The header line for `http.extraHeader`: name, colon, token. Never in an argument list.
    pub header: SecretString,
}

/// One forge that can be asked and told.
#[derive(Debug, Clone)]
pub struct Api {
    road: Road,
}

/// The kinds of API that there are.
#[derive(Debug, Clone)]
enum Road {
    Forgejo(forgejo::api::ForgejoApi),
}

impl Api {
    /// Prepares the client. Calls nobody.
    ///
    /// # Errors
    /// [`SetupError`] for settings that cannot be used.
    pub fn new(settings: ApiSettings) -> Result<Self, SetupError> {
        let kind = settings.kind;
        let http = Http::new(&settings)?;
        let road = match kind {
            ForgeKind::Forgejo | ForgeKind::Gitea => Road::Forgejo(forgejo::api::ForgejoApi::new(http)),
        };
        Ok(Self { road })
    }

    /// The forge's address, for links and for [`text::TextRules`](crate::text::TextRules).
    #[must_use]
    pub fn base_url(&self) -> &Url {
        match &self.road {
            Road::Forgejo(api) => api.base_url(),
        }
    }

    /// Our own account. Fails with [`ApiError::Forbidden`] when the token may not read it (`read:user`).
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn whoami(&self) -> Result<Account, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.whoami().await,
        }
    }

    /// The version of the forge's software. Needs no token.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn version(&self) -> Result<String, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.version().await,
        }
    }

    /// A repository by its id, under the name that it has now.
    ///
    /// # Errors
    /// [`ApiError`]; [`ApiError::NotFound`] when it is gone or our account may not see it.
    pub async fn repository_by_id(&self, id: i64) -> Result<Repository, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.repository_by_id(id).await,
        }
    }

    /// A repository by its name: for commands of an operator, who knows no ids.
    ///
    /// # Errors
    /// [`ApiError`]; [`ApiError::Moved`] when it has another name now.
    pub async fn repository_by_name(&self, owner: &str, name: &str) -> Result<Repository, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.repository_by_name(owner, name).await,
        }
    }

    /// A comment of that repository.
    ///
    /// # Errors
    /// [`ApiError`]; [`ApiError::NotFound`] when the repository has no such comment.
    pub async fn comment(&self, repo: &RepoRef, id: i64) -> Result<Comment, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.comment(repo, id).await,
        }
    }

    /// An issue, or a pull request seen as one.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn issue(&self, repo: &RepoRef, number: i64) -> Result<Issue, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.issue(repo, number).await,
        }
    }

    /// A pull request.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn pull(&self, repo: &RepoRef, number: i64) -> Result<Pull, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.pull(repo, number).await,
        }
    }

    /// What an account may do in a repository, asked with the permission token where there is one.
    ///
    /// # Errors
    /// [`ApiError`]. That our token may not ask is no error but [`Permission::CannotAsk`].
    pub async fn permission(&self, repo: &RepoRef, login: &str) -> Result<Permission, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.permission(repo, login).await,
        }
    }

    /// Writes a comment. Not idempotent: the caller has its marker committed first and looks for it after a doubt.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn post_comment(&self, repo: &RepoRef, number: i64, text: &str) -> Result<Comment, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.post_comment(repo, number, text).await,
        }
    }

    /// Replaces the text of a comment of ours.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn edit_comment(&self, repo: &RepoRef, id: i64, text: &str) -> Result<Comment, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.edit_comment(repo, id, text).await,
        }
    }

    /// All comments under an issue or pull request, oldest first; with `since`, those changed after it.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn comments_of(
        &self,
        repo: &RepoRef,
        number: i64,
        since: Option<DateTime<Utc>>,
    ) -> Result<Vec<Comment>, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.comments_of(repo, number, since).await,
        }
    }

    /// The comments of a whole repository that were written or changed since then, at most 1,000, oldest first.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn comments_since(&self, repo: &RepoRef, since: DateTime<Utc>) -> Result<Vec<Comment>, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.comments_since(repo, since).await,
        }
    }

    /// Adds a reaction of ours, by the forge's word (`eyes`). Idempotent; sends no delivery.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn react(&self, repo: &RepoRef, target: ReactionTarget, word: &str) -> Result<(), ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.react(repo, target, word).await,
        }
    }

    /// A branch.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn branch(&self, repo: &RepoRef, name: &str) -> Result<Branch, ApiError> {
        match &self.road {
            Road::Forgejo(api) => api.branch(repo, name).await,
        }
    }

    /// How git reaches the repository: made from the configured address and the name given, never from an answer.
    #[must_use]
    pub fn git_remote(&self, repo: &RepoRef) -> GitRemote {
        match &self.road {
            Road::Forgejo(api) => api.git_remote(repo),
        }
    }
}
