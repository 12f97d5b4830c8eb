//! A private PostgreSQL for one test process: real, quick, and gone with the process.
//!
//! [`Scratch::shared`] starts one cluster for all tests of a binary; [`Scratch::database`] gives each test an empty
//! database of its own. A test that wants to stop the server takes [`Scratch::private`] instead, so that it stops
//! nobody else's. The server listens on a socket only, in a short folder under `/tmp` (a socket path has 107 bytes),
//! with `fsync` off: it survives a kill of its processes, not one of the machine.
//!
//! PostgreSQL refuses to run as root, so as root everything runs as [`UNPRIVILEGED`] through `setpriv`. The server is
//! kept by a small shell (`keeper.sh`) that waits on a pipe from this process: when the pipe closes, for whatever
//! reason (an exit, a panic, `kill -9`), it stops the server and removes the folder. Should the keeper be killed too,
//! the next start finds a folder whose owner is gone and clears it.
//!
//! Fails by panicking with PostgreSQL's own words: without a database no test can go on.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The user and group that the server runs as when the test process is root: `nobody` on Debian.
pub const UNPRIVILEGED: u32 = 65534;

/// Where Debian keeps the programs of PostgreSQL 15; elsewhere they are looked for on the `PATH`.
const BIN: &str = "/usr/lib/postgresql/15/bin";

/// What every folder of ours under `/tmp` begins with; the owner's process id and a number follow.
const PREFIX: &str = "pd-pg-";

const KEEPER: &str = include_str!("postgres/keeper.sh");

static SHARED: OnceLock<Scratch> = OnceLock::new();
static CLUSTERS: AtomicU64 = AtomicU64::new(0);

/// A running cluster. Dropping a private one stops it; the shared one ends with the process.
pub struct Scratch {
    folder: PathBuf,
    keeper: Mutex<Keeper>,
    databases: AtomicU64,
}

/// An empty database, made from `template0` and owned by one test.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// Its address as sqlx and libpq read it: `postgres:///NAME?host=FOLDER&user=postgres`.
    pub url: String,
    /// Its name inside the cluster.
    pub name: String,
}

struct Keeper {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Scratch {
    /// The cluster that all tests of this process share, started by the first who asks.
    pub async fn shared() -> &'static Self {
        blocking(|| SHARED.get_or_init(Self::start)).await
    }

    /// A cluster of one's own, for a test that stops the server or fills it.
    pub async fn private() -> Self {
        blocking(Self::start).await
    }

    /// A fresh, empty database. Nothing is migrated into it.
    pub async fn database(&self) -> TestDatabase {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let (folder, sql) = (
            self.folder.clone(),
            format!("CREATE DATABASE {name} TEMPLATE template0"),
        );
        blocking(move || psql(&folder, &sql)).await;
        TestDatabase {
            url: self.url(&name),
            name,
        }
    }

    /// The address of a database in this cluster.
    pub fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user=postgres", self.folder.display())
    }

    /// The folder with the socket, for `PGHOST` and the like.
    pub fn socket_dir(&self) -> &Path {
        &self.folder
    }

    /// Stops the server at once, as a crash would: open connections break, committed rows stay. [`Self::resume`]
    /// brings it back.
    pub async fn stop(&self) {
        self.order_off_thread("stop").await;
    }

    /// Starts a server that was stopped.
    pub async fn resume(&self) {
        self.order_off_thread("start").await;
    }

    /// Stops the server and starts it again: what a program sees when PostgreSQL is restarted under it.
    pub async fn restart(&self) {
        self.stop().await;
        self.resume().await;
    }

    fn start() -> Self {
        clear_stale();
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new("/tmp").join(format!("{PREFIX}{}-{number}", std::process::id()));
        let mut child = unprivileged("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .arg(program("").parent().unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("the keeper of PostgreSQL cannot be started: {error}"));
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.unwrap_or_else(|| panic!("the keeper's output was not piped")));
        let scratch = Self {
            folder,
            keeper: Mutex::new(Keeper { child, orders, answers }),
            databases: AtomicU64::new(0),
        };
        scratch.order("start");
        scratch
    }

    fn order(&self, word: &str) {
        order(&mut self.keeper(), word);
    }

    async fn order_off_thread(&self, word: &'static str) {
        // A short wait on a pipe: the callers are tests, whose runtimes may well block for it.
        self.order(word);
        tokio::task::yield_now().await;
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut keeper = self.keeper();
        keeper.orders = None;
        // The keeper ends by itself once its pipe is closed; its folder is gone when this returns.
        let _ = keeper.child.wait();
    }
}

fn order(keeper: &mut Keeper, word: &str) {
    let sent = keeper
        .orders
        .as_mut()
        .is_some_and(|pipe| writeln!(pipe, "{word}").is_ok());
    let mut answer = String::new();
    let read = keeper.answers.read_line(&mut answer);
    assert!(
        sent && read.is_ok() && answer.trim() == "done",
        "PostgreSQL did not {word}: {}",
        answer.trim()
    );
}

fn psql(folder: &Path, sql: &str) {
    let run = Command::new(program("psql"))
        .args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-h",
        ])
        .arg(folder)
        .args(["-c", sql])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("psql cannot be started: {error}"));
    assert!(
        run.status.success(),
        "`{sql}` failed: {}",
        String::from_utf8_lossy(&run.stderr)
    );
}

/// Removes what processes that are gone have left: their keeper was killed beside them.
fn clear_stale() {
    let entries = std::fs::read_dir("/tmp").into_iter().flatten().flatten();
    for folder in entries.map(|entry| entry.path()) {
        let owner = folder
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        let Some(owner) = owner else { continue };
        if Path::new("/proc").join(owner.to_string()).exists() {
            continue;
        }
        // A keeper may be clearing it this very moment: what it has removed already is not missed.
        stop_orphan(&folder);
        let _ = unprivileged("rm").arg("-rf").arg("--").arg(&folder).status();
    }
}

/// Stops a server whose keeper is gone; it is known by the data folder in its command line.
fn stop_orphan(folder: &Path) {
    let data = folder.join("data");
    let pid = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let Some(pid) = pid.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
        return;
    };
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&line).contains(&*data.to_string_lossy()) {
        let _ = unprivileged(program("pg_ctl"))
            .args(["stop", "-s", "-w", "-m", "immediate", "-D"])
            .arg(&data)
            .stdin(Stdio::null())
            .status();
    }
}

/// A command that runs as an ordinary user, whoever we are, and in no folder of ours.
fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let id = UNPRIVILEGED.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
            .arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/").stderr(Stdio::inherit());
    command
}

fn program(name: &str) -> PathBuf {
    let debian = Path::new(BIN);
    if debian.is_dir() {
        debian.join(name)
    } else {
        PathBuf::from(name)
    }
}

/// Waits for something that blocks, without holding up the test's runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => panic!("the runtime ended first: {cancelled}"),
        },
    }
}
