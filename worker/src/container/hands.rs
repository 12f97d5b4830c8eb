//! The hands of a worker that is not root: a short container gives folders to the job's user, and back again.
//!
//! It is as locked as a job's (no network, read-only, no privileges) but for what `chown` needs, sees the given
//! folders alone, and runs one fixed command of the image. Links are changed themselves, never followed.

use std::{collections::HashMap, path::Path, time::Duration};

use bollard::{
    models::{ContainerCreateBody, HealthConfig, HostConfig, Mount, MountType},
    query_parameters::PruneContainersOptionsBuilder,
};
use tokio::time::timeout;

use super::{Engine, EngineError, engine::patient};
use crate::random;

/// Marks such a container, so that one whose worker was killed is found.
const LABEL: &str = "pi-dispatch.hands";
/// How long a folder may take.
const PATIENCE: Duration = Duration::from_secs(120);

impl Engine {
    /// Makes everything in these folders belong to a user and its group. `image` must have `/bin/chown`.
    ///
    /// # Errors
    /// [`EngineError`]; `Refused` when the command did not succeed.
    pub async fn give(&self, image: &str, folders: &[&Path], uid: u32) -> Result<(), EngineError> {
        let name = format!("pi-hands-{}", random::token(6));
        let done = timeout(PATIENCE, self.run_once(&name, body(image, folders, uid))).await;
        self.remove(&name).await?;
        match done {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(code)) => Err(EngineError::Refused {
                status: 0,
                message: format!("giving folders away ended with {code}"),
            }),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(EngineError::Unavailable("giving folders away took too long".to_owned())),
        }
    }
}

impl Engine {
    /// Removes such containers that ended, or never began, longer than `age` ago (Docker's spelling: `1h`): their worker was killed.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn remove_old_hands(&self, age: &str) -> Result<(), EngineError> {
        let filters = HashMap::from([("label", vec![LABEL]), ("until", vec![age])]);
        let options = PruneContainersOptionsBuilder::default().filters(&filters).build();
        patient(self.docker.prune_containers(Some(options))).await.map(|_| ())
    }
}

fn body(image: &str, folders: &[&Path], uid: u32) -> ContainerCreateBody {
    let inside = |at: usize| format!("/given/{at}");
    let mut command = vec![
        "-R".to_owned(),
        "-h".to_owned(),
        "-P".to_owned(),
        "--".to_owned(),
        format!("{uid}:{uid}"),
    ];
    command.extend((0..folders.len()).map(inside));
    let mounts = folders.iter().enumerate().map(|(at, folder)| Mount {
        target: Some(inside(at)),
        source: Some(folder.display().to_string()),
        typ: Some(MountType::BIND),
        ..Mount::default()
    });
    let host = HostConfig {
        network_mode: Some("none".to_owned()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(
            ["CHOWN", "DAC_READ_SEARCH", "DAC_OVERRIDE", "FOWNER"]
                .map(str::to_owned)
                .to_vec(),
        ),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        pids_limit: Some(16),
        memory: Some(64 << 20),
        memory_swap: Some(64 << 20),
        ipc_mode: Some("none".to_owned()),
        mounts: Some(mounts.collect()),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some("0:0".to_owned()),
        labels: Some(HashMap::from([(LABEL.to_owned(), String::new())])),
        env: Some(Vec::new()),
        entrypoint: Some(vec!["/bin/chown".to_owned()]),
        cmd: Some(command),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        network_disabled: Some(true),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}
