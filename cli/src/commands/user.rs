//! `pi-dispatch user`: who may sign in to the panel.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use queue::Role;

use super::control::who;
use crate::open::Database;
use crate::{Context, terminal};

/// Arguments of `user`.
#[derive(Args)]
pub struct User {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add somebody; the password is made here and printed once
    Add {
        /// The name to sign in with
        name: String,
        /// An operator may stop, pause and start; a viewer may look
        #[arg(long, value_parser = ["operator", "viewer"])]
        role: String,
    },
    /// Give somebody a new password, printed once; their sessions end
    Password {
        /// The name to sign in with
        name: String,
    },
    /// Remove somebody; their sessions end
    Remove {
        /// The name to sign in with
        name: String,
    },
    /// List who may sign in
    List {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
}

impl User {
    /// Exit code 1 when the named user is not there, or is already.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let database = Database::open_current(&config, "cli").await?;
        let code = self.action.run(&database.queue).await?;
        database.close().await?;
        Ok(code)
    }
}

impl Action {
    async fn run(self, queue: &queue::Queue) -> anyhow::Result<ExitCode> {
        match self {
            Self::Add { name, role } => {
                if let Err(reason) = admin::password::check_name(&name) {
                    anyhow::bail!("the name: {reason}");
                }
                if queue.user(&name).await?.is_some() {
                    anyhow::bail!("{name} may sign in already; a new password: pi-dispatch user password {name}");
                }
                let role = if role == "operator" {
                    Role::Operator
                } else {
                    Role::Viewer
                };
                set_password(queue, &name, role).await?;
            }
            Self::Password { name } => {
                let Some(user) = queue.user(&name).await? else {
                    anyhow::bail!("there is no user {}", terminal::line(&name, 60))
                };
                set_password(queue, &name, user.role).await?;
            }
            Self::Remove { name } => {
                if !queue.remove_user(&name, &who()).await? {
                    anyhow::bail!("there is no user {}", terminal::line(&name, 60));
                }
                out!("{name} may not sign in any more");
            }
            Self::List { json } => {
                let users = queue.users().await?;
                if json {
                    out!("{}", serde_json::to_string_pretty(&users)?);
                } else {
                    let rows = users.into_iter().map(|user| {
                        [
                            user.name,
                            user.role.to_string(),
                            user.created_at.format("%F").to_string(),
                        ]
                    });
                    out!("{}", terminal::table(["name", "role", "since"], rows));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn set_password(queue: &queue::Queue, name: &str, role: Role) -> anyhow::Result<()> {
    let password = admin::password::random();
    queue
        .put_user(name, &admin::password::hash(password.clone()).await?, role, &who())
        .await?;
    out!("{name} signs in as {role} with the password {password}");
    out!("(shown once)");
    Ok(())
}
