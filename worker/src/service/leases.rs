//! Leases: saying that we live, killing in time when we cannot, and taking over from those who are silent.
//!
//! All of it by monotonic clocks. A worker that cannot renew pulls the switch of each of its jobs before the lease
//! ends; a rescuer acts on a heartbeat counter that stood still for a whole lease. The key of such a job stays closed
//! until its container was seen gone, or is surely dead: the queue sees to that.

use std::{collections::HashMap, sync::Arc, time::Duration};

use contract::StopReason;
use queue::{Claim, JobId, JobState, LeaseRow, Rescued, StoreError};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Bell, Works};
use crate::{
    adopt::{self, AdoptError},
    job::Running,
    publish,
    stop::StopCause,
};

/// Renews the leases of everything that runs here.
pub(super) async fn beat(works: Arc<Works>) -> &'static str {
    let timing = &works.house.bench.settings.timing;
    let patience = timing.lease.saturating_sub(timing.lease_margin);
    // When each job's lease was last known to begin anew.
    let mut renewed: HashMap<(JobId, i32), Instant> = HashMap::new();
    while !works.stopping.is_cancelled() {
        let begin = Instant::now();
        let jobs = works.jobs.all();
        renewed.retain(|key, _| jobs.iter().any(|running| key_of(running) == *key));
        for running in &jobs {
            renewed.entry(key_of(running)).or_insert(begin);
        }
        let claims: Vec<&Claim> = jobs.iter().map(|running| &running.claim).collect();
        let answer = if claims.is_empty() {
            Some(Vec::new())
        } else {
            // A statement that hangs is as good as none, and must not hang past the lease's end.
            timeout(
                timing.heartbeat.min(timing.lease_margin / 2),
                works.house.queue.heartbeat(&claims),
            )
            .await
            .ok()
            .and_then(Result::ok)
        };
        match answer {
            Some(lost) => {
                for running in &jobs {
                    if lost.contains(&running.claim.job) {
                        tracing::warn!(job.id = running.claim.job.0, "the lease is lost");
                        running.switch.pull(StopReason::WorkerStopping);
                    } else {
                        renewed.insert(key_of(running), begin);
                    }
                }
                works.rest(sleep_until(begin + timing.heartbeat)).await;
            }
            None => {
                for running in &jobs {
                    if renewed.get(&key_of(running)).is_some_and(|at| at.elapsed() >= patience) {
                        tracing::warn!(job.id = running.claim.job.0, "the lease could not be renewed, killing");
                        running.switch.pull(StopReason::WorkerStopping);
                    }
                }
                works
                    .rest(sleep((timing.heartbeat / 10).min(Duration::from_secs(1))))
                    .await;
            }
        }
    }
    "heartbeat"
}

fn key_of(running: &Running) -> (JobId, i32) {
    (running.claim.job, running.claim.attempt.0)
}

/// Stops what a person wants stopped.
pub(super) async fn stops(works: Arc<Works>) -> &'static str {
    let bell: &Bell = &works.stops;
    let step = async || {
        let jobs = works.jobs.all();
        let claims: Vec<&Claim> = jobs.iter().map(|running| &running.claim).collect();
        if claims.is_empty() {
            return Ok(false);
        }
        for (job, who) in works.house.queue.stops_requested(&claims).await? {
            if let Some(running) = jobs.iter().find(|running| running.claim.job == job) {
                let detail = Some(crate::texts::job::stopped_by(&who));
                running.switch.pull(StopCause {
                    reason: StopReason::StoppedByPerson,
                    detail,
                });
            }
        }
        Ok(false)
    };
    works.again("stops", bell, works.poll(), step).await;
    "stops"
}

/// A person must not wait for an answer that will never come.
async fn say_lost(works: &Works, job: JobId) -> Result<(), StoreError> {
    let Some(detail) = works.house.queue.job(job).await? else {
        return Ok(());
    };
    match detail.row.state {
        JobState::Finished { outcome, reason, .. } => publish::over(&works.house, job, outcome, reason).await,
        JobState::Queued { .. } | JobState::Held { .. } | JobState::Running { .. } => Ok(()),
    }
}

pub(super) async fn sweep(works: &Works) -> Result<(), StoreError> {
    match adopt::sweep(&works.house).await {
        Ok(()) => Ok(()),
        Err(AdoptError::Store(fault)) => Err(fault),
        Err(AdoptError::Engine(fault)) => {
            tracing::warn!(%fault, "containers were not compared with rows");
            Ok(())
        }
    }
}

/// Takes jobs from workers that are silent.
pub(super) async fn rescue(works: Arc<Works>) -> &'static str {
    works.rest(works.adopted.cancelled()).await;
    let timing = &works.house.bench.settings.timing;
    let (silence, every) = (timing.lease, timing.heartbeat);
    let seen: tokio::sync::Mutex<HashMap<LeaseRow, Instant>> = tokio::sync::Mutex::default();
    let step = async || {
        let mut seen = seen.lock().await;
        let rows = works.house.queue.leases().await?;
        seen.retain(|row, _| rows.contains(row));
        for row in rows {
            let first = *seen.entry(row).or_insert_with(Instant::now);
            let ours = works.jobs.all().iter().any(|running| running.claim.job == row.job);
            if ours || first.elapsed() < silence {
                continue;
            }
            let rescued = works.house.queue.rescue(&row).await?;
            if rescued != Rescued::NotNeeded {
                // Is its container on this host? Then it goes now, and its lane opens.
                sweep(&works).await?;
            }
            match rescued {
                Rescued::BackInQueue => tracing::info!(job.id = row.job.0, "a silent worker's job waits again"),
                Rescued::Failed => {
                    tracing::warn!(job.id = row.job.0, "a silent worker's job is lost");
                    say_lost(&works, row.job).await?;
                }
                Rescued::NotNeeded => {}
            }
            seen.remove(&row);
        }
        Ok(false)
    };
    works.again("rescue", &Bell::default(), every, step).await;
    "rescue"
}
