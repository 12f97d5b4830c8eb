//! The private PostgreSQL: made, found again and started when no `DATABASE_URL` is given.
//!
//! It lives under `data_dir/postgres` (or, where its user cannot reach that or a socket path would pass 107 bytes, in a
//! short system folder named after the data folder). It has a user of its own when we are root, a socket in a folder
//! of mode 0700, peer authentication mapped to our user alone, no TCP port, and fsync on.
//!
//! Fails with [`PostgresError`]; every message says what to do.

mod host;

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use host::{programs, reachable, system_folder, system_user, url_byte, user_name};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The longest path of a socket that the kernel takes, in bytes.
const SOCKET_PATH_MAX: usize = 107;
/// What PostgreSQL puts behind the folder: `/.s.PGSQL.5432` (and `.lock`, which is not bound).
const SOCKET_NAME: usize = "/.s.PGSQL.5432".len();
const DATABASE: &str = "pi_dispatch";
/// How long a server that neither answers nor is gone is waited for: 30 s.
const PATIENCE_TICKS: u32 = 150;
const TICK: Duration = Duration::from_millis(200);
/// Debian's name of the user that runs PostgreSQL.
const SYSTEM_USER: &str = "postgres";

/// Why there is no private PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No server programs.
    #[error("PostgreSQL's server programs are not installed (apt-get install postgresql), and no DATABASE_URL is set")]
    NotInstalled,
    /// A folder could not be made or handed over.
    #[error("the folder {0} of the private PostgreSQL: {1}")]
    Folder(PathBuf, io::Error),
    /// Somebody else made the folder.
    #[error(
        "the folder {folder} of the private PostgreSQL belongs to user {owner}: run this as that user, or name another data_dir"
    )]
    NotOurs {
        /// Where.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The data folder belongs to another major version.
    #[error(
        "the private PostgreSQL in {folder} was made by version {made}, installed is {installed}: install postgresql-{made} \
         beside it and run pg_upgrade, or move the folder away to start empty"
    )]
    OtherVersion {
        /// Where.
        folder: PathBuf,
        /// Its version.
        made: String,
        /// Ours.
        installed: String,
    },
    /// A program of PostgreSQL failed.
    #[error("{program} failed ({status}): {message}")]
    Program {
        /// Which.
        program: &'static str,
        /// Its exit status.
        status: String,
        /// The end of what it said.
        message: String,
    },
}

/// A private cluster that answers. Dropping it leaves it running; see [`PrivatePostgres::leave`].
#[derive(Debug)]
pub struct PrivatePostgres {
    /// URL for sqlx.
    pub url: String,
    cluster: Cluster,
    doors: Doors,
    /// Held, shared with every other process that uses the cluster, for as long as we do.
    using: File,
}

/// Two locks beside the cluster. The kernel lets go of both when a process dies, however it dies.
#[derive(Debug)]
struct Doors {
    /// Held alone while somebody starts or stops the cluster.
    starting: PathBuf,
    /// Held together by all who use it.
    using: PathBuf,
}

impl Doors {
    fn lock(path: &Path, how: FlockOperation) -> Result<Option<File>, PostgresError> {
        let failed = |error| PostgresError::Folder(path.to_path_buf(), error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, how) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

#[derive(Debug, Clone)]
struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    /// The user and group that run it, when they are not our own.
    user: Option<(u32, u32)>,
}

impl PrivatePostgres {
    /// Makes the cluster when there is none, starts it when it does not run.
    pub fn ensure(data_dir: &Path) -> Result<Self, PostgresError> {
        let cluster = Cluster::locate(data_dir)?;
        let doors = Doors {
            starting: data_dir.join("postgres.starting"),
            using: data_dir.join("postgres.using"),
        };
        let starting = Doors::lock(&doors.starting, FlockOperation::LockExclusive)?;
        cluster.make()?;
        cluster.start()?;
        cluster.make_database()?;
        let using = Doors::lock(&doors.using, FlockOperation::LockShared)?;
        drop(starting);
        let Some(using) = using else {
            return Err(PostgresError::Folder(doors.using, io::ErrorKind::WouldBlock.into()));
        };
        Ok(Self {
            url: cluster.url(),
            cluster,
            doors,
            using,
        })
    }

