//! What the private PostgreSQL finds on its host: the server's programs, its user, and a folder that this user can reach.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{PostgresError, SYSTEM_USER};

/// The newest `/usr/lib/postgresql/N/bin`.
pub(super) fn programs() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            let bin = path.join("bin");
            bin.join("initdb").exists().then_some((version, bin))
        })
        .collect();
    versions.sort();
    versions.pop().map(|(_, path)| path)
}

fn passwd() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap_or_default()
}

pub(super) fn system_user() -> Result<(u32, u32), PostgresError> {
    passwd()
        .lines()
        .find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.first() == Some(&SYSTEM_USER))
                .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
        })
        .ok_or(PostgresError::NotInstalled)
}

pub(super) fn user_name(uid: u32) -> String {
    let uid = uid.to_string();
    passwd()
        .lines()
        .find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2) == Some(&uid.as_str())).then(|| fields[0].to_owned())
        })
        .unwrap_or(uid)
}

/// Whether the cluster's user can walk to the folder: each folder above it that exists is open to everybody's step.
pub(super) fn reachable(folder: &Path, user: Option<(u32, u32)>) -> bool {
    let Some((uid, _)) = user else { return true };
    folder.ancestors().skip(1).all(|above| match std::fs::metadata(above) {
        Ok(meta) => meta.mode() & 0o001 != 0 || (meta.uid() == uid && meta.mode() & 0o100 != 0),
        Err(_) => true,
    })
}

/// A short folder of the system that is this data folder's own.
pub(super) fn system_folder(data_dir: &Path) -> PathBuf {
    let name = hex::encode(&Sha256::digest(data_dir.as_os_str().as_encoded_bytes())[..6]);
    let base = if rustix::process::geteuid().is_root() {
        "/var/lib/pi-dispatch"
    } else {
        "/tmp"
    };
    Path::new(base).join(format!("pg-{name}"))
}

pub(super) fn url_byte(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
