//! Files that say what may run are believed only when nobody else can write them.
//!
//! Refused: a file, or a folder above it, that its group or everybody may write. A sticky folder such as `/tmp` above it is
//! fine: there only the owner can replace what is theirs. Root's own and our own files pass; another owner's do not.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks the file and every folder above it; the reason when one is not to be believed.
pub fn check(path: &Path) -> Result<(), String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let us = rustix::process::geteuid().as_raw();
    for place in path.ancestors() {
        let meta = std::fs::metadata(place).map_err(|error| format!("{}: {error}", place.display()))?;
        let sticky_folder = meta.is_dir() && meta.mode() & 0o1000 != 0;
        if meta.mode() & 0o022 != 0 && !sticky_folder {
            return Err(format!(
                "{} may be written by others (mode {:04o}): `chmod go-w {}`",
                place.display(),
                meta.mode() & 0o7777,
                place.display()
            ));
        }
        if meta.uid() != us && meta.uid() != 0 {
            return Err(format!(
                "{} belongs to user {}, not to us ({us}) or root",
                place.display(),
                meta.uid()
            ));
        }
    }
    Ok(())
}

/// Checks that only the owner can read the file.
pub fn check_private(path: &Path) -> Result<(), String> {
    let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if meta.mode() & 0o077 != 0 {
        return Err(format!(
            "others may read it (mode {:04o}): `chmod 600 {}`",
            meta.mode() & 0o7777,
            path.display()
        ));
    }
    Ok(())
}
