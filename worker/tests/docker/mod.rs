//! What the Docker tests share: an engine, and a tiny image whose "runner" is a shell script of the test.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicI64, Ordering},
};

use worker::{
    container::{Ask, Engine, Folders, Owner},
    settings::ContainerSettings,
};

/// The engine, or nothing and a line that says why.
pub(crate) fn engine() -> Option<Engine> {
    let socket = testkit::need::docker()?;
    let docker = bollard::Docker::connect_with_unix(&socket.display().to_string(), 120, bollard::API_DEFAULT_VERSION);
    Some(Engine::new(docker.expect("the socket is there")))
}

/// A tag of this process, so that two runs do not meet; the image goes with it.
pub(crate) struct TinyImage {
    pub(crate) tag: String,
}

impl TinyImage {
    /// An image of busybox alone. Its runner is `/job/run.sh` of the test. `changes` are Dockerfile lines.
    pub(crate) fn with(name: &str, changes: &[&str]) -> Option<Self> {
        let busybox = Path::new("/bin/busybox");
        if !busybox.exists() {
            testkit::need::skipped("busybox-static is not installed");
            return None;
        }
        let tag = format!("pi-dispatch-test/{name}:{}", std::process::id());
        let mut command = Command::new("docker");
        command.arg("import");
        for change in changes {
            command.args(["--change", change]);
        }
        let mut import = command
            .args(["-", &tag])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the docker command is there");
        let stdin = import.stdin.take().expect("it was piped");
        write_tar(stdin, busybox).expect("docker reads it");
        assert!(import.wait().expect("it ran").success());
        Some(Self { tag })
    }
}

impl Drop for TinyImage {
    fn drop(&mut self) {
        let _ = Command::new("docker")
            .args(["rmi", "-f", &self.tag])
            .stdout(Stdio::null())
            .status();
    }
}

fn write_tar(out: impl Write, busybox: &Path) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(out);
    let mut add = |path: &str, bytes: &[u8], mode: u32| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        tar.append_data(&mut header, path, bytes)
    };
    let binary = fs::read(busybox)?;
    add("bin/busybox", &binary, 0o755)?;
    add("opt/pi-dispatch/runner", b"#!/bin/busybox sh\n. /job/run.sh\n", 0o755)?;
    let mut link = tar::Header::new_gnu();
    for applet in [
        "sh", "cat", "id", "grep", "sleep", "ls", "touch", "mkdir", "seq", "dd", "kill", "wc", "head", "tr",
    ] {
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        link.set_mode(0o777);
        tar.append_link(&mut link, format!("bin/{applet}"), "busybox")?;
    }
    tar.finish()
}

/// A box for one script: folders under a temporary one, labels of a deployment of its own.
pub(crate) struct Box_ {
    pub(crate) ask: Ask,
    _root: tempfile::TempDir,
}

impl Drop for Box_ {
    fn drop(&mut self) {
        let name = self.ask.owner.name();
        let _ = Command::new("docker")
            .args(["rm", "-f", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// A box whose runner is that script.
pub(crate) fn boxed(image_id: &str, script: &str) -> Box_ {
    static JOB: AtomicI64 = AtomicI64::new(1);
    let job = JOB.fetch_add(1, Ordering::Relaxed);
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = |name: &str, mode: u32| -> PathBuf {
        let path = root.path().join(name);
        fs::create_dir(&path).expect("it is new");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path
    };
    let folders = Folders {
        job: folder("job", 0o755),
        workspace: folder("workspace", 0o777),
        session: folder("session", 0o777),
        sockets: folder("sockets", 0o711),
    };
    fs::write(folders.job.join("run.sh"), script).expect("it is ours");
    let owner = Owner {
        deployment: format!("test-{}-{job}", std::process::id()),
        worker: "test".into(),
        job,
        attempt: 1,
    };
    let ask = Ask {
        image_id: image_id.to_owned(),
        owner,
        excluded: vec!["bash".into(), "powershell".into()],
        folders,
        settings: ContainerSettings::default(),
        log_size: 16 << 20,
    };
    Box_ { ask, _root: root }
}
