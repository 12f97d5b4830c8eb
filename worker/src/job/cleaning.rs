//! What is left of a job goes: its container, then its folders.

use std::time::Duration;

use tokio::time::sleep;

use super::{Bench, JobFault, Target};
use crate::{
    container::{Engine, EngineError, Owner},
    folders::JobFolders,
    settings::Settings,
};

/// The container and the folders go. What cannot be removed now is removed when the worker starts again.
pub(crate) async fn clean_up(bench: &Bench, owner: &Owner) {
    if let Err(fault) = bench.engine.remove(&owner.name()).await {
        tracing::warn!(job.id = owner.job, %fault, "a container could not be removed");
        return;
    }
    if let Err(fault) = remove_folders(bench, JobFolders::of(&bench.settings, owner)).await {
        tracing::warn!(job.id = owner.job, %fault, "a job's folders could not be removed");
    }
}

/// Removes the folders of an attempt whose container is gone. A worker that is not root takes them back first.
pub(crate) async fn remove_folders(bench: &Bench, folders: JobFolders) -> Result<(), JobFault> {
    match folders.removed().await {
        Err(fault) if fault.kind() == std::io::ErrorKind::PermissionDenied => {}
        done => return done.map_err(JobFault::Host),
    }
    let image = folders
        .plan()
        .map_or_else(|_| bench.settings.image.clone(), |plan| plan.image);
    let both = [folders.seen.workspace.as_path(), folders.seen.session.as_path()];
    bench
        .engine
        .give(&image, &both, rustix::process::geteuid().as_raw())
        .await?;
    folders.removed().await.map_err(JobFault::Host)
}

/// Kills and looks, until Docker says that it is dead: before that its key is not free.
pub(crate) async fn kill_until_dead(engine: &Engine, container: &str) {
    loop {
        match engine.kill(container).await {
            Ok(()) if matches!(engine.pid(container).await, Ok(0) | Err(EngineError::NoSuchContainer)) => return,
            Ok(()) => {}
            Err(fault) => tracing::warn!(%fault, "killing a container failed, trying again"),
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// Whose container a job's is.
pub(crate) fn owner(settings: &Settings, target: &Target<'_>) -> Owner {
    Owner {
        deployment: settings.deployment.clone(),
        worker: settings.worker.clone(),
        job: target.job,
        attempt: target.attempt,
    }
}
