//! The life of one job, from top to bottom. Start reading here.
//!
//! ```text
//! claim ─▶ gates::admit ─▶ prepare ─▶ door opened ─▶ container made, compared, started ─▶ watched to its end
//!              │no                                                                             │
//!              ▼                                                                               ▼
//!        refused, answered once;                                     outcome::decide ─▶ publish ─▶ finish ─▶ cleaned up
//!        or back to the queue
//! ```
//!
//! `live` is a claimed job; `adopt` is one whose container lived on while its worker was away; by hand
//! ([`crate::manual`]) it is the same box without a queue. What happens inside the box is `in_the_box` for all three.
//!
//! A job is finished while its container still lies there, ended: so a death in between loses nothing, and the next
//! worker removes what is left. Its key is free only after the container was seen ended.

mod cleaning;
mod ending;
mod fault;
mod inside;
mod running;

use std::sync::Arc;

use gateway::providers::Catalog;
use queue::{Claim, Queue};
use triggers::Mode;

pub use self::fault::JobFault;
pub(crate) use self::{
    cleaning::{clean_up, kill_until_dead, owner, remove_folders},
    inside::in_the_box,
    running::Running,
};
use self::{
    ending::{broken, end, finish, hand_back, observed, refuse},
    inside::go_on,
};
use crate::{
    container::Engine,
    decide::Forges,
    folders::JobFolders,
    gates::{self, No, Plan},
    ledger::Ledger,
    publish,
    repo::Repos,
    settings::Settings,
    texts::job as texts,
    trigger_file::Live,
};

/// What every job of this worker shares.
pub struct House {
    /// The database.
    pub queue: Queue,
    /// The forges.
    pub forges: Forges,
    /// The triggers file in force.
    pub triggers: Arc<Live>,
    /// The repositories of this host.
    pub repos: Repos,
    /// What a job needs also without a queue.
    pub bench: Bench,
}

/// What a job needs also without a queue.
pub struct Bench {
    /// Docker.
    pub engine: Engine,
    /// The models.
    pub catalog: Arc<Catalog>,
    /// The operator's figures and folders.
    pub settings: Arc<Settings>,
}

/// Which job, for the box: its numbers, and its claim when it has one.
pub(crate) struct Target<'a> {
    pub(crate) job: i64,
    pub(crate) attempt: i32,
    pub(crate) claim: Option<&'a Claim>,
}

/// A claimed job: through the gates, into the box, to its end.
pub(crate) async fn live(house: Arc<House>, running: Arc<Running>) {
    let claim = &running.claim;
    let ledger = Arc::new(Ledger::rows(house.queue.clone(), claim.clone(), running.switch.clone()));
    let admitted = tokio::select! {
        admitted = gates::admit(&house, &ledger, claim) => admitted,
        cause = running.switch.pulled() => {
            broken(&house, &ledger, claim, &Plan::of_data(&claim.data), JobFault::Stopped(cause)).await;
            return;
        }
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(No::Refused { reason, detail }) => {
            refuse(&house, &ledger, claim, &Plan::of_data(&claim.data), reason, detail).await;
            return;
        }
        Err(No::Waits { reason, detail, delay }) => {
            return hand_back(&house, &ledger, claim, reason, &detail, delay).await;
        }
    };
    if admitted.plan.mode == Mode::Observe {
        return finish(&house, &ledger, claim, observed()).await;
    }
    if !running.may_get_a_container() {
        // The worker stops, and whoever stops it hands the job back.
        return;
    }
    let target = Target {
        job: claim.job.0,
        attempt: claim.attempt.0,
        claim: Some(&running.claim),
    };
    let owner = owner(&house.bench.settings, &target);
    let status = publish::Status::new(&house, claim, &admitted.plan);
    let ran = tokio::select! {
        ran = in_the_box(&house.bench, Some(&house.repos), &ledger, &admitted, &target) => ran,
        never = status.after_a_while() => match never {},
    };
    let reason = match ran {
        Ok(ran) => end(&house, &ledger, claim, &admitted.plan, &ran).await,
        Err(fault) => {
            kill_until_dead(&house.bench.engine, &owner.name()).await;
            broken(&house, &ledger, claim, &admitted.plan, fault).await
        }
    };
    status.ended(reason).await;
    clean_up(&house.bench, &owner).await;
}

/// A job whose container lived on while its worker was away: the same end, from the middle.
pub(crate) async fn adopt(house: Arc<House>, running: Arc<Running>, container: Option<String>) {
    let claim = &running.claim;
    let ledger = Arc::new(Ledger::rows(house.queue.clone(), claim.clone(), running.switch.clone()));
    ledger.resume().await;
    let target = Target {
        job: claim.job.0,
        attempt: claim.attempt.0,
        claim: Some(&running.claim),
    };
    let owner = owner(&house.bench.settings, &target);
    let folders = JobFolders::of(&house.bench.settings, &owner);
    // Without its plan nobody knows what it may do: then it ends here.
    let (plan, readable) = match folders.plan() {
        Ok(plan) => (plan, true),
        Err(_) => (Plan::of_data(&claim.data), false),
    };
    let status = publish::Status::new(&house, claim, &plan);
    status.look().await;
    let ran = match container {
        Some(container) if readable => {
            ledger.note("adopted", texts::ADOPTED.to_owned()).await;
            tokio::select! {
                ran = go_on(&house.bench, &ledger, &plan, &folders, &container) => ran,
                never = status.after_a_while() => match never {},
            }
        }
        Some(_) => Err(JobFault::Lost("the plan of its attempt is gone")),
        None => Err(JobFault::Lost("its container is gone")),
    };
    let reason = match ran {
        Ok(ran) => end(&house, &ledger, claim, &plan, &ran).await,
        Err(fault) => {
            kill_until_dead(&house.bench.engine, &owner.name()).await;
            broken(&house, &ledger, claim, &plan, fault).await
        }
    };
    status.ended(reason).await;
    clean_up(&house.bench, &owner).await;
}
