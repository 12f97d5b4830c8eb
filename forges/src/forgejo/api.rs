//! The calls of Forgejo and Gitea, base `/api/v1`. Source: `facts/forges.md`, "What we call".
//!
//! A repository is looked up by its id before it is used; the answer is kept for half a minute, so that the calls
//! about one job ask once. A redirect that is met in spite of that throws the kept name away and asks once more.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use super::answers::{
    AnswerBranch, AnswerComment, AnswerIssue, AnswerPermission, AnswerPull, AnswerRepository, AnswerUser,
};
use crate::api::{
    Account, Branch, Comment, GitRemote, Issue, Permission, PermissionLevel, Pull, ReactionTarget, Repository,
};
use crate::api_error::ApiError;
use crate::event::RepoRef;
use crate::http::{Http, Token, is_name};

/// How long a name is believed to be that of an id.
const NAME_KEPT: Duration = Duration::from_secs(30);
/// How many names are kept at most.
const NAMES_MAX: usize = 1024;
/// Comments of a repository: asked for by pages of this many …
const PAGE: usize = 50;
/// … and so many pages.
const PAGES_MAX: usize = 20;

#[derive(Debug, Clone)]
pub(crate) struct ForgejoApi {
    http: Http,
    names: Arc<Mutex<HashMap<i64, (RepoRef, Instant)>>>,
}

#[derive(Deserialize)]
struct AnswerVersion {
    version: String,
}

impl ForgejoApi {
    pub(crate) fn new(http: Http) -> Self {
        Self {
            http,
            names: Arc::default(),
        }
    }

    pub(crate) fn base_url(&self) -> &Url {
        self.http.base()
    }

    pub(crate) async fn whoami(&self) -> Result<Account, ApiError> {
        let user: AnswerUser = self.http.get(Token::Own, self.url(&["user"])?).await?;
        Ok(user.into())
    }

    pub(crate) async fn version(&self) -> Result<String, ApiError> {
        let answer: AnswerVersion = self.http.get(Token::Own, self.url(&["version"])?).await?;
        Ok(answer.version)
    }

    pub(crate) async fn repository_by_id(&self, id: i64) -> Result<Repository, ApiError> {
        let answer: AnswerRepository = self
            .http
            .get(Token::Own, self.url(&["repositories", &id.to_string()])?)
            .await?;
        let repository = Repository::from(answer);
        if repository.repo.id != id || !is_name(&repository.repo.owner) || !is_name(&repository.repo.name) {
            return Err(ApiError::Garbled("another repository than the one asked for"));
        }
        self.keep_name(&repository.repo);
        Ok(repository)
    }

    pub(crate) async fn repository_by_name(&self, owner: &str, name: &str) -> Result<Repository, ApiError> {
        if !is_name(owner) || !is_name(name) {
            return Err(ApiError::BadName);
        }
        let answer: AnswerRepository = self.http.get(Token::Own, self.url(&["repos", owner, name])?).await?;
        Ok(answer.into())
    }

    pub(crate) async fn comment(&self, repo: &RepoRef, id: i64) -> Result<Comment, ApiError> {
        let answer: AnswerComment = self
            .at(repo, async |now| {
                self.http
                    .get(
                        Token::Own,
                        self.repo_url(&now, &["issues", "comments", &id.to_string()])?,
                    )
                    .await
            })
            .await?;
        Ok(answer.into())
    }

    pub(crate) async fn issue(&self, repo: &RepoRef, number: i64) -> Result<Issue, ApiError> {
        let answer: AnswerIssue = self
            .at(repo, async |now| {
                self.http
                    .get(Token::Own, self.repo_url(&now, &["issues", &number.to_string()])?)
                    .await
            })
            .await?;
        Ok(answer.into())
    }

    pub(crate) async fn pull(&self, repo: &RepoRef, number: i64) -> Result<Pull, ApiError> {
        let answer: AnswerPull = self
            .at(repo, async |now| {
                self.http
                    .get(Token::Own, self.repo_url(&now, &["pulls", &number.to_string()])?)
                    .await
            })
            .await?;
        Ok(answer.into())
    }

    pub(crate) async fn permission(&self, repo: &RepoRef, login: &str) -> Result<Permission, ApiError> {
        if !is_name(login) {
            return Err(ApiError::BadName);
        }
        // Where the repository is now is asked first and with our own token, so that a 404 or 403 further down speaks
        // of the account and of the asker, not of the repository.
        self.name_now(repo).await?;
        let answer: Result<AnswerPermission, ApiError> = self
            .at(repo, async |now| {
                let url = self.repo_url(&now, &["collaborators", login, "permission"])?;
                self.http.get(Token::Permission, url).await
            })
            .await;
        match answer {
            Ok(AnswerPermission {
                permission,
                user: Some(user),
            }) => Ok(Permission::Known {
                level: level(permission),
                user: user.into(),
            }),
            Ok(AnswerPermission { user: None, .. }) => Err(ApiError::Garbled("a permission without its account")),
            Err(ApiError::NotFound) => Ok(Permission::NoSuchUser),
            Err(ApiError::Forbidden) => Ok(Permission::CannotAsk),
            Err(other) => Err(other),
        }
    }

    pub(crate) async fn post_comment(&self, repo: &RepoRef, number: i64, text: &str) -> Result<Comment, ApiError> {
        let answer: AnswerComment = self
            .at(repo, async |now| {
                let url = self.repo_url(&now, &["issues", &number.to_string(), "comments"])?;
                self.http.send_json(Method::POST, url, &json!({ "body": text })).await
            })
            .await?;
        Ok(answer.into())
    }

