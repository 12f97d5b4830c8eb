//! What the stub forge knows: people, repositories, issues, comments, and who may do what.
//!
//! Everything is in memory behind one lock, the git repositories aside. Ids are numbers as on a real Forgejo: users and
//! organisations share one row of them, issues and comments have one each for the whole instance.

use super::hooks::{Delivery, Hook};
use super::trouble::{ApiCall, Fault};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What somebody may do in a repository, least first. The words are Forgejo's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing: a private repository is not there for them.
    None,
    /// Read, and comment.
    Read,
    /// Push, label, close, edit the comments of others.
    Write,
    /// Settings and hooks; may ask for the permission of others.
    Admin,
    /// An owner of the organisation, or an administrator of the whole site.
    Owner,
}

impl Access {
    /// The word in an API answer.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

/// What a token may be used for; the words are Forgejo's. A write scope contains its read scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `read:user`: `GET /user`, `GET /users/{name}`.
    ReadUser,
    /// `read:repository`.
    ReadRepository,
    /// `write:repository`.
    WriteRepository,
    /// `read:issue`.
    ReadIssue,
    /// `write:issue`.
    WriteIssue,
}

impl Scope {
    /// What pi-dispatch asks for its own account.
    pub const BOT: [Self; 3] = [Self::ReadUser, Self::WriteRepository, Self::WriteIssue];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ReadUser => "read:user",
            Self::ReadRepository => "read:repository",
            Self::WriteRepository => "write:repository",
            Self::ReadIssue => "read:issue",
            Self::WriteIssue => "write:issue",
        }
    }

    pub(crate) fn covers(self, wanted: Self) -> bool {
        self == wanted
            || matches!(
                (self, wanted),
                (Self::WriteRepository, Self::ReadRepository) | (Self::WriteIssue, Self::ReadIssue)
            )
    }
}

/// A person, or an organisation (which has owners and no token).
#[derive(Debug, Clone)]
pub struct User {
    /// Its numeric id, which a rename does not change.
    pub id: i64,
    /// Its present name.
    pub login: String,
    /// What it calls itself.
    pub full_name: String,
    /// Owners, when this is an organisation.
    pub owners: Option<BTreeSet<i64>>,
    /// An administrator of the whole site.
    pub site_admin: bool,
    /// When it came.
    pub created: DateTime<Utc>,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) user: i64,
    pub(crate) scopes: Vec<Scope>,
}

#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) color: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Repo {
    pub(crate) id: i64,
    pub(crate) owner: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) private: bool,
    pub(crate) archived: bool,
    pub(crate) default_branch: String,
    pub(crate) collaborators: BTreeMap<i64, Access>,
    pub(crate) labels: Vec<Label>,
    pub(crate) issues: BTreeMap<i64, Issue>,
    pub(crate) created: DateTime<Utc>,
    /// The bare repository on disk.
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct Issue {
    pub(crate) id: i64,
    pub(crate) number: i64,
    pub(crate) author: i64,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) closed: Option<DateTime<Utc>>,
    pub(crate) labels: Vec<i64>,
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) timeline: Vec<LabelChange>,
    pub(crate) pull: Option<Pull>,
    pub(crate) created: DateTime<Utc>,
    pub(crate) updated: DateTime<Utc>,
}

/// An entry of an issue's timeline: the only place that says which label came or went, and who did it.
#[derive(Debug, Clone)]
pub(crate) struct LabelChange {
    pub(crate) id: i64,
    pub(crate) user: i64,
    pub(crate) label: i64,
    pub(crate) added: bool,
    pub(crate) at: DateTime<Utc>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) merged: bool,
}

/// A comment under an issue or a pull request.
#[derive(Debug, Clone)]
pub struct Comment {
    /// Its id, unique on the whole instance.
    pub id: i64,
    /// The repository's id.
    pub repo: i64,
    /// The number of the issue or pull request.
    pub number: i64,
    /// The author's id.
    pub author: i64,
    /// Its Markdown.
    pub body: String,
    /// Who reacted with which word (`eyes`).
    pub reactions: Vec<Reaction>,
    /// When it was written.
    pub created: DateTime<Utc>,
    /// When it was written or last edited.
    pub updated: DateTime<Utc>,
}

/// One reaction: who, and Forgejo's word for the emoji.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// The id of who reacted.
    pub user: i64,
    /// The word, for instance `eyes`.
    pub content: String,
}

/// Everything the forge knows.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Where it answers, without a slash at the end.
    pub(crate) base: String,
    pub(crate) dir: PathBuf,
    pub(crate) users: BTreeMap<i64, User>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) repos: BTreeMap<i64, Repo>,
    /// Old paths of renamed repositories, lower case, and the id that is meant.
    pub(crate) moved: BTreeMap<String, i64>,
    pub(crate) comments: BTreeMap<i64, Comment>,
    pub(crate) hooks: BTreeMap<i64, Hook>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) calls: Vec<ApiCall>,
    /// The last id given to an issue, a comment, a timeline entry or a hook.
    pub(crate) last_id: i64,
}

/// What a path names.
pub(crate) enum Found {
    Here(i64),
    /// It was renamed: `owner/name` now.
    Moved(String),
    Nowhere,
}

impl World {
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn user_named(&self, login: &str) -> Option<&User> {
        self.users.values().find(|user| user.login.eq_ignore_ascii_case(login))
    }

    pub(crate) fn login(&self, id: i64) -> &str {
        self.users.get(&id).map_or("ghost", |user| &user.login)
    }

    pub(crate) fn full_name(&self, repo: &Repo) -> String {
        format!("{}/{}", self.login(repo.owner), repo.name)
    }

    pub(crate) fn find(&self, owner: &str, name: &str) -> Found {
        let here = self.user_named(owner).and_then(|owner| {
            self.repos
                .values()
                .find(|repo| repo.owner == owner.id && repo.name.eq_ignore_ascii_case(name))
        });
        if let Some(repo) = here {
            return Found::Here(repo.id);
        }
        let old = format!("{owner}/{name}").to_lowercase();
        match self.moved.get(&old).and_then(|id| self.repos.get(id)) {
            Some(repo) => Found::Moved(self.full_name(repo)),
            None => Found::Nowhere,
        }
    }

    /// What `user` may do in `repo`; nobody in particular is `None`.
    pub(crate) fn access(&self, repo: &Repo, user: Option<i64>) -> Access {
        let at_least = if repo.private { Access::None } else { Access::Read };
        let Some(user) = user.and_then(|id| self.users.get(&id)) else {
            return at_least;
        };
        let owns = repo.owner == user.id
            || self
                .users
                .get(&repo.owner)
                .and_then(|owner| owner.owners.as_ref())
                .is_some_and(|o| o.contains(&user.id));
        if user.site_admin || owns {
            return Access::Owner;
        }
        repo.collaborators
            .get(&user.id)
            .copied()
            .unwrap_or(at_least)
            .max(at_least)
    }

    pub(crate) fn issue(&self, repo: i64, number: i64) -> Option<(&Repo, &Issue)> {
        let repo = self.repos.get(&repo)?;
        Some((repo, repo.issues.get(&number)?))
    }

    pub(crate) fn comments_of(&self, repo: i64, number: Option<i64>) -> impl Iterator<Item = &Comment> {
        self.comments
            .values()
            .filter(move |comment| comment.repo == repo && number.is_none_or(|number| comment.number == number))
    }
}
