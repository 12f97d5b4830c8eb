//! The calls.
use chrono::{DateTime, Utc};
use url::Url;

use crate::http::Http;
use crate::*;

#[derive(Debug, Clone)]
pub(crate) struct ForgejoApi {
    http: Http,
}

impl ForgejoApi {
    pub(crate) fn new(http: Http) -> Self {
        Self { http }
    }
    pub(crate) fn base_url(&self) -> &Url {
        &self.http.base
    }
    pub(crate) async fn whoami(&self) -> Result<Account, ApiError> {
        todo!()
    }
    pub(crate) async fn version(&self) -> Result<String, ApiError> {
        todo!()
    }
    pub(crate) async fn repository_by_id(&self, _id: i64) -> Result<Repository, ApiError> {
        todo!()
    }
    pub(crate) async fn repository_by_name(&self, _owner: &str, _name: &str) -> Result<Repository, ApiError> {
        todo!()
    }
    pub(crate) async fn comment(&self, _repo: &RepoRef, _id: i64) -> Result<Comment, ApiError> {
        todo!()
    }
    pub(crate) async fn issue(&self, _repo: &RepoRef, _number: i64) -> Result<Issue, ApiError> {
        todo!()
    }
    pub(crate) async fn pull(&self, _repo: &RepoRef, _number: i64) -> Result<Pull, ApiError> {
        todo!()
    }
    pub(crate) async fn permission(&self, _repo: &RepoRef, _login: &str) -> Result<Permission, ApiError> {
        todo!()
    }
    pub(crate) async fn post_comment(&self, _repo: &RepoRef, _number: i64, _text: &str) -> Result<Comment, ApiError> {
        todo!()
    }
    pub(crate) async fn edit_comment(&self, _repo: &RepoRef, _id: i64, _text: &str) -> Result<Comment, ApiError> {
        todo!()
    }
    pub(crate) async fn comments_of(
        &self,
        _repo: &RepoRef,
        _number: i64,
        _since: Option<DateTime<Utc>>,
    ) -> Result<Vec<Comment>, ApiError> {
        todo!()
    }
    pub(crate) async fn comments_since(
        &self,
        _repo: &RepoRef,
        _since: DateTime<Utc>,
    ) -> Result<Vec<Comment>, ApiError> {
        todo!()
    }
    pub(crate) async fn react(&self, _repo: &RepoRef, _target: ReactionTarget, _word: &str) -> Result<(), ApiError> {
        todo!()
    }
    pub(crate) async fn branch(&self, _repo: &RepoRef, _name: &str) -> Result<Branch, ApiError> {
        todo!()
    }
    pub(crate) fn git_remote(&self, _repo: &RepoRef) -> GitRemote {
        todo!()
    }
}
