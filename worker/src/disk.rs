//! How much a job has written, measured from outside.
//!
//! The host opens nothing by a path that a job could have written: each folder is opened beneath the one before it
//! without following a link, and only counted. Bytes are those that the files take on the disk; a sparse file counts
//! what it holds. Hard links count once per name: what a job can make cheaply it cannot make uncounted.
//!
//! The walk ends as soon as one bound is passed, so a job that writes a million files costs no more than its bound.
//! Blocking: call it through `spawn_blocking`.

use std::{os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, statvfs},
    io::Errno,
};

/// Folders within folders, and no further: nobody works so deep, and each level holds a descriptor.
const DEPTH: usize = 128;

/// What may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files and folders.
    pub files: u64,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// All of it was seen and fits.
    Fits {
        /// Bytes on the disk.
        bytes: u64,
        /// Files and folders.
        files: u64,
    },
    /// One of the bounds was passed; the walk ended there.
    Over(Bound),
}

/// Which bound was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Bytes.
    Bytes,
    /// Files and folders.
    Files,
    /// Folders within folders.
    Depth,
    /// A folder that could not be read although it is there: what cannot be counted does not fit.
    Unreadable,
}

/// Measures one folder.
///
/// # Errors
/// When the folder itself cannot be opened; what happens beneath it is an answer.
pub fn measure(root: &Path, bounds: Bounds) -> Result<Measured, Errno> {
    let fd = open_folder(CWD, root)?;
    let mut walk = Walk {
        bounds,
        bytes: 0,
        files: 0,
    };
    let mut open = vec![Dir::new(fd)?];
    // Depth first; one directory stream per level stays open.
    loop {
        let depth = open.len();
        let Some(dir) = open.last_mut() else { break };
        let Some(entry) = dir.read() else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else {
            return Ok(Measured::Over(Bound::Unreadable));
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let at = dir.fd()?;
        let found = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            // It went away between the two looks.
            Err(Errno::NOENT) => continue,
            Err(_) => return Ok(Measured::Over(Bound::Unreadable)),
        };
        if let Some(bound) = walk.count(found.st_blocks) {
            return Ok(Measured::Over(bound));
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            if depth >= DEPTH {
                return Ok(Measured::Over(Bound::Depth));
            }
            match open_folder(at, name) {
                Ok(fd) => {
                    let next = Dir::new(fd)?;
                    open.push(next);
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => return Ok(Measured::Over(Bound::Unreadable)),
            }
        }
    }
    Ok(Measured::Fits {
        bytes: walk.bytes,
        files: walk.files,
    })
}

/// Bytes that are free for us on the file system of a path.
///
/// # Errors
/// When the path is not there.
pub fn free(path: &Path) -> Result<u64, Errno> {
    let found = statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

struct Walk {
    bounds: Bounds,
    bytes: u64,
    files: u64,
}

impl Walk {
    /// `st_blocks` counts 512 bytes each, whatever the file system's own block is.
    fn count(&mut self, blocks: i64) -> Option<Bound> {
        self.files += 1;
        self.bytes += u64::try_from(blocks).unwrap_or(0).saturating_mul(512);
        if self.files > self.bounds.files {
            return Some(Bound::Files);
        }
        (self.bytes > self.bounds.bytes).then_some(Bound::Bytes)
    }
}

fn open_folder<P: rustix::path::Arg>(at: impl std::os::fd::AsFd, name: P) -> Result<OwnedFd, Errno> {
    openat(
        at,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    const WIDE: Bounds = Bounds {
        bytes: u64::MAX,
        files: u64::MAX,
    };

    #[test]
    fn what_lies_in_a_folder_is_counted_with_its_folders() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a/b/file"), vec![1_u8; 100_000]).unwrap();

        let Measured::Fits { bytes, files } = measure(root.path(), WIDE).unwrap() else {
            panic!("it fits")
        };

        assert_eq!(files, 3);
        assert!(bytes >= 100_000, "{bytes}");
    }

    #[test]
    fn the_walk_ends_at_the_first_bound_that_is_passed() {
        let root = tempfile::tempdir().unwrap();
        for n in 0..20 {
            fs::write(root.path().join(n.to_string()), [0_u8; 4096]).unwrap();
        }

        assert_eq!(
            measure(root.path(), Bounds { files: 10, ..WIDE }).unwrap(),
            Measured::Over(Bound::Files)
        );
        assert_eq!(
            measure(root.path(), Bounds { bytes: 4096, ..WIDE }).unwrap(),
            Measured::Over(Bound::Bytes)
        );
    }

    #[test]
    fn a_link_out_of_the_folder_is_counted_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("big"), vec![1_u8; 1_000_000]).unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("folder")).unwrap();
        symlink(outside.path().join("big"), root.path().join("file")).unwrap();
        symlink(".", root.path().join("loop")).unwrap();

        let measured = measure(
            root.path(),
            Bounds {
                bytes: 100_000,
                files: 3,
            },
        )
        .unwrap();

        assert!(matches!(measured, Measured::Fits { files: 3, .. }), "{measured:?}");
    }

    #[test]
    fn a_root_that_is_a_link_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        symlink("/etc", root.path().join("workspace")).unwrap();

        assert!(measure(&root.path().join("workspace"), WIDE).is_err());
    }

    #[test]
    fn a_sparse_file_counts_what_it_holds() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();

        assert!(matches!(
            measure(
                root.path(),
                Bounds {
                    bytes: 1 << 20,
                    files: 10
                }
            )
            .unwrap(),
            Measured::Fits { .. }
        ));
    }

    #[test]
    fn folders_within_folders_end_at_a_depth_that_nobody_works_in() {
        let root = tempfile::tempdir().unwrap();
        let mut deep = root.path().to_path_buf();
        for _ in 0..DEPTH + 5 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();

        assert_eq!(measure(root.path(), WIDE).unwrap(), Measured::Over(Bound::Depth));
    }

    #[test]
    fn a_pipe_does_not_hold_the_walk_up() {
        let root = tempfile::tempdir().unwrap();
        rustix::fs::mkfifoat(CWD, root.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();

        assert!(matches!(
            measure(root.path(), WIDE).unwrap(),
            Measured::Fits { files: 1, .. }
        ));
    }
}
