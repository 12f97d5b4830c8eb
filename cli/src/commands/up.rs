//! `pi-dispatch up`: from a folder with nothing in it to running services; with `--demo` the whole story on this machine.

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use queue::{Queue, Role};

use super::serve::{Services, stop_signal};
use crate::config::Config;
use crate::open::{self, Database};
use crate::{Context, demo};

/// The starter configuration: commented, and refused by nothing.
const STARTER: &str = include_str!("../../starter.toml");
/// The starter triggers: the one of the README.
const STARTER_TRIGGERS: &str = include_str!("../../starter-triggers.json");
/// Name of the first operator.
const FIRST_OPERATOR: &str = "operator";

/// Arguments of `up`.
#[derive(Args)]
pub struct Up {
    /// Play the whole story here: a stub Forgejo, a scripted model, one comment and its answer
    #[arg(long)]
    demo: bool,
    /// With --demo: end when the answer is there (exit code 0), or when it does not come
    #[arg(long, requires = "demo")]
    once: bool,
}

impl Up {
    /// Runs until Ctrl-C.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        if self.demo {
            return demo::play(context, self.once).await;
        }
        let wrote = write_starters(context)?;
        let config = context.config()?;
        let missing = missing(&config, context).await;
        if !missing.is_empty() {
            if wrote {
                eprintln!(
                    "\nA starter file was written: {}. Fill it in, then run this again.",
                    context.config_file.display()
                );
            }
            eprintln!("\nStill missing:");
            for line in &missing {
                eprintln!("  - {line}");
            }
            eprintln!(
                "\nHow to connect a forge: docs/connect-forgejo.md. A model: docs/models.md. To see it work first: ./up --demo"
            );
            return Ok(ExitCode::FAILURE);
        }
        open::addresses_are_free(&config)?;
        let database = Database::open(&config, "up").await?;
        database.queue.migrate().await?;
        if let Some(password) = first_operator(&database.queue).await? {
            out!("First sign-in to the panel: user `{FIRST_OPERATOR}`, password {password}");
            out!("(shown once; another: pi-dispatch user password {FIRST_OPERATOR})");
        }
        let mut services = Services::start(context, None)?;
        out!("Hooks:  http://{}/hooks/NAME", config.receiver.listen);
        out!("Panel:  http://{}", config.admin_listen);
        out!("Ctrl-C ends it.");
        let ended = tokio::select! {
            () = stop_signal() => None,
            name = services.first_end() => Some(name),
        };
        services.stop().await;
        database.close().await?;
        match ended {
            None => Ok(ExitCode::SUCCESS),
            Some(name) => anyhow::bail!("the {name} ended by itself; the other services were stopped"),
        }
    }
}

/// Makes the first operator; his password, unless somebody may sign in already.
pub async fn first_operator(queue: &Queue) -> anyhow::Result<Option<String>> {
    if !queue.users().await?.is_empty() {
        return Ok(None);
    }
    let password = admin::password::random();
    let hash = admin::password::hash(password.clone()).await?;
    queue.put_user(FIRST_OPERATOR, &hash, Role::Operator, "cli:up").await?;
    Ok(Some(password))
}

fn write_starters(context: &Context) -> anyhow::Result<bool> {
    let file = &context.config_file;
    if file.exists() {
        return Ok(false);
    }
    write_new(file, STARTER)?;
    let triggers = file.with_file_name("triggers.json");
    if !triggers.exists() {
        write_new(&triggers, STARTER_TRIGGERS)?;
    }
    Ok(true)
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// What still stands in the way, a sentence each. Nothing is installed and nothing is guessed.
async fn missing(config: &Config, context: &Context) -> Vec<String> {
    let mut missing = Vec::new();
    if config.forges.is_empty() {
        missing.push("no forge is configured: add a [[forges]] section".to_owned());
    }
    for forge in &config.forges {
        if forge.webhook_secrets.is_empty() {
            missing.push(format!(
                "the forge `{}` has no webhook_secrets: the receiver does not start without",
                forge.name
            ));
        }
        if forge.token.is_none() {
            missing.push(format!(
                "the forge `{}` has no token: nothing could be answered there",
                forge.name
            ));
        }
        for place in forge
            .webhook_secrets
            .iter()
            .chain(&forge.token)
            .chain(&forge.permission_token)
        {
            if let Err(error) = place.open(&context.environment, config.worker.job_uid) {
                missing.push(format!("the forge `{}`: {error}", forge.name));
            }
        }
    }
    if !config.worker.triggers.exists() {
        missing.push(format!(
            "the triggers file {} does not exist",
            config.worker.triggers.display()
        ));
    }
    let catalog = open::catalog(config, context);
    match (&catalog, &config.worker.provider, &config.worker.model) {
        (Err(error), ..) => missing.push(format!("{error:#}")),
        (Ok((catalog, _)), Some(provider), Some(model)) => {
            if let Err(refusal) = catalog.grant(provider, model, true) {
                missing.push(format!("the default model {provider}/{model}: {refusal}"));
            }
        }
        (Ok(_), None, _) | (Ok(_), _, None) => {
            missing.push("no default model: set worker.provider and worker.model".to_owned());
        }
    }
    match open::docker(&config.worker.docker) {
        Ok(docker) => match docker.inspect_image(&config.worker.image).await {
            Ok(_) => {}
            Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => {
                missing.push(format!(
                    "the job image {} is not there: pi-dispatch image build",
                    config.worker.image
                ));
            }
            Err(_) => missing.push(format!("no Docker engine answers at {}", config.worker.docker)),
        },
        Err(error) => missing.push(format!("{error:#}")),
    }
    missing
}
