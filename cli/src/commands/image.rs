//! `pi-dispatch image`: the job image, built and verified.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::Context;

/// Arguments of `image`.
#[derive(Args)]
pub struct Image {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build it
    Build,
}

impl Image {
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let _ = (self.action, context);
        anyhow::bail!("not yet")
    }
}
