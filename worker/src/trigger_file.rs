//! The triggers file in force, read live.
//!
//! At start a bad file refuses to start. Later the file is read each [`LOOK_EVERY`] and parsed again when its bytes
//! changed. A bad edit, a file that others may write and a file that went away are shown in the log and in the
//! worker's row; the last good file stays in force.
//!
//! What is in force is handed out as one [`InForce`], so that whoever decides or starts something sees one file from
//! its first line to its last while an edit lands beside it.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use queue::{NewTriggers, Queue, StoreError, WorkerName};
use sha2::{Digest, Sha256};
use triggers::{Fault, FaultKind, Span, TriggerFile};

use crate::trusted_path::{self, Untrusted};

/// Between two looks at the file.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes that are read of a file. The language takes less; what is longer is refused there, with its own words.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file without faults, and what it was read from.
#[derive(Debug)]
pub struct InForce {
    /// The triggers.
    pub file: TriggerFile,
    /// The bytes that they were read from.
    pub text: String,
    /// SHA-256 of those bytes, lower-case hex.
    pub hash: String,
    /// What is legal and deserves a second look.
    pub remarks: Vec<Fault>,
}

impl InForce {
    fn log_remarks(&self) {
        for remark in &self.remarks {
            tracing::warn!(line = remark.line, remark = %remark.message, "a remark on the triggers file");
        }
    }
}

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TriggerFileError {
    /// Somebody else could have written it.
    #[error("the triggers file is not trusted: {0}")]
    Untrusted(#[from] Untrusted),
    /// It could not be read.
    #[error("cannot read the triggers file `{path}`: {source}", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It was read, and what it says is refused.
    #[error("the triggers file has {} fault(s):\n{rendered}", faults.len())]
    Faulty {
        /// All of them.
        faults: Vec<Fault>,
        /// The same as a compiler would print them, without colour.
        rendered: String,
    },
}

impl TriggerFileError {
    /// The same as faults of the file, for the worker's row.
    fn into_faults(self) -> Vec<Fault> {
        match self {
            Self::Faulty { faults, .. } => faults,
            Self::Untrusted(_) | Self::Unreadable { .. } => vec![Fault {
                line: 1,
                column: 1,
                span: Span { start: 0, end: 0 },
                kind: FaultKind::Unreadable,
                message: self.to_string(),
                help: None,
                found: String::new(),
            }],
        }
    }
}

/// The file at a path, and the last good content of it.
#[derive(Debug)]
pub struct Live {
    path: PathBuf,
    jobs_user: u32,
    in_force: RwLock<Arc<InForce>>,
    looked: Mutex<Looked>,
}

/// What the last look saw.
#[derive(Debug)]
struct Looked {
    /// Why the file as it stands could not be taken; empty when it is the one in force.
    faults: Vec<Fault>,
    /// The row of this worker says what is here. Not so at start and after PostgreSQL was away.
    shown: bool,
}

impl Live {
    /// Reads the file at start. `jobs_user` is the numeric user that jobs run as: what it owns is not trusted.
    ///
    /// # Errors
    /// [`TriggerFileError`]: a worker does not start with a file that it cannot take whole.
    pub fn open(path: &Path, jobs_user: u32) -> Result<Self, TriggerFileError> {
        let raw = RawFile::read(path, jobs_user)?;
        let in_force = raw.parse()?;
        in_force.log_remarks();
        let looked = Looked {
            faults: Vec::new(),
            shown: false,
        };
        Ok(Self {
            path: path.to_owned(),
            jobs_user,
            in_force: RwLock::new(Arc::new(in_force)),
            looked: Mutex::new(looked),
        })
    }

    /// The file in force now. Whoever holds it keeps it whole, whatever is edited meanwhile.
    #[must_use]
    pub fn current(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The faults of the file as it stands, when it is not the one in force; empty when it is.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().faults.clone()
    }

    /// Looks once: takes a good edit, keeps the last good file under a bad one, and writes this worker's row when
    /// something changed. True when something did.
    ///
    /// # Errors
    /// [`StoreError`] when the row could not be written; it is written again at the next look.
    pub async fn look(&self, queue: &Queue, worker: &WorkerName) -> Result<bool, StoreError> {
        let changed = self.take_edit();
        if !self.lock().shown {
            self.show(queue, worker).await?;
            self.lock().shown = true;
        }
        Ok(changed)
    }

    fn take_edit(&self) -> bool {
        let mut looked = self.lock();
        // Read whole each time: a few kilobytes a second, and no edit within one tick of a clock is missed.
        let faults = match RawFile::read(&self.path, self.jobs_user) {
            Ok(raw) if raw.hash == self.current().hash => Vec::new(),
            Ok(raw) => match raw.parse() {
                Ok(new) => {
                    tracing::info!(hash = %new.hash, "the edited triggers file is in force");
                    new.log_remarks();
                    *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                    *looked = Looked {
                        faults: Vec::new(),
                        shown: false,
                    };
                    return true;
                }
                Err(error) => error.into_faults(),
            },
            Err(error) => error.into_faults(),
        };
        if faults == looked.faults {
            return false;
        }
        match faults.first() {
            Some(first) => {
                tracing::error!(
                    faults = faults.len(), line = first.line, error = %first.message,
                    "the triggers file was not taken; the last good one stays in force"
                );
            }
            None => tracing::info!("the triggers file is again the one in force"),
        }
        looked.faults = faults;
        looked.shown = false;
        true
    }

    async fn show(&self, queue: &Queue, worker: &WorkerName) -> Result<(), StoreError> {
        let in_force = self.current();
        let row = NewTriggers {
            file: self.path.display().to_string(),
            sha256: in_force.hash.clone(),
            triggers: serde_json::to_value(in_force.file.triggers()).unwrap_or_default(),
            faults: serde_json::to_value(self.faults()).unwrap_or_default(),
            remarks: serde_json::to_value(&in_force.remarks).unwrap_or_default(),
        };
        queue.put_triggers(worker, &row).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a file that nobody else could have written.
struct RawFile {
    name: String,
    bytes: Vec<u8>,
    hash: String,
}

impl RawFile {
    fn read(path: &Path, jobs_user: u32) -> Result<Self, TriggerFileError> {
        trusted_path::check(path, jobs_user)?;
        let unreadable = |source| TriggerFileError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
        let hash = hex::encode(Sha256::digest(&bytes));
        Ok(Self {
            name: path.display().to_string(),
            bytes,
            hash,
        })
    }

    fn parse(self) -> Result<InForce, TriggerFileError> {
        let Self { name, bytes, hash } = self;
        let parsed = triggers::parse_bytes(&name, &bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match parsed.file {
            Some(file) if parsed.faults.is_empty() => Ok(InForce {
                file,
                text,
                hash,
                remarks: parsed.remarks,
            }),
            Some(_) | None => {
                let rendered = triggers::render(&parsed.faults, &name, &text, false);
                Err(TriggerFileError::Faulty {
                    faults: parsed.faults,
                    rendered,
                })
            }
        }
    }
}
