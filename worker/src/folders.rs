//! A job's folders on the host: made before its container, gone after it.
//!
//! `DATA/jobs/JOB-ATTEMPT/{job,workspace,session}` and, because a socket's path is short, `SOCKETS/JOB-ATTEMPT`.
//! The parents are 0700: of other people of the host nobody gets in, and Docker's daemon, which is root, does not mind.
//! Names are numbers of ours, never payload text.
//!
//! `workspace` and `session` are handed to the job's user before the container starts. A worker that is root does so
//! itself, before anything hostile has written there. One that is not asks Docker ([`crate::container::Engine`]).

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, lchown},
    path::{Path, PathBuf},
};

use crate::{
    container::{Folders, Owner},
    gates::Plan,
    settings::Settings,
};

/// The folders of one attempt.
#[derive(Debug, Clone)]
pub struct JobFolders {
    root: PathBuf,
    /// What the container sees.
    pub seen: Folders,
}

impl JobFolders {
    /// Where they are; nothing is made yet.
    #[must_use]
    pub fn of(settings: &Settings, owner: &Owner) -> Self {
        let name = format!("{}-{}", owner.job, owner.attempt);
        let root = settings.data_dir.join("jobs").join(&name);
        let seen = Folders {
            job: root.join("job"),
            workspace: root.join("workspace"),
            session: root.join("session"),
            sockets: settings.socket_dir.join(&name),
        };
        Self { root, seen }
    }

    /// Makes them anew, the sockets' aside, which the door makes: what an attempt that died between two steps has left there is removed first.
    pub fn make(&self) -> io::Result<()> {
        self.remove()?;
        for parent in [self.root.parent(), self.seen.sockets.parent()].into_iter().flatten() {
            private(parent)?;
        }
        private(&self.root)?;
        for folder in [&self.seen.workspace, &self.seen.session] {
            // Others may look, so that a worker that is not root can measure them; the parent lets no others in.
            fs::DirBuilder::new().mode(0o755).create(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
        fs::DirBuilder::new().mode(0o755).create(&self.seen.job)?;
        // The mask of the process may have taken bits away; the job's user needs them.
        fs::set_permissions(&self.seen.job, fs::Permissions::from_mode(0o755))
    }

    /// Gives what the job may write to its user. Nothing hostile has been here yet.
    ///
    /// # Errors
    /// `PermissionDenied` when the worker is not root.
    pub fn hand_over(&self, uid: u32) -> io::Result<()> {
        for folder in [&self.seen.workspace, &self.seen.session] {
            give(folder, uid)?;
        }
        Ok(())
    }

    /// Where the plan of the attempt is kept for whoever adopts it: beside the mounts, where no job can write.
    #[must_use]
    pub fn plan_file(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// Reads it back.
    pub fn plan(&self) -> io::Result<Plan> {
        serde_json::from_slice(&fs::read(self.plan_file())?).map_err(io::Error::from)
    }

    /// [`JobFolders::remove`] beside the threads that must not block.
    pub async fn removed(&self) -> io::Result<()> {
        let folders = self.clone();
        tokio::task::spawn_blocking(move || folders.remove())
            .await
            .map_err(io::Error::other)?
    }

    /// Removes all of it. Links are removed, not followed; what is not there was wanted gone.
    pub fn remove(&self) -> io::Result<()> {
        // The plan goes last: it says which image can give the folders back.
        for folder in [&self.seen.sockets, &self.seen.workspace, &self.seen.session, &self.root] {
            match fs::remove_dir_all(folder) {
                Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The (job, attempt) of all folders that jobs have on this host, sockets' included. What has another name is not ours.
#[must_use]
pub fn left_on_the_host(settings: &Settings) -> BTreeSet<(i64, i32)> {
    [settings.data_dir.join("jobs"), settings.socket_dir.clone()]
        .into_iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let (job, attempt) = name.to_str()?.split_once('-')?;
            Some((job.parse().ok()?, attempt.parse().ok()?))
        })
        .collect()
}

/// Makes a folder, with its parents, that only the worker may enter.
pub fn private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(0o700)),
        Err(fault) => Err(fault),
    }
}

fn give(path: &Path, uid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}
