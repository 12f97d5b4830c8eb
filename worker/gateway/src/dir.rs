//! The job's socket directory: made and filled relative to open descriptors, never through a link.
//!
//! The directory (0711) lets the job's user in to the sockets (0666) and to nothing else; its parent (0700, ours) keeps every other user of the
//! host out. In the container it is mounted read-only, so only this process can change what is in it.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    process::geteuid,
};
use tokio::net::UnixListener;

use crate::DoorError;

const DIRECTORY: Mode = Mode::from_bits_retain(0o711);
const SOCKET: Mode = Mode::from_bits_retain(0o666);

/// An open socket directory.
#[derive(Debug)]
pub(crate) struct SocketDir {
    fd: OwnedFd,
}

fn io(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> DoorError {
    move |errno| DoorError::Io {
        what,
        source: io::Error::from(errno),
    }
}

impl SocketDir {
    /// Opens the directory, and makes it when it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, DoorError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(DoorError::Directory("it has no name".into()));
        };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = fs::open(parent, flags, Mode::empty())
            .map_err(|errno| DoorError::ParentNotPrivate(format!("it cannot be opened ({errno})")))?;
        check_parent(&parent)?;
        match fs::mkdirat(&parent, name, Mode::from_bits_retain(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(io("make the job's socket folder")(errno)),
        }
        let fd = fs::openat(&parent, name, flags, Mode::empty())
            .map_err(|errno| DoorError::Directory(format!("it cannot be opened ({errno})")))?;
        if fs::fstat(&fd).map_err(io("look at the job's socket folder"))?.st_uid != geteuid().as_raw() {
            return Err(DoorError::Directory("it belongs to somebody else".into()));
        }
        fs::fchmod(&fd, DIRECTORY).map_err(io("set the mode of the job's socket folder"))?;
        Ok(Self { fd })
    }

    /// Binds a socket under this name; whatever stands there is removed, not followed.
    pub(crate) fn bind(&self, name: &str) -> Result<UnixListener, DoorError> {
        self.remove(name)?;
        // `bind` takes no directory descriptor; the descriptor's own path does the same, and is short enough for a socket address.
        let path = format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd());
        let listener = UnixListener::bind(path).map_err(|source| DoorError::Io {
            what: "bind a socket of the job",
            source,
        })?;
        let stat = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io("look at a socket of the job"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(DoorError::Directory("something else took the place of a socket".into()));
        }
        fs::chmodat(&self.fd, name, SOCKET, AtFlags::empty()).map_err(io("set the mode of a socket of the job"))?;
        Ok(listener)
    }

    /// Removes a name; one that is not there is no fault.
    pub(crate) fn remove(&self, name: &str) -> Result<(), DoorError> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(io("remove a stale socket of the job")(errno)),
        }
    }
}

fn check_parent(parent: &OwnedFd) -> Result<(), DoorError> {
    let stat = fs::fstat(parent).map_err(io("look at the folder above the job's sockets"))?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(DoorError::ParentNotPrivate("it belongs to somebody else".into()));
    }
    let mode = stat.st_mode & 0o777;
    if mode & 0o077 != 0 {
        return Err(DoorError::ParentNotPrivate(format!(
            "its mode is {mode:o}, it must be 700"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs as files,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    };

    use super::*;

    fn private() -> tempfile::TempDir {
        tempfile::Builder::new()
            .permissions(files::Permissions::from_mode(0o700))
            .tempdir()
            .unwrap()
    }

    fn mode(path: &Path) -> u32 {
        files::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn the_sockets_are_open_to_the_job_and_their_folder_lists_nothing() {
        let parent = private();
        let dir = SocketDir::open(&parent.path().join("7")).unwrap();
        let _listener = dir.bind("model.sock").unwrap();
        assert_eq!(mode(&parent.path().join("7")), 0o711);
        assert_eq!(mode(&parent.path().join("7/model.sock")), 0o666);
    }

    #[tokio::test]
    async fn a_stale_socket_is_bound_anew_and_a_planted_link_is_removed_not_followed() {
        let parent = private();
        let target = parent.path().join("precious");
        files::write(&target, "text").unwrap();
        let dir = SocketDir::open(&parent.path().join("7")).unwrap();
        drop(dir.bind("control.sock").unwrap());
        symlink(&target, parent.path().join("7/model.sock")).unwrap();

        let again = SocketDir::open(&parent.path().join("7")).unwrap();
        let _control = again.bind("control.sock").unwrap();
        let _model = again.bind("model.sock").unwrap();

        assert_eq!(files::read_to_string(&target).unwrap(), "text");
        tokio::net::UnixStream::connect(parent.path().join("7/control.sock"))
            .await
            .unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_folder_or_an_open_parent_is_refused() {
        let parent = private();
        let elsewhere = private();
        symlink(elsewhere.path(), parent.path().join("7")).unwrap();
        assert!(matches!(
            SocketDir::open(&parent.path().join("7")),
            Err(DoorError::Directory(_))
        ));

        files::set_permissions(parent.path(), files::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            SocketDir::open(&parent.path().join("8")),
            Err(DoorError::ParentNotPrivate(_))
        ));
    }
}
