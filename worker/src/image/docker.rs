//! The few questions about images: look, import, build, and run something short in one.

use std::{collections::HashMap, path::Path};

use bollard::{
    Docker, body_try_stream,
    container::LogOutput,
    models::{ContainerCreateBody, HostConfig, ImageConfig},
    query_parameters::{
        BuildImageOptionsBuilder, CreateContainerOptions, CreateImageOptionsBuilder, LogsOptionsBuilder,
        RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
    },
};
use contract::paths;
use futures_util::{StreamExt, TryStreamExt};
use tokio_util::io::ReaderStream;

use super::{ImageError, Progress};

/// Of what a container says, this much is read.
const MOST_OUTPUT: usize = 8 * 1024 * 1024;

/// What is writable in a look at an image.
pub(super) const TMPFS: [&str; 5] = [paths::TMP, paths::HOME, paths::AGENT_DIR, paths::SESSION, paths::JOB];

/// An image that is there.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its id.
    pub(super) id: String,
    /// Its configuration.
    pub(super) config: ImageConfig,
}

impl Found {
    /// The value of a label.
    pub(super) fn label(&self, name: &str) -> Option<&String> {
        self.config.labels.as_ref()?.get(name)
    }
}

/// Looks an image up. Nothing is ever pulled.
pub(super) async fn image(docker: &Docker, name: &str) -> Result<Option<Found>, ImageError> {
    match docker.inspect_image(name).await {
        Ok(found) => Ok(Some(Found {
            id: found.id.unwrap_or_default(),
            config: found.config.unwrap_or_default(),
        })),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes an image of an archive of a root file system.
pub(super) async fn import(docker: &Docker, archive: &Path, name: &str, version: &str) -> Result<(), ImageError> {
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(name)
        .tag(version)
        .build();
    let mut said = docker.create_image(Some(options), Some(body_try_stream(stream(archive).await?)), None);
    while said.try_next().await?.is_some() {}
    Ok(())
}

/// Builds the image from its context, without a network.
pub(super) async fn build(
    docker: &Docker,
    context: &Path,
    tag: &str,
    base: &str,
    labels: &HashMap<String, String>,
    progress: &mut dyn Progress,
) -> Result<(), ImageError> {
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .t(tag)
        .buildargs(&HashMap::from([("BASE", base)]))
        .labels(labels)
        .networkmode("none")
        .rm(true)
        .forcerm(true)
        .build();
    let mut said = Box::pin(docker.build_image(options, None, Some(body_try_stream(stream(context).await?))));
    while let Some(said) = said.try_next().await? {
        said.stream
            .iter()
            .flat_map(|text| text.lines())
            .filter(|line| !line.trim().is_empty())
            .for_each(|line| {
                progress.line(line);
            });
    }
    Ok(())
}

async fn stream(file: &Path) -> Result<ReaderStream<tokio::fs::File>, ImageError> {
    let opened = tokio::fs::File::open(file).await.map_err(ImageError::file(file))?;
    Ok(ReaderStream::with_capacity(opened, 64 * 1024))
}

/// Runs a shell script in the image, locked like a job and without any mount of the host, and gives its exit code and
/// what it said.
pub(super) async fn script(
    docker: &Docker,
    image: &str,
    script: &str,
    env: Vec<String>,
) -> Result<(i64, String), ImageError> {
    let owner = format!("rw,nosuid,nodev,size=64m,mode=0700,uid={0},gid={0}", contract::JOB_USER);
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec!["/bin/sh".to_owned()]),
        cmd: Some(vec!["-c".to_owned(), script.to_owned()]),
        env: Some(env),
        user: Some(format!("{0}:{0}", contract::JOB_USER)),
        working_dir: Some(paths::WORKSPACE.to_owned()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            readonly_rootfs: Some(true),
            ipc_mode: Some("none".to_owned()),
            pids_limit: Some(256),
            memory: Some(1024 * 1024 * 1024),
            memory_swap: Some(1024 * 1024 * 1024),
            tmpfs: Some(TMPFS.into_iter().map(|path| (path.to_owned(), owner.clone())).collect()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let id = docker.create_container(None::<CreateContainerOptions>, body).await?.id;
    let ran = run_to_its_end(docker, &id).await;
    let remove = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    docker.remove_container(&id, Some(remove)).await?;
    ran
}

async fn run_to_its_end(docker: &Docker, id: &str) -> Result<(i64, String), ImageError> {
    docker.start_container(id, None).await?;
    let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
    let code = match docker.wait_container(id, Some(options)).next().await {
        Some(Ok(ended)) => ended.status_code,
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return Err(error.into()),
        None => -1,
    };
    let options = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
    let mut said = String::new();
    let mut pieces = docker.logs(id, Some(options));
    while let Some(piece) = pieces.try_next().await? {
        if let LogOutput::StdOut { message } | LogOutput::StdErr { message } = piece {
            said.push_str(&String::from_utf8_lossy(&message));
        }
        if said.len() > MOST_OUTPUT {
            break;
        }
    }
    Ok((code, said))
}
