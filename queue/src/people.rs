//! Who may sign in to the panel, their sessions, and what they did.
//!
//! Passwords come as argon2 hash texts, session tokens as SHA-256: neither can be read back from here.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::UserId;
use crate::state::Role;

/// Somebody who may sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// Its number.
    pub id: UserId,
    /// The name, unique, compared exactly.
    pub name: String,
    /// What may be done.
    pub role: Role,
    /// The password's argon2 hash, as text.
    #[serde(skip)]
    pub password: String,
    /// Since when.
    pub created_at: DateTime<Utc>,
}

/// A session that is valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Whose.
    pub user: User,
    /// Until when.
    pub expires_at: DateTime<Utc>,
}

/// One thing that somebody did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRow {
    /// Grows; for paging.
    pub id: i64,
    /// When.
    pub at: DateTime<Utc>,
    /// Who: a user's name, `cli:NAME`, `worker:NAME`.
    pub who: String,
    /// What, in one word.
    pub action: String,
    /// To what.
    pub target: String,
    /// More about it.
    pub detail: Value,
}

impl Queue {
    /// Adds a user, or gives the one of that name a new password and role (`false`: it was there). Ends their sessions. Audited.
    pub async fn put_user(&self, name: &str, password: &str, role: Role, who: &str) -> Result<bool, StoreError> {
        let _ = (name, password, role, who);
        todo!()
    }

    /// Removes a user and their sessions; `false` when there was none. Audited.
    pub async fn remove_user(&self, name: &str, who: &str) -> Result<bool, StoreError> {
        let _ = (name, who);
        todo!()
    }

    /// The user of that name.
    pub async fn user(&self, name: &str) -> Result<Option<User>, StoreError> {
        let _ = name;
        todo!()
    }

    /// All of them, by name.
    pub async fn users(&self) -> Result<Vec<User>, StoreError> {
        todo!()
    }

    /// Begins a session under the SHA-256 of its token. Audited.
    pub async fn start_session(
        &self,
        user: UserId,
        token_sha256: &[u8; 32],
        lasts: Duration,
    ) -> Result<(), StoreError> {
        let _ = (user, token_sha256, lasts);
        todo!()
    }

    /// The session of that token, if it is valid now.
    pub async fn session(&self, token_sha256: &[u8; 32]) -> Result<Option<Session>, StoreError> {
        let _ = token_sha256;
        todo!()
    }

    /// Ends it.
    pub async fn end_session(&self, token_sha256: &[u8; 32]) -> Result<(), StoreError> {
        let _ = token_sha256;
        todo!()
    }

    /// Writes down what somebody did, where no other function of this crate does.
    pub async fn audit(&self, who: &str, action: &str, target: &str, detail: &Value) -> Result<(), StoreError> {
        let _ = (who, action, target, detail);
        todo!()
    }
}
