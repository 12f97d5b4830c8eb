//! The shapes of the API's answers, as far as we read them. Unknown fields are passed over.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::api::{Branch, Comment, Issue, Pull, Repository, SubjectState};
use crate::event::{Actor, RepoRef};

#[derive(Deserialize)]
pub(super) struct AnswerUser {
    id: i64,
    login: String,
}

#[derive(Deserialize)]
pub(super) struct AnswerRepository {
    id: i64,
    name: String,
    owner: AnswerUser,
    #[serde(default)]
    default_branch: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    empty: bool,
}

#[derive(Deserialize)]
pub(super) struct AnswerComment {
    id: i64,
    user: Option<AnswerUser>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    issue_url: String,
    #[serde(default)]
    pull_request_url: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Deserialize)]
pub(super) struct AnswerIssue {
    number: i64,
    #[serde(default)]
    title: String,
    body: Option<String>,
    user: Option<AnswerUser>,
    state: String,
    labels: Option<Vec<AnswerLabel>>,
    pull_request: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    html_url: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Deserialize)]
struct AnswerLabel {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct AnswerPull {
    number: i64,
    #[serde(default)]
    title: String,
    body: Option<String>,
    user: Option<AnswerUser>,
    state: String,
    #[serde(default)]
    merged: bool,
    head: AnswerSide,
    base: AnswerSide,
    #[serde(default)]
    html_url: String,
}

#[derive(Deserialize)]
struct AnswerSide {
    #[serde(rename = "ref", default)]
    branch: String,
    #[serde(default)]
    sha: String,
    repo: Option<AnswerSideRepository>,
}

#[derive(Deserialize)]
struct AnswerSideRepository {
    id: i64,
}

#[derive(Deserialize)]
pub(super) struct AnswerPermission {
    pub(super) permission: String,
    pub(super) user: Option<AnswerUser>,
}

#[derive(Deserialize)]
pub(super) struct AnswerBranch {
    name: String,
    commit: AnswerCommit,
    #[serde(default)]
    protected: bool,
}

#[derive(Deserialize)]
struct AnswerCommit {
    id: String,
}

impl From<AnswerUser> for Actor {
    fn from(user: AnswerUser) -> Self {
        Self {
            id: user.id,
            login: user.login,
        }
    }
}

/// An account that is gone: an id that no living account has.
fn author(user: Option<AnswerUser>) -> Actor {
    user.map_or_else(
        || Actor {
            id: 0,
            login: String::new(),
        },
        Actor::from,
    )
}

fn state(word: &str) -> SubjectState {
    if word == "open" {
        SubjectState::Open
    } else {
        SubjectState::Closed
    }
}

impl From<AnswerRepository> for Repository {
    fn from(answer: AnswerRepository) -> Self {
        Self {
            repo: RepoRef {
                id: answer.id,
                owner: answer.owner.login,
                name: answer.name,
            },
            default_branch: answer.default_branch,
            private: answer.private,
            archived: answer.archived,
            empty: answer.empty,
        }
    }
}

impl From<AnswerComment> for Comment {
    fn from(answer: AnswerComment) -> Self {
        // The answer names its issue or pull request only by address; the number is its last part.
        let address = if answer.issue_url.is_empty() {
            &answer.pull_request_url
        } else {
            &answer.issue_url
        };
        let number = address.rsplit('/').next().and_then(|last| last.parse().ok());
        Self {
            id: answer.id,
            author: author(answer.user),
            text: answer.body,
            url: answer.html_url,
            number,
            created_at: answer.created_at,
            updated_at: answer.updated_at,
        }
    }
}

impl From<AnswerIssue> for Issue {
    fn from(answer: AnswerIssue) -> Self {
        Self {
            number: answer.number,
            title: answer.title,
            text: answer.body.unwrap_or_default(),
            author: author(answer.user),
            state: state(&answer.state),
            labels: answer
                .labels
                .unwrap_or_default()
                .into_iter()
                .map(|label| label.name)
                .collect(),
            is_pull: answer.pull_request.is_some(),
            url: answer.html_url,
            created_at: answer.created_at,
            updated_at: answer.updated_at,
        }
    }
}

impl From<AnswerPull> for Pull {
    fn from(answer: AnswerPull) -> Self {
        Self {
            number: answer.number,
            title: answer.title,
            text: answer.body.unwrap_or_default(),
            author: author(answer.user),
            state: state(&answer.state),
            merged: answer.merged,
            head_sha: answer.head.sha,
            head_branch: answer.head.branch,
            head_repo_id: answer.head.repo.map(|repo| repo.id),
            base_branch: answer.base.branch,
            url: answer.html_url,
        }
    }
}

impl From<AnswerBranch> for Branch {
    fn from(answer: AnswerBranch) -> Self {
        Self {
            name: answer.name,
            commit: answer.commit.id,
            protected: answer.protected,
        }
    }
}
