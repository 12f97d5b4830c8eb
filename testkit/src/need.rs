//! What a test may need that not every machine has: Docker, an image, a browser, the shared payloads.
//!
//! Each function gives the thing, or prints one line `SKIPPED: TEST: REASON` to standard error and gives `None`, upon
//! which the test returns. `./test` sets `PI_DISPATCH_TEST=full`: then a missing Docker, image or browser is a failure,
//! so that a whole run never passes for having left something out. `./test --fast` sets `fast`: then they are left out
//! even where they are there. The payloads are no part of the project: their absence is always only a skip.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where Docker listens.
pub const DOCKER_SOCKET: &str = "/var/run/docker.sock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Fast,
    Full,
    /// `cargo test` by hand: whatever is there is used.
    Unsaid,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one variable that says how much of the tests is meant to run"
)]
fn extent() -> Extent {
    match std::env::var("PI_DISPATCH_TEST").as_deref() {
        Ok("fast") => Extent::Fast,
        Ok("full") => Extent::Full,
        Ok(_) | Err(_) => Extent::Unsaid,
    }
}

/// Says that a test, or a part of it, did not run.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    eprintln!("SKIPPED: {name}: {reason}");
}

fn find<T>(what: &str, look: impl FnOnce() -> Result<T, String>) -> Option<T> {
    let extent = extent();
    if extent == Extent::Fast {
        skipped(&format!("{what} is left out of a fast run"));
        return None;
    }
    match look() {
        Ok(found) => Some(found),
        Err(reason) => {
            assert!(extent != Extent::Full, "{what} is needed: {reason}");
            skipped(&format!("{what}: {reason}"));
            None
        }
    }
}

/// Docker's socket, when an engine answers there.
pub fn docker() -> Option<PathBuf> {
    find("Docker", || ask_docker("/_ping").map(|_| PathBuf::from(DOCKER_SOCKET)))
}

/// The id of an image (`sha256:…`), when Docker has it.
pub fn image(name: &str) -> Option<String> {
    find(&format!("the image {name}"), || {
        let answer = ask_docker(&format!("/images/{name}/json"))?;
        let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let id = answer.get("Id").and_then(|id| id.as_str());
        id.map(str::to_owned)
            .ok_or_else(|| "`pi-dispatch image build` has not made it here".to_owned())
    })
}

/// A file or folder of the shared payloads (`payloads/forgejo-captured`), beside the tree.
pub fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("../shared/{path} is not here"));
    None
}

/// A chromedriver of one test; it ends, its browsers with it, when this is dropped or the test's thread ends.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    port: u16,
    /// Where its browsers keep their profiles: by this name they are found when they outlive it.
    folder: tempfile::TempDir,
}

impl Browser {
    /// Where it takes WebDriver's commands.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        // Asked first: it closes its browsers before it goes, most of the time.
        let asked = pid.is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok());
        for _ in 0..if asked { 100 } else { 0 } {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A browser with an open session stays. Its page would go on asking a port that is somebody else's by then.
        kill_all_that_name(&self.folder.path().to_string_lossy());
    }
}

/// Kills every process whose command line holds the text.
fn kill_all_that_name(text: &str) {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    for process in processes {
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
            continue;
        };
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(text) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// A chromedriver that was started for this test. Chromium itself wants `--headless=new`, and `--no-sandbox` as root.
pub fn browser() -> Option<Browser> {
    find("a browser", || {
        let folder = tempfile::Builder::new()
            .prefix("pd-browser-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "chromedriver", "--port=0"])
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("chromedriver cannot be started: {error}"))?;
        let lines = BufReader::new(child.stdout.take().ok_or("chromedriver's output was not piped")?).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        match port {
            Some(port) => Ok(Browser { child, port, folder }),
            None => {
                let _ = child.wait();
                Err("chromedriver is not installed, or did not say its port".to_owned())
            }
        }
    })
}

fn ask_docker(path: &str) -> Result<String, String> {
    let mut socket = UnixStream::connect(DOCKER_SOCKET).map_err(|error| format!("{DOCKER_SOCKET}: {error}"))?;
    let answer = socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .and_then(|()| write!(socket, "GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n"))
        .and_then(|()| {
            let mut answer = String::new();
            socket.read_to_string(&mut answer).map(|_| answer)
        })
        .map_err(|error| format!("{DOCKER_SOCKET}: {error}"))?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("Docker answered something that is not HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or("");
    match status {
        "200" => Ok(body.to_owned()),
        "404" => Err("Docker does not have it; `pi-dispatch image build` makes it".to_owned()),
        other => Err(format!("Docker answered {other}")),
    }
}