    pub(crate) async fn edit_comment(&self, repo: &RepoRef, id: i64, text: &str) -> Result<Comment, ApiError> {
        let answer: AnswerComment = self
            .at(repo, async |now| {
                let url = self.repo_url(&now, &["issues", "comments", &id.to_string()])?;
                self.http.send_json(Method::PATCH, url, &json!({ "body": text })).await
            })
            .await?;
        Ok(answer.into())
    }

    /// The forge ignores `limit` here: one answer holds them all.
    pub(crate) async fn comments_of(
        &self,
        repo: &RepoRef,
        number: i64,
        since: Option<DateTime<Utc>>,
    ) -> Result<Vec<Comment>, ApiError> {
        let answers: Vec<AnswerComment> = self
            .at(repo, async |now| {
                let mut url = self.repo_url(&now, &["issues", &number.to_string(), "comments"])?;
                if let Some(since) = since {
                    url.query_pairs_mut().append_pair("since", &rfc3339(since));
                }
                self.http.get(Token::Own, url).await
            })
            .await?;
        Ok(answers.into_iter().map(Comment::from).collect())
    }

    pub(crate) async fn comments_since(&self, repo: &RepoRef, since: DateTime<Utc>) -> Result<Vec<Comment>, ApiError> {
        let mut comments: Vec<Comment> = Vec::new();
        for page in 1..=PAGES_MAX {
            let (answers, total): (Vec<AnswerComment>, Option<usize>) = self
                .at(repo, async |now| {
                    let mut url = self.repo_url(&now, &["issues", "comments"])?;
                    url.query_pairs_mut()
                        .append_pair("since", &rfc3339(since))
                        .append_pair("limit", &PAGE.to_string())
                        .append_pair("page", &page.to_string());
                    self.http.get_counted(Token::Own, url).await
                })
                .await?;
            // A forge that ignores `page` would give the same list for ever.
            let before = comments.len();
            for comment in answers.into_iter().map(Comment::from) {
                if !comments.iter().any(|known| known.id == comment.id) {
                    comments.push(comment);
                }
            }
            if comments.len() == before || total.is_some_and(|total| comments.len() >= total) {
                break;
            }
        }
        Ok(comments)
    }

    pub(crate) async fn react(&self, repo: &RepoRef, target: ReactionTarget, word: &str) -> Result<(), ApiError> {
        self.at(repo, async |now| {
            let url = match target {
                ReactionTarget::Comment(id) => {
                    self.repo_url(&now, &["issues", "comments", &id.to_string(), "reactions"])?
                }
                ReactionTarget::Subject(number) => {
                    self.repo_url(&now, &["issues", &number.to_string(), "reactions"])?
                }
            };
            self.http.tell(Method::POST, url, &json!({ "content": word })).await
        })
        .await
    }

    /// A branch's name may hold slashes: each part is a segment, as the forge's router wants it.
    pub(crate) async fn branch(&self, repo: &RepoRef, name: &str) -> Result<Branch, ApiError> {
        let mut segments = vec!["branches"];
        segments.extend(name.split('/'));
        let answer: AnswerBranch = self
            .at(repo, async |now| {
                self.http.get(Token::Own, self.repo_url(&now, &segments)?).await
            })
            .await?;
        Ok(answer.into())
    }

    pub(crate) fn git_remote(&self, repo: &RepoRef) -> GitRemote {
        let mut url = self.http.base().clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments
                .pop_if_empty()
                .push(&repo.owner)
                .push(&format!("{}.git", repo.name));
        }
        GitRemote {
            url: url.into(),
            header: self.http.git_header(),
        }
    }

    fn url(&self, segments: &[&str]) -> Result<Url, ApiError> {
        self.http.url(&[&["api", "v1"], segments].concat())
    }

    fn repo_url(&self, now: &RepoRef, segments: &[&str]) -> Result<Url, ApiError> {
        self.url(&[&["repos", &now.owner, &now.name], segments].concat())
    }

    /// Calls with the name that the repository has now; a redirect asks for the name again, once.
    async fn at<T, F>(&self, repo: &RepoRef, call: impl Fn(RepoRef) -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let first = call(self.name_now(repo).await?).await;
        if !matches!(first, Err(ApiError::Moved(_))) {
            return first;
        }
        self.forget_name(repo.id);
        call(self.name_now(repo).await?).await
    }

    async fn name_now(&self, repo: &RepoRef) -> Result<RepoRef, ApiError> {
        let kept = {
            let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names
                .get(&repo.id)
                .filter(|(_, at)| at.elapsed() < NAME_KEPT)
                .map(|(now, _)| now.clone())
        };
        match kept {
            Some(now) => Ok(now),
            None => Ok(self.repository_by_id(repo.id).await?.repo),
        }
    }

    fn keep_name(&self, repo: &RepoRef) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert(repo.id, (repo.clone(), Instant::now()));
    }

    fn forget_name(&self, id: i64) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

fn level(word: String) -> PermissionLevel {
    match word.as_str() {
        "owner" => PermissionLevel::Owner,
        "admin" => PermissionLevel::Admin,
        "write" => PermissionLevel::Write,
        "read" => PermissionLevel::Read,
        "none" => PermissionLevel::None,
        _ => PermissionLevel::Unknown(word),
    }
}

fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
