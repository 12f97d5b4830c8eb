//! pi-dispatch: runs the `pi` coding agent for a team, unattended.
//!
//! This is the program: it reads all configuration and hands each service only what is its own. What the services do is in
//! their crates; start reading at `worker/src/job.rs`.

#[macro_use]
mod terminal;

mod commands;
mod config;
mod demo;
mod environment;
mod open;
mod private_postgres;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use environment::Environment;

/// The configuration file when none is named.
const CONFIG_FILE: &str = "pi-dispatch.toml";

/// Runs the pi coding agent for a team: a comment or a person starts a job, the job runs pi in a locked
/// container, the answer comes back to the forge, and operators see and stop everything.
#[derive(Parser)]
#[command(
    name = "pi-dispatch",
    version,
    max_term_width = 100,
    after_help = "Start with `pi-dispatch up`. Pages: docs/."
)]
struct Arguments {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", default_value = CONFIG_FILE)]
    config: PathBuf,
    /// End when the process of this number ends; `up` and `serve` give it to their services
    #[arg(long, global = true, hide = true, value_name = "PID")]
    ends_with: Option<u32>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prepare what is missing (database, first operator) and run all services until Ctrl-C
    Up(commands::up::Up),
    /// Run receiver, worker and admin as three processes
    Serve(commands::serve::Serve),
    /// Run the HTTP edge that takes webhooks
    Receiver,
    /// Run a worker: it decides, runs jobs and posts answers
    Worker(commands::services::Worker),
    /// Run the web panel
    Admin,
    /// Read a triggers file and say everything that is wrong with it (exit code 2)
    Check(commands::check::Check),
    /// Say why a delivery started a job, or did not
    Explain(commands::explain::Explain),
    /// Start a job by hand: a manual trigger, or a job file without any database
    Run(commands::run::Run),
    /// List jobs
    Jobs(commands::jobs::Jobs),
    /// Show one job: its gates, tools, outputs and log
    Job(commands::jobs::Job),
    /// Stop a running or waiting job, or all of them
    Stop(commands::control::Stop),
    /// Start no further job until `resume`
    Pause(commands::control::Pause),
    /// Let jobs start again
    Resume,
    /// Manage who may sign in to the panel
    User(commands::user::User),
    /// Build or verify the job image
    Image(commands::image::Image),
    /// Bring the database to this program's schema
    Migrate,
    /// Print the configuration in force and where each value came from
    Config(commands::show_config::ShowConfig),
}

/// What every command gets.
struct Context {
    config_file: PathBuf,
    environment: Environment,
}

impl Context {
    fn config(&self) -> anyhow::Result<config::Config> {
        // The usual file may be absent; one that was named may not.
        anyhow::ensure!(
            self.config_file == Path::new(CONFIG_FILE) || self.config_file.exists(),
            "there is no configuration file {}",
            self.config_file.display()
        );
        Ok(config::load(&self.config_file, &self.environment)?)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(parent) = arguments.ends_with
        && let Err(error) = end_with(parent)
    {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    let context = Context {
        config_file: arguments.config,
        environment: Environment::of_the_process(),
    };
    match dispatch(arguments.command, &context).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", terminal::safe(&said_once(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Asks the kernel for SIGTERM when our parent dies, also when it is killed: nothing that it started stays behind.
fn end_with(parent: u32) -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    // It may have died before we asked; then nobody tells us any more.
    anyhow::ensure!(
        std::os::unix::process::parent_id() == parent,
        "process {parent}, which started this one, has ended"
    );
    Ok(())
}

/// The error and its causes on one line, without what was said already: some libraries repeat their cause.
fn said_once(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |said, cause| match said.as_str() {
            "" => cause,
            said if said.contains(&cause) => said.to_owned(),
            said => format!("{said}: {cause}"),
        })
}

async fn dispatch(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(up) => up.run(context).await,
        Command::Serve(serve) => serve.run(context).await,
        Command::Receiver => commands::services::receiver(context).await,
        Command::Worker(worker) => worker.run(context).await,
        Command::Admin => commands::services::admin(context).await,
        Command::Check(check) => check.run(),
        Command::Explain(explain) => explain.run(context).await,
        Command::Run(run) => run.run(context).await,
        Command::Jobs(jobs) => jobs.run(context).await,
        Command::Job(job) => job.run(context).await,
        Command::Stop(stop) => stop.run(context).await,
        Command::Pause(pause) => pause.run(context).await,
        Command::Resume => commands::control::resume(context).await,
        Command::User(user) => user.run(context).await,
        Command::Image(image) => image.run(context).await,
        Command::Migrate => commands::control::migrate(context).await,
        Command::Config(show) => show.run(context),
    }
}
