//! What is wrong with a configuration, in words.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Origin;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was read.
    pub origin: Origin,
    /// Dotted place of the key, empty for the file as a whole.
    pub place: String,
    /// What was found and what is allowed.
    pub message: String,
}

/// All faults of a configuration.
#[derive(Debug, thiserror::Error)]
pub struct Faults {
    file: PathBuf,
    faults: Vec<Fault>,
}

impl Faults {
    pub(super) fn new(file: &Path, faults: Vec<Fault>) -> Self {
        Self {
            file: file.to_path_buf(),
            faults,
        }
    }

    pub(super) fn one(file: &Path, message: String) -> Self {
        Self::new(
            file,
            vec![Fault {
                origin: Origin::Default,
                place: String::new(),
                message,
            }],
        )
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            match &fault.origin {
                Origin::File { line } => write!(out, "{}:{line}: ", self.file.display())?,
                Origin::Variable(name) => write!(out, "variable {name}: ")?,
                Origin::Default => write!(out, "{}: ", self.file.display())?,
            }
            if !fault.place.is_empty() {
                write!(out, "`{}`: ", fault.place)?;
            }
            write!(out, "{}", fault.message)?;
        }
        Ok(())
    }
}
