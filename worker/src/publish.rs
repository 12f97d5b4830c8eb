//! What a finished run says on the forge, and the status comment of a long one.
//!
//! A proposal of the agent is the answer; without one its last message is. A run that a cap or a person ended is
//! published with what it had and with the reason; one whose exclusions were not proven, or that tried to get round
//! them, publishes nothing of its own. A job without a subject, or without comments among its outputs, keeps its
//! answer in the run.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use queue::{
    Actor, Claim, Finish, JobData, JobId, NewOutput, Outcome, OutputKind, Queue, Reason, Spend, StoreError,
    read::JobDetail,
};
use secrecy::SecretString;
use tokio::time::sleep;
use triggers::Mode;

use crate::{decide::Forges, gates::Plan, job::House, outcome::Told, report, settings::Settings};

/// Between two tries to write the status comment's row.
const AGAIN: Duration = Duration::from_secs(5);

/// Which job it is about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    job: JobId,
    data: &'a JobData,
    requester: Option<&'a Actor>,
}

impl<'a> From<&'a Claim> for Subject<'a> {
    fn from(claim: &'a Claim) -> Self {
        Self {
            job: claim.job,
            data: &claim.data,
            requester: claim.asked.first().map(|asked| &asked.actor),
        }
    }
}

impl<'a> From<&'a JobDetail> for Subject<'a> {
    fn from(job: &'a JobDetail) -> Self {
        let requester = job.asked.first().map(|row| &row.asked.actor);
        Self {
            job: job.row.job,
            data: &job.data,
            requester,
        }
    }
}

/// A run and what is known of it at its end.
pub(crate) struct Run<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) spend: Option<Spend>,
    pub(crate) told: &'a Told,
    pub(crate) comments: Vec<String>,
    pub(crate) forges: &'a Forges,
}

impl Run<'_> {
    /// The last row of the job, with what goes to the forge.
    pub(crate) fn finish(
        &self,
        settings: &Settings,
        outcome: Outcome,
        reason: Reason,
        detail: String,
        exit_code: Option<i32>,
    ) -> Finish {
        let reply = self
            .told
            .result
            .as_ref()
            .map(|result| result.reply.clone())
            .filter(|text| !text.trim().is_empty());
        let silent = self.comments.is_empty() && reply.is_none();
        let (outcome, reason) = match outcome {
            Outcome::Completed if silent => (Outcome::Failed, Reason::ModelSaidNothing),
            outcome => (outcome, reason),
        };
        let texts = self.texts(settings, outcome, reason, &detail, reply.as_deref());
        let outputs = texts
            .into_iter()
            .enumerate()
            .filter_map(|(ordinal, (kind, body))| output(self.subject.data, kind, i16::try_from(ordinal).ok()?, body))
            .collect();
        Finish {
            outcome,
            reason,
            detail,
            exit_code,
            turns: self.turns().and_then(|turns| i32::try_from(turns).ok()),
            reply,
            outputs,
        }
    }

    fn texts(
        &self,
        settings: &Settings,
        outcome: Outcome,
        reason: Reason,
        detail: &str,
        reply: Option<&str>,
    ) -> Vec<(OutputKind, String)> {
        let model = self.model();
        let secrets = self.withhold();
        let Some(run) = self.shown(settings, model.as_deref(), &secrets) else {
            return Vec::new();
        };
        let said = || {
            let comments = self.comments.iter().map(String::as_str);
            if self.comments.is_empty() {
                reply.into_iter().collect::<Vec<_>>()
            } else {
                comments.collect()
            }
        };
        match outcome {
            // An observed trigger is silent, whatever becomes of it.
            _ if self.plan.mode == Mode::Observe => Vec::new(),
            Outcome::Completed if self.plan.outputs.comment == 0 => Vec::new(),
            Outcome::Completed => said()
                .into_iter()
                .map(|text| (OutputKind::Comment, report::answer(&run, text)))
                .collect(),
            Outcome::Refused => vec![(OutputKind::Refusal, report::refusal(&run, reason, detail))],
            Outcome::Failed => vec![(OutputKind::Refusal, report::failure(&run, reason, detail))],
            Outcome::Stopped => {
                let publishes = self.plan.outputs.comment > 0 && reason != Reason::ExcludeToolsBreached;
                let partial = said().join("\n\n");
                let partial = Some(partial.as_str()).filter(|text| publishes && !text.is_empty());
                vec![(OutputKind::Comment, report::stopped(&run, reason, detail, partial))]
            }
            Outcome::Expired => vec![(OutputKind::Refusal, report::failure(&run, reason, detail))],
            // A person's own doing.
            Outcome::Cancelled => Vec::new(),
        }
    }

    fn shown<'b>(
        &'b self,
        settings: &'b Settings,
        model: Option<&'b str>,
        withhold: &'b [SecretString],
    ) -> Option<report::Run<'b>> {
        let data = self.subject.data;
        Some(report::Run {
            job: self.subject.job.0,
            public_url: settings.public_url.as_deref(),
            requester: self.subject.requester.map(|actor| actor.login.as_str()),
            owner: &data.repository.owner,
            name: &data.repository.name,
            subject: data.subject.as_ref()?.number,
            model: model.filter(|_| self.ran()),
            turns: self.turns(),
            cost: self.spend.filter(|_| self.ran()).map(|spend| spend.cost),
            excluded: &self.plan.excluded,
            withhold,
        })
    }

    /// It got as far as its box.
    fn ran(&self) -> bool {
        self.spend.is_some_and(|spend| spend.requests > 0) || self.told.started
    }

    fn turns(&self) -> Option<u32> {
        self.told.result.as_ref().map(|result| result.turns)
    }

    fn model(&self) -> Option<String> {
        Some(format!(
            "{}/{}",
            self.plan.provider.as_deref()?,
            self.plan.model.as_deref()?
        ))
    }

    fn withhold(&self) -> Vec<SecretString> {
        self.forges
            .iter()
            .flat_map(|forge| forge.setup.withhold.iter().cloned())
            .collect()
    }
}

