//! Running git, and nothing but git: what it may read, where it may connect, how long, and what its words mean.
//!
//! The environment is emptied first. git then knows no configuration but ours, asks nobody anything, runs no hook and
//! no helper, follows no redirect, and speaks the one protocol of the address it was given. The token stands in the
//! environment of that one process, never in its arguments, and is cut out of whatever git says.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::GitError;

/// So much of what git says on standard error is kept.
const MAX_COMPLAINT: u64 = 16 * 1024;

/// Where programs of the system are. A job never writes there, and nothing else is on the path.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The objects of a fetched commit are checked, since they come from anybody. These faults are old and harmless, and
/// stand in many honest histories.
const HARMLESS: [&str; 5] = [
    "fetch.fsck.zeroPaddedFilemode",
    "fetch.fsck.badTimezone",
    "fetch.fsck.missingSpaceBeforeEmail",
    "fetch.fsck.missingSpaceBeforeDate",
    "fetch.fsck.missingEmail",
];

/// One way to run git: where, with what, and how long.
pub(super) struct Git<'a> {
    /// The repository: a bare one, or the `.git` of a workspace that no job has had yet.
    pub(super) git_dir: &'a Path,
    /// The working tree, for a checkout.
    pub(super) work_tree: Option<&'a Path>,
    /// A folder that is ours and empty.
    pub(super) home: &'a Path,
    /// The header with the token.
    pub(super) header: Option<&'a SecretString>,
    /// The one protocol that may be spoken.
    pub(super) protocol: &'static str,
    /// It is ended after so long.
    pub(super) timeout: Duration,
}

/// What git wrote.
pub(super) struct Output {
    pub(super) stdout: Vec<u8>,
    /// There was more than was asked for.
    pub(super) cut: bool,
}

impl Git<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.home)
            .env("XDG_CONFIG_HOME", self.home)
            .env("LC_ALL", "C")
            .env("GIT_DIR", self.git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "/bin/false")
            .env("SSH_ASKPASS", "/bin/false")
            .env("GIT_ALLOW_PROTOCOL", self.protocol)
            .env("GIT_PROTOCOL_FROM_USER", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .current_dir(self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(work_tree) = self.work_tree {
            command.env("GIT_WORK_TREE", work_tree);
        }
        for (number, (key, value)) in self.configuration().iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), key)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        command.env("GIT_CONFIG_COUNT", self.configuration().len().to_string());
        command
    }

    fn configuration(&self) -> Vec<(&str, &str)> {
        let mut configuration = vec![
            ("http.followRedirects", "false"),
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "30"),
            ("credential.helper", ""),
            ("core.askPass", "/bin/false"),
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("core.attributesFile", "/dev/null"),
            ("core.excludesFile", "/dev/null"),
            ("core.logAllRefUpdates", "false"),
            ("core.protectHFS", "true"),
            ("core.protectNTFS", "true"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("fetch.recurseSubmodules", "false"),
            ("submodule.recurse", "false"),
            ("fetch.fsckObjects", "true"),
            ("advice.detachedHead", "false"),
        ];
        configuration.extend(HARMLESS.map(|fault| (fault, "ignore")));
        configuration.extend(self.header.map(|header| ("http.extraHeader", header.expose_secret())));
        configuration
    }

    /// Runs git to its end. `input` goes to its standard input; of its standard output at most `most` bytes are taken,
    /// and one that has more is ended.
    pub(super) async fn run(&self, arguments: &[&str], input: Option<Vec<u8>>, most: u64) -> Result<Output, GitError> {
        let mut command = self.command();
        command.args(arguments);
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let group = Group::of(&child);
        let talk = talk(&mut child, input, most);
        let (output, complaint) = match tokio::time::timeout(self.timeout, talk).await {
            Ok(talked) => talked?,
            Err(_) => return Err(GitError::TimedOut(self.timeout)),
        };
        if output.cut {
            return Ok(output);
        }
        let status = match tokio::time::timeout(self.timeout, child.wait()).await {
            Ok(status) => status?,
            Err(_) => return Err(GitError::TimedOut(self.timeout)),
        };
        group.ended();
        if status.success() {
            Ok(output)
        } else {
            Err(meaning(&self.scrub(&complaint)))
        }
    }

    /// What git said, without the token and without control characters.
    fn scrub(&self, complaint: &[u8]) -> String {
        let mut said = String::from_utf8_lossy(complaint).into_owned();
        for word in self
            .header
            .iter()
            .flat_map(|header| header.expose_secret().split_whitespace())
        {
            if word.len() >= 8 && !word.ends_with(':') {
                said = said.replace(word, "[withheld]");
            }
        }
        said.lines()
            .map(|line| triggers::visible(line.trim_end()))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// The process group of one git: its helpers end with it, also when nobody waits for it any more.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// git ended by itself: its number may already be somebody else's.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended between the two looks; then there is nothing to end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn talk(child: &mut Child, input: Option<Vec<u8>>, most: u64) -> Result<(Output, Vec<u8>), std::io::Error> {
    let stdin = child.stdin.take();
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A git that ended early is judged by its status, not by the broken pipe.
            let _ = stdin.write_all(&input).await;
        }
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let answer = read(stdout, most.saturating_add(1));
    let complaint = read(stderr, MAX_COMPLAINT);
    // Where the answer is cut its pipe is closed, which ends git, and with it the complaint.
    let ((), stdout, complaint) = tokio::join!(write, answer, complaint);
    let mut stdout = stdout?;
    let cut = u64::try_from(stdout.len()).unwrap_or(u64::MAX) > most;
    stdout.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok((Output { stdout, cut }, complaint?))
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// What git's complaint means for us. The words are those of git 2.39 and of Forgejo's git server.
fn meaning(said: &str) -> GitError {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&[
        "error: 401",
        "Authentication failed",
        "could not read Username",
        "could not read Password",
    ]) {
        GitError::Unauthorized
    } else if says(&["error: 403"]) {
        GitError::Forbidden
    } else if says(&[
        "couldn't find remote ref",
        "not our ref",
        "no such remote ref",
        "Server does not allow request",
    ]) {
        GitError::NoSuchRef
    } else if says(&[
        "error: 404",
        "not found",
        "Not found",
        "does not appear to be a git repository",
    ]) {
        GitError::Missing
    } else if says(&[
        "error: 301",
        "error: 302",
        "error: 303",
        "error: 307",
        "error: 308",
        "redirect",
    ]) {
        GitError::Moved
    } else if says(&[
        "unable to access",
        "error: 5",
        "Could not resolve",
        "Failed to connect",
        "timed out",
        "early EOF",
        "hung up unexpectedly",
        "unexpected disconnect",
        "RPC failed",
        "Empty reply",
    ]) {
        GitError::Unreachable(said.to_owned())
    } else {
        GitError::Failed(said.to_owned())
    }
}

