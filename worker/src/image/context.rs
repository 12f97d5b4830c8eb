//! The build context: one archive in which every file already has the owner and mode that it has in the image.
//!
//! Owner root everywhere, no times: the same parts make the same archive, so Docker's own cache holds too. Node and
//! the runner are 0111, executable and unreadable: a process made of such a file is not dumpable, so the job's shell
//! can open neither its memory nor its descriptors.

use std::{
    fs::{self, File},
    io::{BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use contract::paths;
use tar::{Builder, EntryType, Header};

use super::{ImageError, parts};

/// Writes the archive into the cache and gives its path.
pub(super) fn lay_out(cache: &Path, packages: &Path, runner: &[u8]) -> Result<PathBuf, ImageError> {
    let path = cache.join("context.tar");
    let write = || -> std::io::Result<()> {
        let mut archive = Builder::new(BufWriter::new(File::create(&path)?));
        file(&mut archive, "Dockerfile", 0o444, parts::DOCKERFILE.as_bytes())?;
        add(&mut archive, packages, "context")?;
        file(&mut archive, &in_context(paths::RUNNER), 0o111, runner)?;
        file(
            &mut archive,
            &in_context(paths::BRIDGE),
            0o444,
            parts::BRIDGE.as_bytes(),
        )?;
        file(
            &mut archive,
            &in_context(paths::GUARDRAILS),
            0o444,
            contract::GUARDRAILS.as_bytes(),
        )?;
        archive.into_inner()?.flush()
    };
    write().map_err(ImageError::file(&path))?;
    Ok(path)
}

fn in_context(path: &str) -> String {
    format!("context{path}")
}

/// Adds a folder's files in the order of their names.
fn add(archive: &mut Builder<impl Write>, folder: &Path, name: &str) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add(archive, &entry.path(), &name)?;
        } else {
            let mode = if name == in_context(paths::NODE) { 0o111 } else { 0o444 };
            let file = File::open(entry.path())?;
            let size = file.metadata()?.len();
            write(archive, &name, mode, size, file)?;
        }
    }
    Ok(())
}

fn file(archive: &mut Builder<impl Write>, name: &str, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
    write(archive, name, mode, bytes.len() as u64, bytes)
}

fn write(archive: &mut Builder<impl Write>, name: &str, mode: u32, size: u64, from: impl Read) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    archive.append_data(&mut header, name, from.take(size))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn node_and_the_runner_can_be_run_and_not_read_and_all_is_roots() {
        let (cache, packages) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, text) in [("usr/local/bin/node", "node"), ("opt/pi/package.json", "{}")] {
            let path = packages.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        let archive = lay_out(cache.path(), packages.path(), b"runner").unwrap();
        let first = fs::read(&archive).unwrap();
        let again = fs::read(lay_out(cache.path(), packages.path(), b"runner").unwrap()).unwrap();
        assert_eq!(first, again, "the same parts make the same archive");

        let mut modes = BTreeMap::new();
        for entry in tar::Archive::new(&first[..]).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(
                (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
                (0, 0, 0)
            );
            modes.insert(
                entry.path().unwrap().to_string_lossy().into_owned(),
                header.mode().unwrap(),
            );
        }
        assert_eq!(modes["context/usr/local/bin/node"], 0o111);
        assert_eq!(modes["context/opt/pi-dispatch/runner"], 0o111);
        assert_eq!(modes["context/opt/pi-dispatch/bridge.js"], 0o444);
        assert_eq!(modes["context/opt/pi/package.json"], 0o444);
    }
}
