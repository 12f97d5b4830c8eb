//! `up --demo`: the whole road on this machine, with a stub Forgejo and a scripted model in place of the world outside.
//!
//! Everything else is real: receiver, PostgreSQL, worker, Docker, the runner, pi, the gateway, the panel.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use queue::read::JobFilter;
use queue::{JobStatus, Queue, Role};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::commands::serve::{Services, stop_signal};
use crate::commands::up::first_operator;
use crate::open::{self, Database};
use crate::{Context, terminal};

const HOOKS: &str = "127.0.0.1:8460";
const PANEL: &str = "127.0.0.1:8461";
const FORGE: &str = "127.0.0.1:8462";
const MODEL: &str = "127.0.0.1:8463";
const ISSUE: &str = "lab/widgets/issues/1";
/// How long the answer may take. A job takes some seconds; a busy machine more.
const PATIENCE: Duration = Duration::from_secs(180);

/// Plays the story; with `once` it ends with the answer.
pub async fn play(context: &Context, once: bool) -> anyhow::Result<ExitCode> {
    let folder = std::path::absolute(".pi-dispatch/demo")?;
    for address in [HOOKS, PANEL, FORGE, MODEL] {
        if let Err(error) = std::net::TcpListener::bind(address) {
            bail!("the demo needs {address}, and it is not free ({error}): is another demo or pi-dispatch running?");
        }
    }
    let files = Files::write(&folder)?;
    let context = Context {
        config_file: files.config.clone(),
        environment: context.environment.clone(),
    };
    let mut world = start_world(&folder, &files).await?;
    // It ends when its input does; waiting for a child would close that at once, so it is held here.
    let lifeline = world.stdin.take();
    let config = context.config()?;
    let database = Database::open(&config, "demo").await?;
    let told = tell(&context, &config, &database, &mut world, once).await;
    // What we started ends with us, whatever came of it.
    drop(lifeline);
    let _ = tokio::time::timeout(Duration::from_secs(5), world.wait()).await;
    database.close().await?;
    told
}

async fn tell(
    context: &Context,
    config: &crate::config::Config,
    database: &Database,
    world: &mut Child,
    once: bool,
) -> anyhow::Result<ExitCode> {
    let folder = context.config_file.parent().unwrap_or(Path::new("."));
    database
        .queue
        .migrate()
        .await
        .with_context(|| format!("remove {} to begin with an empty demo", folder.display()))?;
    let password = demo_password(&database.queue).await?;
    say("starting", "receiver, worker and admin, three processes");
    let log = context.config_file.with_file_name("services.log");
    let mut services = Services::start(context, Some(&log))?;
    let outcome = tokio::select! {
        outcome = story(config, &password, once) => outcome,
        name = services.first_end() => Err(anyhow::anyhow!("the {name} ended by itself")),
        _ = world.wait() => Err(anyhow::anyhow!("the stub forge ended by itself")),
        () = stop_signal() => Ok(ExitCode::SUCCESS),
    };
    if let Err(error) = end_jobs(&database.queue).await {
        eprintln!("a job may still run: {error:#}");
    }
    services.stop().await;
    outcome
}

