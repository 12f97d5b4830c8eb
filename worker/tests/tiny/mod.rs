//! A tiny image of busybox alone, whose runner is a shell script of the test.

#![expect(clippy::expect_used, reason = "a fixture fails by panicking")]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

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
        "sh", "cat", "id", "grep", "sleep", "ls", "touch", "mkdir", "seq", "dd", "kill", "wc", "head", "tr", "chown",
    ] {
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        link.set_mode(0o777);
        tar.append_link(&mut link, format!("bin/{applet}"), "busybox")?;
    }
    tar.finish()
}
