//! Who may sign in to the panel, their sessions, and what they did.
//!
//! Passwords come as argon2 hash texts, session tokens as SHA-256: neither can be read back from here.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use std::time::Duration;

use crate::Queue;
use crate::error::StoreError;
use crate::ids::UserId;
use crate::state::Role;
use crate::values::clean;

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

/// Writes an action down inside of the transaction that does it.
pub(crate) async fn audit(
    connection: &mut PgConnection,
    who: &str,
    action: &str,
    target: &str,
    detail: &Value,
) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO audit (who, action, target, detail) VALUES ($1, $2, $3, $4::text::json)",
        clean(who),
        action,
        clean(target),
        detail.to_string(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

impl Queue {
    /// Adds a user, or gives the one of that name a new password and role (`false`: it was there). Ends their sessions. Audited.
    pub async fn put_user(&self, name: &str, password: &str, role: Role, who: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            INSERT INTO users (name, password, role) VALUES ($1, $2, $3)
            ON CONFLICT (name) DO UPDATE SET password = excluded.password, role = excluded.role
            RETURNING id, xmax = 0 AS "added!"
            "#,
            name,
            password,
            role.word(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query!("DELETE FROM sessions WHERE user_id = $1", row.id)
            .execute(&mut *transaction)
            .await?;
        let action = if row.added { "user-add" } else { "user-change" };
        audit(&mut transaction, who, action, name, &json!({ "role": role })).await?;
        transaction.commit().await?;
        Ok(row.added)
    }

    /// Removes a user and their sessions; `false` when there was none. Audited.
    pub async fn remove_user(&self, name: &str, who: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let removed = sqlx::query!("DELETE FROM users WHERE name = $1", name)
            .execute(&mut *transaction)
            .await?;
        let removed = removed.rows_affected() > 0;
        if removed {
            audit(&mut transaction, who, "user-remove", name, &json!({})).await?;
        }
        transaction.commit().await?;
        Ok(removed)
    }

    /// The user of that name.
    pub async fn user(&self, name: &str) -> Result<Option<User>, StoreError> {
        let user = sqlx::query_as!(
            User,
            r#"SELECT id AS "id: UserId", name, role AS "role: Role", password, created_at FROM users WHERE name = $1"#,
            name,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(user)
    }

    /// All of them, by name.
    pub async fn users(&self) -> Result<Vec<User>, StoreError> {
        let users = sqlx::query_as!(
            User,
            r#"SELECT id AS "id: UserId", name, role AS "role: Role", password, created_at FROM users ORDER BY name"#,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(users)
    }

    /// Begins a session under the SHA-256 of its token. Audited.
    pub async fn start_session(
        &self,
        user: UserId,
        token_sha256: &[u8; 32],
        lasts: Duration,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let name = sqlx::query_scalar!("SELECT name FROM users WHERE id = $1", user.0)
            .fetch_optional(&mut *transaction)
            .await?
            .ok_or_else(|| StoreError::NotFound {
                what: "user",
                id: user.to_string(),
            })?;
        sqlx::query!(
            "INSERT INTO sessions (token_sha256, user_id, expires_at) VALUES ($1, $2, now() + make_interval(secs => $3))",
            token_sha256.as_slice(),
            user.0,
            lasts.as_secs_f64(),
        )
        .execute(&mut *transaction)
        .await?;
        audit(&mut transaction, &name, "sign-in", "", &json!({})).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// The session of that token, if it is valid now.
    pub async fn session(&self, token_sha256: &[u8; 32]) -> Result<Option<Session>, StoreError> {
        let row = sqlx::query!(
            r#"
            SELECT u.id AS "id: UserId", u.name, u.role AS "role: Role", u.password, u.created_at, s.expires_at
            FROM sessions s JOIN users u ON u.id = s.user_id
            WHERE s.token_sha256 = $1 AND s.expires_at > now()
            "#,
            token_sha256.as_slice(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| Session {
            user: User {
                id: row.id,
                name: row.name,
                role: row.role,
                password: row.password,
                created_at: row.created_at,
            },
            expires_at: row.expires_at,
        }))
    }

    /// Ends it.
    pub async fn end_session(&self, token_sha256: &[u8; 32]) -> Result<(), StoreError> {
        sqlx::query!("DELETE FROM sessions WHERE token_sha256 = $1", token_sha256.as_slice())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Writes down what somebody did, where no other function of this crate does.
    pub async fn audit(&self, who: &str, action: &str, target: &str, detail: &Value) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        audit(&mut connection, who, action, target, detail).await
    }

    /// A page of what was done, newest first.
    pub async fn audit_log(&self, before: Option<i64>, limit: i64) -> Result<Vec<AuditRow>, StoreError> {
        let rows = sqlx::query_as!(
            AuditRow,
            "SELECT id, at, who, action, target, detail FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2",
            before.unwrap_or(i64::MAX),
            crate::read::page(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows)
    }
}
