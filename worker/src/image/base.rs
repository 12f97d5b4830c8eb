//! The base: Debian's packages, made by `mmdebstrap` and imported into Docker under the hash of the recipe.

use std::{path::Path, process::Stdio};

use bollard::Docker;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use super::{BuildOptions, ImageError, Progress, docker, parts};

/// The release whose C library the runner and node are built for.
const SUITE: &str = "bookworm";

/// The arguments of `mmdebstrap` but the file. Documentation is left out; no program keeps a set-user-id bit, which
/// `no-new-privileges` makes useless anyway.
const RECIPE: [&str; 8] = [
    "--variant=minbase",
    "--include=git,ripgrep,fd-find",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    r#"--customize-hook=find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +"#,
    SUITE,
];

/// The recipe as text, for the hash.
pub(super) fn recipe() -> String {
    RECIPE.join("\n")
}

/// The base's name in Docker; it is made when it is not there.
pub(super) async fn ready(
    docker: &Docker,
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<String, ImageError> {
    let hash = parts::hash(&[recipe().as_bytes()]);
    let (name, version) = ("pi-job-base", &hash[..12]);
    let tag = format!("{name}:{version}");
    if !options.fresh && docker::image(docker, &tag).await?.is_some() {
        return Ok(tag);
    }
    progress.step("making the base from Debian's packages (about a minute)");
    let file = options.cache.join("base.tar");
    bootstrap(&file, progress).await?;
    progress.step("importing the base");
    docker::import(docker, &file, name, version).await?;
    std::fs::remove_file(&file).map_err(ImageError::file(&file))?;
    Ok(tag)
}

async fn bootstrap(file: &Path, progress: &mut dyn Progress) -> Result<(), ImageError> {
    let mut command = Command::new("mmdebstrap");
    command.args(RECIPE).arg(file);
    run(command, "mmdebstrap", "mmdebstrap", progress).await
}

/// Runs a program, shows what it says on standard error, and keeps the last of it for the case that it fails.
pub(super) async fn run(
    mut command: Command,
    program: &'static str,
    package: &'static str,
    progress: &mut dyn Progress,
) -> Result<(), ImageError> {
    let failed = |detail: String| ImageError::Step { what: program, detail };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ImageError::Missing { program, package },
        _ => failed(error.to_string()),
    })?;
    let mut last = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            progress.line(&line);
            if last.len() == 10 {
                last.remove(0);
            }
            last.push(line);
        }
    }
    let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("{status}\n{}", last.join("\n"))))
    }
}
