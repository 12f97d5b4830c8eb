//! The ends of a job: what it was, what is published, its last row; or back to the queue.

use std::{sync::Arc, time::Duration};

use queue::{Claim, Finish, Outcome, Reason, WentBack};

use super::{House, JobFault, inside::Ran};
use crate::{
    gates::Plan,
    ledger::Ledger,
    outcome::{self, Ended, Told, Verdict},
    publish,
};

/// The run came to its end: what it was, what is published, and the job's last row.
/// Gives the reason that stands there; `None` when it is tried again.
pub(super) async fn end(house: &House, ledger: &Arc<Ledger>, claim: &Claim, plan: &Plan, ran: &Ran) -> Option<Reason> {
    // Without its spend nobody may try again: money could be spent twice.
    let spend = ledger.spend().await;
    let verdict = outcome::decide(&Ended {
        exit: ran.exit,
        cause: ledger.switch().cause(),
        told: &ran.told,
        expected: &ran.expected,
        forwarded: spend.is_none_or(|spend| spend.requests > 0),
        attempts_left: claim.attempts_used + 1 < house.bench.settings.timing.max_attempts,
    });
    let (outcome, reason, detail) = match verdict {
        Verdict::Finish {
            outcome,
            reason,
            detail,
        } => (outcome, reason, detail.unwrap_or_default()),
        Verdict::Again { reason, detail } => {
            let detail = detail.unwrap_or_default();
            if again(house, ledger, claim, reason, &detail).await {
                return None;
            }
            (Outcome::Failed, reason, detail)
        }
    };
    // A run is not called completed, and its last message not posted, while nobody knows what it proposed.
    let Some(comments) = ledger.comments().await else {
        let fault = JobFault::Internal("what it proposed cannot be read");
        return broken(house, ledger, claim, plan, fault).await;
    };
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend,
        told: &ran.told,
        comments,
        forges: &house.forges,
    };
    let finished = run.finish(
        &house.bench.settings,
        outcome,
        reason,
        detail,
        i32::try_from(ran.exit.code).ok(),
    );
    let reason = finished.reason;
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

/// It never ran, or its container was lost.
pub(super) async fn broken(
    house: &House,
    ledger: &Arc<Ledger>,
    claim: &Claim,
    plan: &Plan,
    fault: JobFault,
) -> Option<Reason> {
    tracing::warn!(job.id = claim.job.0, %fault, "a job did not get through its box");
    if let Some(reason) = fault.refuses() {
        return refuse(house, ledger, claim, plan, reason, fault.to_string()).await;
    }
    let (outcome, reason) = fault.outcome();
    if outcome == Outcome::Failed && again(house, ledger, claim, reason, &fault.to_string()).await {
        return None;
    }
    let told = Told::default();
    let spend = ledger.spend().await;
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend,
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let finished = run.finish(&house.bench.settings, outcome, reason, fault.to_string(), None);
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

/// Another attempt, when the queue allows one: it knows whether anything was spent.
async fn again(house: &House, ledger: &Ledger, claim: &Claim, reason: Reason, detail: &str) -> bool {
    let timing = &house.bench.settings.timing;
    let doubled = u32::try_from(claim.attempts_used).unwrap_or(0).min(6);
    let delay = timing.retry.saturating_mul(1 << doubled);
    let went = ledger
        .written(|| house.queue.back_to_queue(claim, reason, detail, delay))
        .await;
    match went {
        Some(WentBack::Queued) => {
            tracing::info!(job.id = claim.job.0, reason = reason.word(), "a job is tried again");
            true
        }
        Some(WentBack::MayNot { .. }) => false,
        // Nothing can be written any more: somebody else has it.
        None => true,
    }
}

pub(super) async fn hand_back(
    house: &House,
    ledger: &Ledger,
    claim: &Claim,
    reason: Reason,
    detail: &str,
    delay: Duration,
) {
    tracing::info!(job.id = claim.job.0, reason = reason.word(), detail, "a job waits");
    ledger
        .written(|| house.queue.hand_back(claim, reason, detail, delay))
        .await;
}

pub(super) async fn refuse(
    house: &House,
    ledger: &Ledger,
    claim: &Claim,
    plan: &Plan,
    reason: Reason,
    detail: String,
) -> Option<Reason> {
    let told = Told::default();
    let run = publish::Run {
        subject: claim.into(),
        plan,
        spend: None,
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let finished = run.finish(&house.bench.settings, Outcome::Refused, reason, detail, None);
    finish(house, ledger, claim, finished).await;
    Some(reason)
}

pub(super) async fn finish(house: &House, ledger: &Ledger, claim: &Claim, finish: Finish) {
    tracing::info!(
        job.id = claim.job.0,
        outcome = finish.outcome.word(),
        reason = finish.reason.word(),
        "a job is finished"
    );
    ledger.written(|| house.queue.finish(claim, &finish)).await;
}

/// Everything up to the container was done, nothing was started and nothing is posted.
pub(super) fn observed() -> Finish {
    Finish {
        outcome: Outcome::Completed,
        reason: Reason::Observed,
        detail: String::new(),
        exit_code: None,
        turns: None,
        reply: None,
        outputs: Vec::new(),
    }
}
