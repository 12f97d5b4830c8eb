//! `pi-dispatch config`.

use std::process::ExitCode;

use clap::Args;

use crate::config::keys;
use crate::{Context, terminal};

/// Arguments of `config`.
#[derive(Args)]
pub struct ShowConfig {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// List every key that exists, with its meaning
    #[arg(long)]
    keys: bool,
}

impl ShowConfig {
    /// Prints the values in force; a secret is only ever named by its place.
    pub fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        if self.keys {
            let rows = keys::KEYS
                .iter()
                .map(|key| [key.path.to_owned(), key.kind.words().to_owned(), key.help.to_owned()]);
            out!("{}", terminal::table(["key", "holds", "meaning"], rows));
            return Ok(ExitCode::SUCCESS);
        }
        let config = context.config()?;
        if self.json {
            out!("{}", serde_json::to_string_pretty(&config.shown)?);
            return Ok(ExitCode::SUCCESS);
        }
        match &config.file {
            Some(file) => out!("Configuration of {} and the environment:\n", file.display()),
            None => out!(
                "There is no {}: these are the defaults.\n",
                context.config_file.display()
            ),
        }
        let rows = config
            .shown
            .into_iter()
            .map(|shown| [shown.place, shown.value, shown.from]);
        out!("{}", terminal::table(["key", "value", "from"], rows));
        Ok(ExitCode::SUCCESS)
    }
}
