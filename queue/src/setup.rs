//! Connecting, and the schema's version.
//!
//! Every connection runs with generic plans (the claim is planned once, not per call) and with time-outs, so that a stuck page
//! never holds a snapshot for long: dead rows behind it would slow the claim down. The connection is not pinged before use; a dead one
//! is an error of that one statement and callers try again.

use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};

use crate::Queue;
use crate::error::StoreError;

/// The schema, one file per step, forward only.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// How to connect.
#[derive(Debug, Clone)]
pub struct Connect {
    /// `postgres://…`; sockets as `postgres:///NAME?host=/folder&user=NAME`.
    pub url: String,
    /// Shown in `pg_stat_activity`: which service this is.
    pub application: String,
    /// Most connections of this process.
    pub pool: u32,
    /// Longest statement. Longer ones are ended by PostgreSQL.
    pub statement_timeout: Duration,
    /// How long a caller waits for a free connection, and for the first one at start.
    pub acquire_timeout: Duration,
}

impl Connect {
    /// The usual settings for a service of that name.
    #[must_use]
    pub fn new(url: impl Into<String>, application: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            application: application.into(),
            pool: 8,
            statement_timeout: Duration::from_secs(10),
            acquire_timeout: Duration::from_secs(5),
        }
    }
}

impl Queue {
    /// Connects; fails when the server can not be reached within the acquire time-out. Looks at no schema: see [`Queue::check_schema`].
    pub async fn connect(connect: &Connect) -> Result<Self, StoreError> {
        let options: PgConnectOptions = connect.url.parse::<PgConnectOptions>()?;
        let options = options
            .application_name(&connect.application)
            .options([
                ("plan_cache_mode", "force_generic_plan".to_owned()),
                ("statement_timeout", connect.statement_timeout.as_millis().to_string()),
                ("idle_in_transaction_session_timeout", "30000".to_owned()),
                ("timezone", "UTC".to_owned()),
            ])
            .disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(connect.pool)
            .acquire_timeout(connect.acquire_timeout)
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        Ok(Self::from_pool(pool))
    }

    /// Brings the schema up to this program's. Safe with several programs at once: an advisory lock orders them.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        // a migration may take longer than any page may
        sqlx::query("SET statement_timeout = 0")
            .execute(&mut *connection)
            .await?;
        let migrated = MIGRATIONS.run(&mut *connection).await;
        sqlx::query("RESET statement_timeout").execute(&mut *connection).await?;
        Ok(migrated?)
    }

    /// The newest migration that the database has; `None` before the first.
    pub async fn schema_version(&self) -> Result<Option<i64>, StoreError> {
        // not checked at compile time: the table belongs to the migrations themselves
        let there: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
            .fetch_one(&self.pool)
            .await?;
        if !there {
            return Ok(None);
        }
        Ok(
            sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
                .fetch_one(&self.pool)
                .await?,
        )
    }

    /// The newest migration of this program.
    #[must_use]
    pub fn schema_needed() -> i64 {
        MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
    }

    /// [`StoreError::Schema`] when the database is not where this program needs it.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let needed = Self::schema_needed();
        match self.schema_version().await? {
            Some(found) if found == needed => Ok(()),
            Some(found) => Err(StoreError::Schema {
                found: found.to_string(),
                needed,
            }),
            None => Err(StoreError::Schema {
                found: "none".to_owned(),
                needed,
            }),
        }
    }

    /// A short word made once per database: it names the deployment in container labels, so that two deployments on one host never touch
    /// each other's containers.
    pub async fn deployment_id(&self) -> Result<String, StoreError> {
        let id = sqlx::query_scalar!("SELECT deployment FROM settings")
            .fetch_one(&self.pool)
            .await?;
        Ok(id)
    }

    /// Closes every connection; waits for those in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// `SELECT 1`: for readiness.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query!("SELECT 1 AS one").fetch_one(&self.pool).await?;
        Ok(())
    }

    /// The pool itself, for tests that look at rows.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}
