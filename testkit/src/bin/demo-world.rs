//! The outside world of `./up --demo`: a stub Forgejo with a sample repository, and a scripted model.
//!
//! It writes the tokens and keys that pi-dispatch needs into files that only their owner may read, keeps those that
//! are there already, prints `ready` once both listen, and runs until SIGTERM, Ctrl-C, the end of its parent, or, when
//! its standard input is a pipe, until that is closed.
//!
//! `POST /demo/comment` with `{"as": "mira", "issue": 1, "body": "@pi triage"}` writes a comment on the sample
//! repository and answers `{"id", "url"}`.

use anyhow::{Context, bail};
use clap::Parser;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::forge::{Scope, Settings, StubForge};
use testkit::model::{Script, ScriptedModel};
use tokio::signal::unix::{SignalKind, signal};

/// A stub Forgejo with a sample repository, and a scripted model, for the demo of pi-dispatch.
#[derive(Debug, Parser)]
#[command(name = "demo-world", version)]
struct Options {
    /// Where the stub forge listens.
    #[arg(long, default_value = "127.0.0.1:8462")]
    forge: SocketAddr,
    /// Where the scripted model listens.
    #[arg(long, default_value = "127.0.0.1:8463")]
    model: SocketAddr,
    /// Where the sample repository's hook sends its deliveries.
    #[arg(long, default_value = "http://127.0.0.1:8460/hooks/demo")]
    hook_url: String,
    /// The hook's secret: read, or made when it is not there.
    #[arg(long)]
    hook_secret_file: PathBuf,
    /// The token of pi-bot, who may write: read, or made.
    #[arg(long)]
    token_file: PathBuf,
    /// The read-only token of a repository administrator, who may ask what others may do: read, or made.
    #[arg(long)]
    permission_token_file: Option<PathBuf>,
    /// The model's key: read, or made. The model takes any.
    #[arg(long)]
    model_key_file: Option<PathBuf>,
    /// A folder for the git repositories; what a former run left in it is removed.
    #[arg(long)]
    work: Option<PathBuf>,
    /// Ids of issues and comments begin after this number. Whoever keeps a database must give each run a higher one.
    #[arg(long, default_value_t = 0)]
    id_base: i64,
    /// Writes this comment on issue 1, as mira, once both listen.
    #[arg(long)]
    comment: Option<String>,
}

const REPOSITORY: &str = "lab/widgets";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let forge = forge(&options)?;
    let model = ScriptedModel::start_on(options.model, Script::demo())
        .with_context(|| format!("the scripted model cannot listen on {}", options.model))?;
    if let Some(file) = &options.model_key_file {
        kept_or_made(file)?;
    }
    println!("stub forge       {}/{REPOSITORY}/issues/1", forge.url());
    println!("scripted model   {} (openai-completions)", model.openai_url());
    println!("hook             {}", options.hook_url);
    println!("ready");
    if let Some(body) = &options.comment {
        let id = forge.comment(REPOSITORY, 1, "mira", body);
        println!(
            "mira wrote       {}",
            format_args!("{}/{REPOSITORY}/issues/1#issuecomment-{id}", forge.url())
        );
    }
    ended().await
}

fn forge(options: &Options) -> anyhow::Result<StubForge> {
    if let Some(work) = &options.work {
        // Repositories are made anew: a leftover of a killed run would be in the way.
        let _ = std::fs::remove_dir_all(work.join("git"));
    }
    let dir = options.work.as_ref().map(|work| work.join("git"));
    let settings = Settings {
        listen: options.forge,
        dir,
        last_id: options.id_base,
    };
    let forge =
        StubForge::lab_with(settings).with_context(|| format!("the stub forge cannot listen on {}", options.forge))?;
    forge.set_token("pi-bot", &kept_or_made(&options.token_file)?, &Scope::BOT);
    if let Some(file) = &options.permission_token_file {
        forge.set_token("nils", &kept_or_made(file)?, &[Scope::ReadRepository]);
    }
    forge.hook(REPOSITORY, &options.hook_url, &kept_or_made(&options.hook_secret_file)?);
    Ok(forge)
}

/// The secret in a file; a new one, readable by its owner only, when there is none.
fn kept_or_made(file: &Path) -> anyhow::Result<String> {
    let about = || format!("{} cannot be used", file.display());
    match std::fs::read_to_string(file) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => bail!("{} is empty; remove it and it is made anew", file.display()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(about),
        Err(_) => {}
    }
    let secret = testkit::forge::new_token();
    let mut made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(about)?;
    writeln!(made, "{secret}").with_context(about)?;
    Ok(secret)
}

/// Waits for a reason to end.
async fn ended() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let (closed, stdin_closed) = tokio::sync::oneshot::channel();
    let piped = std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo());
    // A thread of its own: a read of standard input cannot be called off.
    std::thread::spawn(move || {
        if piped {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = closed.send(());
        } else {
            std::mem::forget(closed);
        }
    });
    let parent = rustix::process::getppid();
    let orphaned = async {
        while rustix::process::getppid() == parent {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = stdin_closed => {}
        () = orphaned => {}
    }
    Ok(())
}