    /// Ends our use. When nobody else uses it, it is stopped: also one that an earlier program left running when it was
    /// killed. Open transactions are rolled back, nothing that was committed is lost.
    pub fn leave(self) -> Result<(), PostgresError> {
        let _starting = Doors::lock(&self.doors.starting, FlockOperation::LockExclusive)?;
        drop(self.using);
        if Doors::lock(&self.doors.using, FlockOperation::NonBlockingLockExclusive)?.is_none() {
            return Ok(());
        }
        self.cluster
            .run("pg_ctl", &["-D", &self.cluster.data(), "-m", "fast", "-w", "stop"])
            .map(drop)
    }
}

impl Cluster {
    fn locate(data_dir: &Path) -> Result<Self, PostgresError> {
        let programs = programs().ok_or(PostgresError::NotInstalled)?;
        let user = if rustix::process::geteuid().is_root() {
            Some(system_user()?)
        } else {
            None
        };
        let wished = data_dir.join("postgres");
        let short_enough = wished.join("socket").as_os_str().len() + SOCKET_NAME <= SOCKET_PATH_MAX;
        // Where one was made once it stays, also when the folders above it were closed since: that is told, not passed over.
        let made = wished.join("data").join("PG_VERSION").exists();
        let folder = if made || (short_enough && reachable(&wished, user)) {
            wished
        } else {
            system_folder(data_dir)
        };
        Ok(Self { programs, folder, user })
    }