fn output(data: &JobData, kind: OutputKind, ordinal: i16, body: String) -> Option<NewOutput> {
    Some(NewOutput {
        kind,
        forge: data.forge.clone(),
        repository: data.repository.clone(),
        subject: Some(data.subject.as_ref()?.number),
        comment: None,
        body,
        ordinal,
        marker: None,
    })
}

/// The one comment of a long run that is edited in place, through every end.
pub(crate) struct Status<'a> {
    queue: &'a Queue,
    claim: &'a Claim,
    patience: Duration,
    working: Option<NewOutput>,
    made: AtomicBool,
    over: Box<dyn Fn(Reason) -> Option<NewOutput> + Send + Sync + 'a>,
}

impl<'a> Status<'a> {
    pub(crate) fn new(house: &'a House, claim: &'a Claim, plan: &'a Plan) -> Self {
        let text = move |say: &dyn Fn(&report::Run<'_>) -> String| {
            let told = Told::default();
            let run = Run {
                subject: Subject::from(claim),
                plan,
                spend: None,
                told: &told,
                comments: Vec::new(),
                forges: &house.forges,
            };
            let secrets = run.withhold();
            let shown = run.shown(&house.bench.settings, None, &secrets)?;
            output(&claim.data, OutputKind::Status, 0, say(&shown))
        };
        Self {
            queue: &house.queue,
            claim,
            patience: house.bench.settings.timing.status_after,
            working: text(&report::working),
            made: AtomicBool::new(false),
            over: Box::new(move |reason| text(&|run| report::ended(run, reason))),
        }
    }

    /// The one who had the job before may have written it.
    pub(crate) async fn look(&self) {
        if let Ok(Some(job)) = self.queue.job(self.claim.job).await {
            let there = job.outputs.iter().any(|output| output.kind == OutputKind::Status);
            self.made.store(there, Ordering::Relaxed);
        }
    }

    /// Writes the status comment once the run is long; then goes on waiting for ever.
    pub(crate) async fn after_a_while(&self) -> Infallible {
        sleep(self.patience).await;
        if let Some(working) = &self.working {
            while let Err(fault) = self.queue.put_status(self.claim.job, working).await {
                tracing::debug!(job.id = self.claim.job.0, %fault, "the status comment waits");
                sleep(AGAIN).await;
            }
            self.made.store(true, Ordering::Relaxed);
        }
        std::future::pending().await
    }

    /// Edits it, when there is one and the job is over.
    pub(crate) async fn ended(&self, reason: Option<Reason>) {
        let Some(reason) = reason.filter(|_| self.made.load(Ordering::Relaxed)) else {
            return;
        };
        if let Some(over) = (self.over)(reason)
            && let Err(fault) = self.queue.put_status(self.claim.job, &over).await
        {
            tracing::warn!(job.id = self.claim.job.0, %fault, "the status comment was not finished");
        }
    }
}

/// Says what nobody said: whoever ended a job died, or lost PostgreSQL, before its end was said on the forge.
pub(crate) async fn say_the_unsaid(house: &House, age: Duration) -> Result<(), StoreError> {
    for one in house.queue.unanswered(age).await? {
        let said = if one.answer {
            over(house, one.job, one.outcome, one.reason).await
        } else {
            status_over(house, one.job, one.reason).await
        };
        match said {
            Err(fault) if fault.is_transient() => return Err(fault),
            // A job whose data nobody reads any more cannot be answered; the others can.
            Err(fault) => tracing::warn!(job.id = one.job.0, %fault, "the end of a job cannot be said"),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Edits the status comment of a job that is over, when it has one.
async fn status_over(house: &House, job: JobId, reason: Reason) -> Result<(), StoreError> {
    let Some(detail) = house.queue.job(job).await? else {
        return Ok(());
    };
    if !detail.outputs.iter().any(|output| output.kind == OutputKind::Status) {
        return Ok(());
    }
    let plan = Plan::of_data(&detail.data);
    let told = Told::default();
    let run = Run {
        subject: Subject::from(&detail),
        plan: &plan,
        spend: Some(detail.spend),
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let secrets = run.withhold();
    let shown = run.shown(&house.bench.settings, None, &secrets);
    let status = shown.and_then(|shown| output(&detail.data, OutputKind::Status, 0, report::ended(&shown, reason)));
    if let Some(status) = status {
        house.queue.put_status(job, &status).await?;
    }
    Ok(())
}

/// Says on the forge that a job is over which no worker had any more: its worker was lost, or nobody ever took it.
pub(crate) async fn over(house: &House, job: JobId, outcome: Outcome, reason: Reason) -> Result<(), StoreError> {
    let Some(detail) = house.queue.job(job).await? else {
        return Ok(());
    };
    let plan = Plan::of_data(&detail.data);
    let told = Told::default();
    let run = Run {
        subject: Subject::from(&detail),
        plan: &plan,
        spend: Some(detail.spend),
        told: &told,
        comments: Vec::new(),
        forges: &house.forges,
    };
    let finish = run.finish(&house.bench.settings, outcome, reason, String::new(), None);
    for output in &finish.outputs {
        house.queue.put_output_of_finished(job, output).await?;
    }
    status_over(house, job, reason).await
}
