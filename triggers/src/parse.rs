//! From a file's text to its triggers, or to everything that is wrong with it.

use crate::fault::Fault;
use crate::language::TriggerFile;

/// What became of a file.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The file, when it has no fault.
    pub file: Option<TriggerFile>,
    /// Every fault, in the order of the file. Empty exactly when `file` is there.
    pub faults: Vec<Fault>,
    /// What a person should know although the file loads, in the order of the file.
    pub remarks: Vec<Fault>,
}

/// Reads a triggers file.
pub fn parse(file_name: &str, text: &str) -> Parsed {
    let _ = (file_name, text);
    todo!()
}

/// Reads a triggers file from its bytes; bytes that are not UTF-8 are a fault like any other.
pub fn parse_bytes(file_name: &str, bytes: &[u8]) -> Parsed {
    let _ = (file_name, bytes);
    todo!()
}
