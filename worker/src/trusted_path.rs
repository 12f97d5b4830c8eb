//! Who else could write a file that says what may run.
//!
//! The triggers file (and the program's own configuration) is an order to the worker. It is trusted only when nobody
//! but root and the user that we run as can change it: neither the file, nor a folder on the way to it, nor a link on
//! the way to it. The job's user counts as everybody else, also when it owns the path.
//!
//! One exception: a folder with the sticky bit (`/tmp`) may be writable by all. In it nobody can rename or remove what
//! belongs to somebody else, and what it holds on our way must belong to root or to us.
//!
//! Checked on Unix modes; an access list shows in the group bits as its mask, so it is refused with them.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::Metadata,
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

/// More links than a path of a person ever has; the kernel stops at the same count.
const MAX_LINKS: usize = 40;

/// Why a path is not trusted. Each message says which part of the path it is and how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// A part of the path could not be looked at (missing, or no permission).
    #[error("cannot look at `{path}`: {source}")]
    Unreadable {
        /// The part of the path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than the owner may write it.
    #[error("`{path}` may be written by others (mode {mode:04o}); take that away with `chmod go-w {path}`", path = path.display())]
    Writable {
        /// The part of the path.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to somebody who is neither root nor the user that we run as.
    #[error("`{path}` belongs to user {owner}; it must belong to root or to user {us}, who runs this program", path = path.display())]
    Owner {
        /// The part of the path.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// It belongs to the user that jobs run as.
    #[error("`{path}` belongs to user {owner}, as whom jobs run: a job could change it", path = path.display())]
    JobsUser {
        /// The part of the path.
        path: PathBuf,
        /// The job's user.
        owner: u32,
    },
    /// Links that lead to links, too many of them.
    #[error("`{path}` goes through too many links", path = path.display())]
    TooManyLinks {
        /// The whole path.
        path: PathBuf,
    },
}

/// Checks the file (or folder) at `path`, every folder above it and every link on the way. `jobs_user` is the numeric
/// id that jobs run as.
pub fn check(path: &Path, jobs_user: u32) -> Result<(), Untrusted> {
    let absolute = std::path::absolute(path).map_err(|source| Untrusted::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let us = rustix::process::geteuid().as_raw();
    let mut ahead: VecDeque<OsString> = names(&absolute).collect();
    let mut here = PathBuf::from("/");
    let mut links = 0;

    judge(&here, &look(&here)?, us, jobs_user)?;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        let found = look(&next)?;
        judge(&next, &found, us, jobs_user)?;
        if !found.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Untrusted::TooManyLinks { path: absolute });
        }
        let target = std::fs::read_link(&next).map_err(|source| Untrusted::Unreadable { path: next, source })?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            ahead.push_front(name);
        }
    }
    Ok(())
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn look(path: &Path) -> Result<Metadata, Untrusted> {
    path.symlink_metadata().map_err(|source| Untrusted::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn judge(path: &Path, found: &Metadata, us: u32, jobs_user: u32) -> Result<(), Untrusted> {
    let owner = found.uid();
    if owner == jobs_user && owner != 0 {
        return Err(Untrusted::JobsUser {
            path: path.to_owned(),
            owner,
        });
    }
    if owner != 0 && owner != us {
        return Err(Untrusted::Owner {
            path: path.to_owned(),
            owner,
            us,
        });
    }
    // A link has no mode of its own: who may change it is said by the folder that holds it.
    if found.is_symlink() {
        return Ok(());
    }
    let mode = found.permissions().mode() & 0o7777;
    let sticky_folder = found.is_dir() && mode & 0o1000 != 0;
    if mode & 0o022 != 0 && !sticky_folder {
        return Err(Untrusted::Writable {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const JOBS_USER: u32 = 10_001;

    fn file(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join("triggers.json");
        std::fs::write(&path, "{}").unwrap();
        set_mode(&path, mode);
        path
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_only_we_may_write_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        check(&file(folder.path(), 0o644), JOBS_USER).unwrap();
    }

    #[test]
    fn a_file_that_its_group_or_everybody_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o664, 0o646, 0o666] {
            let path = file(folder.path(), mode);
            let refusal = check(&path, JOBS_USER).unwrap_err();
            assert!(
                matches!(refusal, Untrusted::Writable { mode: found, .. } if found == mode),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_folder_above_that_others_may_write_is_refused_even_when_the_file_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        let inner = open.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        let path = file(&inner, 0o600);
        set_mode(&open, 0o775);
        assert!(matches!(check(&path, JOBS_USER), Err(Untrusted::Writable { path, .. }) if path == open));
    }

    #[test]
    fn a_link_is_followed_and_the_folder_it_leads_through_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        let safe = folder.path().join("safe");
        std::fs::create_dir(&open).unwrap();
        std::fs::create_dir(&safe).unwrap();
        let target = file(&safe, 0o600);
        let middle = open.join("middle.json");
        symlink(&target, &middle).unwrap();
        let first = safe.join("first.json");
        symlink("../open/middle.json", &first).unwrap();
        check(&first, JOBS_USER).unwrap();

        set_mode(&open, 0o777);
        assert!(matches!(check(&first, JOBS_USER), Err(Untrusted::Writable { path, .. }) if path == open));
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("one");
        symlink("two", &one).unwrap();
        symlink("one", folder.path().join("two")).unwrap();
        assert!(matches!(check(&one, JOBS_USER), Err(Untrusted::TooManyLinks { .. })));
    }

    #[test]
    fn what_the_jobs_user_or_a_stranger_owns_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("not shown: only root can give a file away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0o600);
        std::os::unix::fs::chown(&path, Some(JOBS_USER), None).unwrap();
        assert!(matches!(check(&path, JOBS_USER), Err(Untrusted::JobsUser { .. })));
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert!(matches!(
            check(&path, JOBS_USER),
            Err(Untrusted::Owner { owner: 12_345, .. })
        ));
    }

    #[test]
    fn a_missing_file_is_said_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nothing.json");
        assert!(matches!(check(&missing, JOBS_USER), Err(Untrusted::Unreadable { path, .. }) if path == missing));
    }
}