    fn data(&self) -> String {
        self.folder.join("data").to_string_lossy().into_owned()
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    fn url(&self) -> String {
        let socket: String = self.socket().to_string_lossy().bytes().map(url_byte).collect();
        format!("postgres:///{DATABASE}?host={socket}&user={DATABASE}")
    }

    fn make(&self) -> Result<(), PostgresError> {
        // The short folder of somebody who is not root is in /tmp: what stands there must be ours.
        if let Ok(found) = std::fs::symlink_metadata(&self.folder) {
            let us = rustix::process::geteuid().as_raw();
            let server = self.user.map_or(us, |(uid, _)| uid);
            if !found.is_dir() || ![us, server].contains(&found.uid()) {
                return Err(PostgresError::NotOurs {
                    folder: self.folder.clone(),
                    owner: found.uid(),
                });
            }
        }
        let version = Path::new(&self.data()).join("PG_VERSION");
        match std::fs::read_to_string(&version) {
            Ok(made) => {
                let installed = self.version()?;
                if made.trim() != installed {
                    let made = made.trim().to_owned();
                    return Err(PostgresError::OtherVersion {
                        folder: self.folder.clone(),
                        made,
                        installed,
                    });
                }
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(PostgresError::Folder(version, error)),
        }
        self.make_folder(&self.folder)?;
        self.make_folder(&self.socket())?;
        self.make_folder(Path::new(&self.data()))?;
        let data = self.data();
        self.run(
            "initdb",
            &["-D", &data, "-U", DATABASE, "-A", "peer", "-E", "UTF8", "--locale=C"],
        )?;
        self.write(
            "pg_hba.conf",
            "# Only our own user may connect, only through the socket.\nlocal all all peer map=ours\n",
        )?;
        let us = user_name(rustix::process::geteuid().as_raw());
        let server = self.user.map_or_else(|| us.clone(), |(uid, _)| user_name(uid));
        self.write(
            "pg_ident.conf",
            &format!("ours {us} {DATABASE}\nours {server} {DATABASE}\n"),
        )?;
        let socket = self.socket().to_string_lossy().replace('\'', "''");
        self.write(
            "postgresql.auto.conf",
            &format!(
                "listen_addresses = ''\nunix_socket_directories = '{socket}'\nunix_socket_permissions = 0700\nfsync = on\n\
                 synchronous_commit = on\nmax_connections = 100\ndefault_toast_compression = lz4\nlog_min_messages = warning\n"
            ),
        )
    }

    fn make_folder(&self, folder: &Path) -> Result<(), PostgresError> {
        let failed = |error| PostgresError::Folder(folder.to_path_buf(), error);
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
        self.hand_over(folder)
    }

    fn hand_over(&self, path: &Path) -> Result<(), PostgresError> {
        match self.user {
            Some((uid, gid)) => {
                chown(path, Some(uid), Some(gid)).map_err(|error| PostgresError::Folder(path.to_path_buf(), error))
            }
            None => Ok(()),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), PostgresError> {
        let path = Path::new(&self.data()).join(name);
        std::fs::write(&path, text).map_err(|error| PostgresError::Folder(path.clone(), error))?;
        self.hand_over(&path)
    }

    fn version(&self) -> Result<String, PostgresError> {
        let output = self.run("postgres", &["--version"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text
            .split_whitespace()
            .find_map(|word| Some(word.split('.').next()?.parse::<u32>().ok()?.to_string()))
            .unwrap_or_default())
    }

    /// Starts the server when it does not run.
    fn start(&self) -> Result<(), PostgresError> {
        let data = self.data();
        let socket = self.socket();
        // What was killed a moment ago may still stand in the list of processes, and one that starts does not answer yet.
        for _ in 0..PATIENCE_TICKS {
            if self.says_yes("pg_isready", &["-q".as_ref(), "-h".as_ref(), socket.as_os_str()]) {
                return Ok(());
            }
            if !self.says_yes("pg_ctl", &["-D".as_ref(), data.as_ref(), "status".as_ref()]) {
                break;
            }
            std::thread::sleep(TICK);
        }
        let log = self.folder.join("postgresql.log");
        let log = log.to_string_lossy();
        self.run("pg_ctl", &["-D", &data, "-l", &log, "-w", "-t", "30", "start"])
            .map(drop)
    }

    fn says_yes(&self, program: &str, arguments: &[&OsStr]) -> bool {
        self.command(program)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    }

    fn make_database(&self) -> Result<(), PostgresError> {
        let socket = self.socket().to_string_lossy().into_owned();
        let connection = ["-h", &socket, "-U", DATABASE];
        let exists = format!("SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'");
        let found = self.run(
            "psql",
            &[&connection[..], &["-d", "postgres", "-Atc", &exists]].concat(),
        )?;
        if String::from_utf8_lossy(&found.stdout).trim() == "1" {
            return Ok(());
        }
        self.run("createdb", &[&connection[..], &[DATABASE]].concat()).map(drop)
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = match self.user {
            // initdb, pg_ctl and postgres refuse root.
            Some((uid, gid)) => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={uid}"))
                    .arg(format!("--regid={gid}"))
                    .arg("--clear-groups")
                    .arg(path);
                command
            }
            None => Command::new(path),
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
            .current_dir("/");
        command
    }

    fn run(&self, program: &'static str, arguments: &[&str]) -> Result<Output, PostgresError> {
        let failed = |status: String, message: String| PostgresError::Program {
            program,
            status,
            message,
        };
        // pg_ctl's child keeps what it inherits: with a pipe as its output we would wait for the server's end.
        let output = if program == "pg_ctl" {
            let status = self
                .command(program)
                .args(arguments)
                .stdin(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()
                .map_err(|error| failed("not started".to_owned(), error.to_string()))?;
            Output {
                status,
                stdout: Vec::new(),
                stderr: self.log_end().into_bytes(),
            }
        } else {
            let mut command = self.command(program);
            command
                .args(arguments)
                .output()
                .map_err(|error| failed("not started".to_owned(), error.to_string()))?
        };
        if output.status.success() {
            return Ok(output);
        }
        Err(failed(
            output.status.to_string(),
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ))
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("postgresql.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("; ")
    }
}
