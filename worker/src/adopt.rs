//! Containers and rows brought together again, when a worker starts and now and then afterwards.
//!
//! Rows say which jobs are this worker's; labels say which containers are the deployment's. A running job with its
//! container is adopted: its door is opened anew, its log read again, its lease number raised. A running job whose
//! container is gone is lost. A container whose attempt is over is removed; one of another deployment is not touched.

use std::{collections::HashSet, sync::Arc};

use queue::{Attempt, JobId, StoreError, WorkerName};

use crate::{
    container::{EngineError, Ours, Owner},
    folders::{self, JobFolders},
    job::{self, House, Running},
    settings::Settings,
};

/// A container that gives folders away lives for seconds.
const HANDS_AGE: &str = "1h";

/// A job that was found, to be gone on with.
pub(crate) struct Found {
    pub(crate) running: Arc<Running>,
    /// Its container, when it was started and is still there.
    pub(crate) container: Option<String>,
}

/// Why rows and containers could not be compared now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdoptError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What this worker left behind when it went away. Claims are raised one by one: who had them can write nothing more.
pub(crate) async fn left_behind(house: &House) -> Result<Vec<Found>, AdoptError> {
    let settings = &house.bench.settings;
    let worker = WorkerName(settings.worker.clone());
    let containers = house.bench.engine.ours(&settings.deployment).await?;
    let mut found = Vec::new();
    for job in house.queue.adoptable(&worker).await? {
        let claim = match house.queue.adopt(&worker, job.job, job.attempt).await {
            Ok(Some(claim)) => claim,
            Ok(None) => continue,
            Err(fault) if fault.is_transient() => return Err(fault.into()),
            Err(fault) => {
                // Written by another version. It must not keep this worker from its other jobs: its lease ends, and it is rescued.
                tracing::error!(job.id = job.job.0, %fault, "a job of ours cannot be adopted, its container is killed");
                let name = owner_of(settings, job.job, job.attempt).name();
                house.bench.engine.kill(&name).await?;
                continue;
            }
        };
        let container = containers
            .iter()
            .filter(|one| one.owner.worker == settings.worker)
            .find(|one| (one.owner.job, one.owner.attempt) == (job.job.0, job.attempt.0))
            // One that was made and never started has nothing to go on with.
            .filter(|_| job.started)
            .map(|one| one.id.clone());
        tracing::info!(
            job.id = job.job.0,
            container = container.is_some(),
            "found a job of ours"
        );
        found.push(Found {
            running: Arc::new(Running::adopted(claim)),
            container,
        });
    }
    Ok(found)
}

fn owner_of(settings: &Settings, job: JobId, attempt: Attempt) -> Owner {
    Owner {
        deployment: settings.deployment.clone(),
        worker: settings.worker.clone(),
        job: job.0,
        attempt: attempt.0,
    }
}

/// Removes containers of this deployment whose attempt is over, those included that were never started.
pub(crate) async fn sweep(house: &House) -> Result<(), AdoptError> {
    let engine = &house.bench.engine;
    let settings = &house.bench.settings;
    let folders = folders::left_on_the_host(settings);
    // Folders and containers first: a claim stands before its container, so one that is listed and has no lease afterwards is over.
    let containers = engine.ours(&house.bench.settings.deployment).await?;
    let alive: HashSet<(i64, i32)> = house
        .queue
        .leases()
        .await?
        .iter()
        .map(|lease| (lease.job.0, lease.attempt.0))
        .collect();
    for Ours { id, owner } in containers {
        if alive.contains(&(owner.job, owner.attempt)) {
            continue;
        }
        tracing::info!(job.id = owner.job, "removing a container whose attempt is over");
        engine.remove(&id).await?;
        // A lane that was closed because of it opens.
        house
            .queue
            .container_gone(JobId(owner.job), Attempt(owner.attempt), None)
            .await?;
        if let Err(fault) = job::remove_folders(&house.bench, JobFolders::of(&house.bench.settings, &owner)).await {
            tracing::warn!(job.id = owner.job, %fault, "a job's folders could not be removed");
        }
    }
    engine.remove_old_hands(HANDS_AGE).await?;
    // Folders whose worker died before their container was made, or after it was removed.
    for (job, attempt) in folders {
        if alive.contains(&(job, attempt)) {
            continue;
        }
        let owner = owner_of(settings, JobId(job), Attempt(attempt));
        match engine.inspect(&owner.name()).await {
            Err(EngineError::NoSuchContainer) => {}
            Ok(_) => continue,
            Err(fault) => return Err(fault.into()),
        }
        if let Err(fault) = job::remove_folders(&house.bench, JobFolders::of(settings, &owner)).await {
            tracing::warn!(job.id = job, %fault, "a job's folders could not be removed");
        }
    }
    Ok(())
}