/// A real worker leaves its containers running for the next one. The demo's forge and model go away, so its jobs do too.
async fn end_jobs(queue: &Queue) -> anyhow::Result<()> {
    let running = JobFilter {
        status: Some(JobStatus::Running),
        limit: 1,
        ..JobFilter::default()
    };
    queue.stop_all("cli:demo").await?;
    let began = Instant::now();
    while !queue.jobs(&running).await?.is_empty() {
        if began.elapsed() > Duration::from_secs(20) {
            bail!("it did not stop within 20 s");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn story(config: &crate::config::Config, password: &str, once: bool) -> anyhow::Result<ExitCode> {
    let http = http()?;
    until_ready(&http, &format!("http://{HOOKS}/ready"), "the receiver").await?;
    until_ready(&http, &format!("http://{PANEL}/health"), "the panel").await?;
    let comment = json!({ "as": "mira", "issue": 1, "body": "@pi triage" });
    let asked: Value = http
        .post(format!("http://{FORGE}/demo/comment"))
        .json(&comment)
        .send()
        .await?
        .error_for_status()?
        .json()
        .await?;
    let asked = asked["id"]
        .as_i64()
        .context("the stub forge did not say which comment it made")?;
    say("mira writes", "@pi triage   (under lab/widgets#1, on the stub Forgejo)");
    let answer = answer(&http, asked).await;
    let log = config.data_dir.with_file_name("services.log");
    let links = format!(
        "\n  the issue   http://{FORGE}/{ISSUE}\n  the panel   http://{PANEL}   (user `operator`, password {password})\n  \
         the trigger {}\n  their log   {}",
        config.worker.triggers.display(),
        log.display()
    );
    match answer {
        Ok(text) => {
            // The hidden marker is for us, not for a reader.
            let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with("<!--")).collect();
            let shown = terminal::safe(shown.join("\n").trim());
            out!("\n────── pi-bot answers ──────\n{shown}\n────────────────────────────");
            out!("{links}");
        }
        Err(error) if once => {
            out!("{links}");
            return Err(error);
        }
        Err(error) => eprintln!("{error:#}{links}"),
    }
    if once {
        return Ok(ExitCode::SUCCESS);
    }
    out!("\nWrite the next `@pi …` comment on the issue's page. Ctrl-C ends the demo.");
    std::future::pending().await
}

/// Follows the thread until our account has answered; says what can be seen on the way.
async fn answer(http: &reqwest::Client, asked: i64) -> anyhow::Result<String> {
    let began = Instant::now();
    let mut acknowledged = false;
    while began.elapsed() < PATIENCE {
        if !acknowledged {
            let reactions: Value = http
                .get(format!(
                    "http://{FORGE}/api/v1/repos/lab/widgets/issues/comments/{asked}/reactions"
                ))
                .send()
                .await?
                .json()
                .await
                .unwrap_or(Value::Null);
            if reactions
                .as_array()
                .is_some_and(|list| list.iter().any(|entry| entry["content"] == "eyes"))
            {
                acknowledged = true;
                say(
                    "pi-bot",
                    &format!(
                        "👀   (taken after {:.1} s; the job runs now)",
                        began.elapsed().as_secs_f64()
                    ),
                );
            }
        }
        let comments: Value = http
            .get(format!("http://{FORGE}/api/v1/repos/lab/widgets/issues/1/comments"))
            .send()
            .await?
            .json()
            .await?;
        let found = comments.as_array().into_iter().flatten().find(|comment| {
            comment["user"]["login"] == "pi-bot" && comment["id"].as_i64().is_some_and(|id| id > asked)
        });
        if let Some(text) = found.and_then(|comment| comment["body"].as_str()) {
            say("answered", &format!("after {:.1} s", began.elapsed().as_secs_f64()));
            return Ok(text.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!(
        "no answer came within {} s; `pi-dispatch --config .pi-dispatch/demo/pi-dispatch.toml jobs` shows why",
        PATIENCE.as_secs()
    )
}

async fn until_ready(http: &reqwest::Client, address: &str, what: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        if http
            .get(address)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(30) {
            bail!("{what} did not get ready within 30 s");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// For the stub on loopback alone; no token is sent.
fn http() -> anyhow::Result<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()?)
}

/// The demo's operator gets a new password each time: it is printed, so that the panel can be looked at.
async fn demo_password(queue: &Queue) -> anyhow::Result<String> {
    if let Some(password) = first_operator(queue).await? {
        return Ok(password);
    }
    let password = admin::password::random();
    queue
        .put_user(
            "operator",
            &admin::password::hash(password.clone()).await?,
            Role::Operator,
            "cli:demo",
        )
        .await?;
    Ok(password)
}

fn say(who: &str, what: &str) {
    out!("{who:>12}  {what}");
}

/// The demo's own configuration and secrets.
struct Files {
    config: PathBuf,
    hook_secret: PathBuf,
    token: PathBuf,
    permission_token: PathBuf,
    model_key: PathBuf,
}

impl Files {
    fn write(folder: &Path) -> anyhow::Result<Self> {
        open::make_data_dir(folder)?;
        let files = Self {
            config: folder.join("pi-dispatch.toml"),
            hook_secret: folder.join("hook-secret"),
            token: folder.join("token"),
            permission_token: folder.join("permission-token"),
            model_key: folder.join("model-key"),
        };
        let config = format!(
            r#"# Written by `up --demo`, anew at each start.
data_dir = "data"
public_url = "http://{PANEL}"
receiver = {{ listen = "{HOOKS}" }}
admin = {{ listen = "{PANEL}" }}

[worker]
triggers = "triggers.json"
provider = "scripted"
model = "scripted-1"

[[forges]]
name = "demo"
kind = "forgejo"
url = "http://{FORGE}"
repositories = ["lab/*"]
token = {{ file = "token" }}
permission_token = {{ file = "permission-token" }}
webhook_secrets = [{{ file = "hook-secret" }}]

[providers.scripted]
api = "openai-completions"
base_url = "http://{MODEL}/v1"
key = {{ file = "model-key" }}
models = [{{ id = "scripted-1", context_window = 128000, max_tokens = 8192, cost = {{ input = "3", output = "15" }} }}]
"#
        );
        std::fs::write(&files.config, config)?;
        std::fs::write(folder.join("triggers.json"), include_str!("../starter-triggers.json"))?;
        Ok(files)
    }
}

async fn start_world(folder: &Path, files: &Files) -> anyhow::Result<Child> {
    let program = std::env::current_exe()?.with_file_name("demo-world");
    if !program.exists() {
        bail!(
            "{} is missing: the demo is started with ./up --demo, which builds it",
            program.display()
        );
    }
    // Comment ids must not repeat: the database of the last demo remembers them.
    let base = std::fs::read_to_string(folder.join("runs"))
        .ok()
        .and_then(|text| text.trim().parse::<i64>().ok())
        .unwrap_or(0)
        + 1;
    std::fs::write(folder.join("runs"), base.to_string())?;
    let mut world = Command::new(program)
        .args([
            "--forge",
            FORGE,
            "--model",
            MODEL,
            "--hook-url",
            &format!("http://{HOOKS}/hooks/demo"),
        ])
        .arg("--hook-secret-file")
        .arg(&files.hook_secret)
        .arg("--token-file")
        .arg(&files.token)
        .arg("--permission-token-file")
        .arg(&files.permission_token)
        .arg("--model-key-file")
        .arg(&files.model_key)
        .arg("--work")
        .arg(folder.join("world"))
        .args(["--id-base", &(base * 1000).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("the stub forge could not be started")?;
    let output = world.stdout.take().context("the stub forge has no output")?;
    let mut lines = BufReader::new(output).lines();
    loop {
        match tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await {
            Ok(Ok(Some(line))) if line.trim() == "ready" => break,
            Ok(Ok(Some(_))) => {}
            _ => bail!("the stub forge did not get ready"),
        }
    }
    // Its further lines are drained so that it never blocks on a full pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(world)
}
