//! Taking jobs, and giving them back when the worker stops.

use std::{sync::Arc, time::Duration};

use queue::{ClaimRequest, JobData, Reason, WorkerName};
use tokio::{task::JoinSet, time::sleep};

use super::Works;
use crate::{
    adopt,
    job::{self, Running},
    status,
};

/// After a fault.
const AGAIN: Duration = Duration::from_secs(2);
/// What is finished within this time after the worker was told to stop, is finished by it.
const LAST: Duration = Duration::from_secs(2);

/// Adopts what this worker left behind, then claims as slots are free.
pub(super) async fn run(works: Arc<Works>) -> &'static str {
    let mut tasks: JoinSet<()> = JoinSet::new();
    adopt_all(&works, &mut tasks).await;
    works.adopted.cancel();
    while !works.stopping.is_cancelled() {
        reap(&mut tasks);
        let took = claim(&works, &mut tasks).await;
        if !took {
            tokio::select! {
                () = works.rest(works.claims.or(works.poll())) => {}
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => check(ended),
            }
        }
    }
    stop(&works, tasks).await;
    "claim"
}

async fn adopt_all(works: &Arc<Works>, tasks: &mut JoinSet<()>) {
    while !works.stopping.is_cancelled() {
        match adopt::left_behind(&works.house).await {
            Ok(found) => {
                for one in found {
                    let works = Arc::clone(works);
                    works.jobs.add(&one.running);
                    tasks.spawn(async move {
                        job::adopt(Arc::clone(&works.house), Arc::clone(&one.running), one.container).await;
                        works.jobs.remove(&one.running);
                        works.claims.ring();
                    });
                }
                return;
            }
            Err(fault) => {
                tracing::warn!(%fault, "what this worker left behind cannot be looked for, trying again");
                works.rest(sleep(AGAIN)).await;
            }
        }
    }
}

/// True when it took something.
async fn claim(works: &Arc<Works>, tasks: &mut JoinSet<()>) -> bool {
    let settings = &works.house.bench.settings;
    let free = usize::from(settings.slots).saturating_sub(works.jobs.len());
    let Ok(free @ 1..) = u16::try_from(free) else {
        return false;
    };
    // A host without room or without Docker takes nothing: the jobs are left to others, and its row says why.
    if status::has_room(&works.house).is_err() || super::docker_is_there(&works.house.bench.engine).await.is_err() {
        return false;
    }
    let request = ClaimRequest {
        worker: WorkerName(settings.worker.clone()),
        slots: free,
        max_data_version: JobData::VERSION,
        not_images: Vec::new(),
    };
    match works.house.queue.claim(&request).await {
        Ok(claims) => {
            let took = !claims.is_empty();
            for claim in claims {
                tracing::info!(job.id = claim.job.0, attempt = claim.attempt.0, "claimed a job");
                let running = Arc::new(Running::new(claim));
                works.jobs.add(&running);
                let works = Arc::clone(works);
                tasks.spawn(async move {
                    job::live(Arc::clone(&works.house), Arc::clone(&running)).await;
                    works.jobs.remove(&running);
                    works.claims.ring();
                });
            }
            took
        }
        Err(fault) => {
            tracing::warn!(%fault, "no jobs could be claimed, trying again");
            works.rest(sleep(AGAIN)).await;
            false
        }
    }
}

fn reap(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.try_join_next() {
        check(ended);
    }
}

/// A job that panicked is a fault of ours that nobody knows the extent of: the worker ends, and its next start adopts.
fn check(ended: Result<(), tokio::task::JoinError>) {
    if let Err(fault) = ended
        && let Ok(panic) = fault.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Hands back what has no container and gets none; what has one stays with its host.
async fn stop(works: &Works, mut tasks: JoinSet<()>) {
    let queue = &works.house.queue;
    let handed_back: Vec<_> = works
        .jobs
        .all()
        .into_iter()
        .filter(|running| running.gets_no_container())
        .collect();
    let _ = tokio::time::timeout(LAST, async {
        while !works
            .jobs
            .all()
            .iter()
            .all(|running| handed_back.iter().any(|one| Arc::ptr_eq(one, running)))
        {
            match tasks.join_next().await {
                Some(ended) => check(ended),
                None => break,
            }
        }
    })
    .await;
    tasks.shutdown().await;
    for running in handed_back {
        match queue
            .hand_back(&running.claim, Reason::WorkerStopping, "", Duration::ZERO)
            .await
        {
            Ok(()) => tracing::info!(job.id = running.claim.job.0, "handed back a job that had no container"),
            Err(fault) => tracing::warn!(job.id = running.claim.job.0, %fault, "a job could not be handed back"),
        }
    }
    for running in works.jobs.all() {
        tracing::info!(job.id = running.claim.job.0, "left to the worker's next start");
    }
}