/// The protocol of an address that git may be given: `https`, or `http` to this very machine.
pub(super) fn protocol(url: &str, local_remotes: bool) -> Result<&'static str, GitError> {
    let parsed = url::Url::parse(url).map_err(|_| GitError::Refused("not an address"))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(GitError::Refused("a name or password stands in the address"));
    }
    let loopback = match parsed.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match parsed.scheme() {
        "https" => Ok("https"),
        "http" if loopback => Ok("http"),
        "http" => Err(GitError::Refused("`http` goes to this machine only")),
        "file" if local_remotes => Ok("file"),
        _ => Err(GitError::Refused("neither `https` nor `http`")),
    }
}

/// The address of a cache of ours, for a workspace.
pub(super) fn file_url(path: &Path) -> Result<String, GitError> {
    let url = url::Url::from_file_path(path).map_err(|()| GitError::Refused("a relative path"))?;
    Ok(url.into())
}

/// An empty folder for git's `HOME`.
pub(super) fn home(root: &Path) -> PathBuf {
    root.join("home")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_given_https_and_http_to_this_machine_only() {
        for good in [
            "https://codeberg.org/lab/x.git",
            "http://127.0.0.1:3000/x",
            "http://[::1]/x",
            "http://localhost/x",
        ] {
            assert!(protocol(good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://codeberg.org/x",
            "http://127.0.0.1.example/x",
            "ssh://git@codeberg.org/x",
            "git://codeberg.org/x",
            "file:///etc",
            "ext::sh -c id",
            "/etc",
            "--upload-pack=id",
            "https://user:secret@codeberg.org/x",
        ] {
            assert!(matches!(protocol(bad, false), Err(GitError::Refused(_))), "{bad}");
        }
    }

    #[test]
    fn what_git_says_becomes_what_the_worker_does() {
        assert!(matches!(
            meaning("fatal: unable to access 'http://x/': The requested URL returned error: 403"),
            GitError::Forbidden
        ));
        assert!(matches!(
            meaning("fatal: could not read Username for 'http://x': terminal prompts disabled"),
            GitError::Unauthorized
        ));
        assert!(matches!(
            meaning("remote: Not found.; fatal: repository 'http://x/' not found"),
            GitError::Missing
        ));
        assert!(matches!(
            meaning("fatal: unable to access 'http://x/': The requested URL returned error: 301"),
            GitError::Moved
        ));
        assert!(matches!(
            meaning("fatal: couldn't find remote ref refs/heads/x"),
            GitError::NoSuchRef
        ));
        assert!(matches!(
            meaning("fatal: unable to access 'http://x/': Failed to connect to 127.0.0.1 port 1"),
            GitError::Unreachable(_)
        ));
        assert!(matches!(meaning("fatal: something else"), GitError::Failed(_)));
    }

    #[test]
    fn the_token_is_cut_out_of_what_git_says() {
        let header = SecretString::from("Authorization: token 0123456789abcdef");
        let here = Path::new("/nonexistent");
        let git = Git {
            git_dir: here,
            work_tree: None,
            home: here,
            header: Some(&header),
            protocol: "https",
            timeout: Duration::from_secs(1),
        };

        let said = git.scrub(b"fatal: bad header 0123456789abcdef\x1b[31m\nmore");

        assert_eq!(said, "fatal: bad header [withheld]\\u{1b}[31m; more");
    }
}
