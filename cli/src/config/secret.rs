//! Where a secret is, and how it is opened. The configuration itself never holds one.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use secrecy::SecretString;
use worker::trusted_path;

use crate::environment::Environment;

/// The place of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// A file that only its owner may read; a newline at its end is not part of the secret.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// A program and its arguments; what it prints is the secret.
    Command(Vec<String>),
}

/// Why a secret could not be had. The messages name the place, never the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file is not readable, or not private.
    #[error("secret file {0}: {1}")]
    File(PathBuf, String),
    /// The variable is not set.
    #[error("the variable {0} that holds the secret is not set")]
    Variable(String),
    /// The program failed.
    #[error("the command `{0}` that prints the secret failed: {1}")]
    Command(String, String),
    /// Nothing was in it.
    #[error("the secret of {0} is empty")]
    Empty(String),
}

impl SecretPlace {
    /// The place in words: for `pi-dispatch config` and for errors.
    pub fn words(&self) -> String {
        match self {
            Self::File(path) => format!("file {}", path.display()),
            Self::Variable(name) => format!("variable {name}"),
            Self::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
        }
    }

    /// Opens the secret. A file of it must not be in reach of others, nor of `jobs_user`.
    pub fn open(&self, environment: &Environment, jobs_user: u32) -> Result<SecretString, SecretError> {
        let text = match self {
            Self::File(path) => {
                read_private(path, jobs_user).map_err(|reason| SecretError::File(path.clone(), reason))?
            }
            Self::Variable(name) => environment
                .get(name)
                .ok_or_else(|| SecretError::Variable(name.clone()))?
                .to_owned(),
            Self::Command(words) => run(words)?,
        };
        let secret = text.trim_end_matches(['\n', '\r']);
        if secret.is_empty() {
            return Err(SecretError::Empty(self.words()));
        }
        Ok(SecretString::from(secret))
    }
}

fn read_private(path: &Path, jobs_user: u32) -> Result<String, String> {
    trusted_path::check(path, jobs_user).map_err(|reason| reason.to_string())?;
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "others may read it (mode {mode:04o}): `chmod 600 {}`",
            path.display()
        ));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn run(words: &[String]) -> Result<String, SecretError> {
    let shown = words.first().cloned().unwrap_or_default();
    let failed = |reason: String| SecretError::Command(shown.clone(), reason);
    let (program, arguments) = words.split_first().ok_or_else(|| failed("it is empty".to_owned()))?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("it printed something that is not UTF-8".to_owned()))
}
