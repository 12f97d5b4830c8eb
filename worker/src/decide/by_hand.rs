//! A run that a person asked for at the panel or the command line.
//!
//! It comes as a delivery of our own and is decided like any other, so it has a verdict and a reason too. The person's
//! right to ask was checked where they signed in. What the trigger narrows, it narrows here as well.

use forges::{ApiError, Issue, Pull, RepoRef, Repository};
use queue::{Call, Delivery, DeliveryVerdict, EventVerdict, NewDecision, Reason, RunRequest, TriggerId};
use triggers::{CommentOn, On, RepositoryGlobs, Target, Trigger};

use super::{
    Decider,
    comment::run_kind,
    event_no,
    forge::Forge,
    frozen::{self, Place},
    halt::{Halt, Part, no, unanswered},
    trigger_no, undecided,
};
use crate::{texts, trigger_file::InForce};

/// The kind word of such an event in lists.
const KIND: &str = "run-request";

pub(super) async fn verdict(
    decider: &Decider,
    in_force: &InForce,
    delivery: &Delivery,
) -> Result<DeliveryVerdict, Halt> {
    let request: RunRequest =
        serde_json::from_slice(&delivery.body).map_err(|_| no(Reason::BodyUnreadable, texts::REQUEST_UNREADABLE))?;
    let mut event = EventVerdict {
        at: Some(delivery.received_at),
        subject: request.subject,
        actor: Some(request.who.clone()),
        data: serde_json::to_value(&request).unwrap_or_default(),
        ..undecided(format!("{KIND}/{}", delivery.delivery), KIND)
    };
    let trigger = in_force.file.get(request.trigger.as_str());
    event.decisions = match decide(decider, trigger, &request).await {
        Ok((decision, repository)) => {
            event.repository = Some(repository);
            vec![decision]
        }
        Err(Halt::No { reason, detail }) => match trigger {
            Some(trigger) => vec![trigger_no(trigger, reason, detail)],
            None => vec![event_no(reason, detail)],
        },
        Err(other) => return Err(other),
    };
    Ok(DeliveryVerdict {
        events: vec![event],
        ..DeliveryVerdict::default()
    })
}

async fn decide(
    decider: &Decider,
    trigger: Option<&Trigger>,
    request: &RunRequest,
) -> Result<(NewDecision, queue::Repository), Halt> {
    let trigger = trigger.ok_or_else(|| no(Reason::RunRequestUnknown, texts::NO_SUCH_TRIGGER))?;
    let forge = decider.forge(&request.forge)?;
    if trigger.run.kind != run_kind(forge.setup.kind) {
        return Err(no(Reason::OtherKind, ""));
    }
    let repository = find(forge, &request.repository).await?;
    let (issue, pull) = subject(forge, &repository.repo, request).await?;
    if let On::Comment(on) = &trigger.on {
        narrowed(on, forge, &repository.repo, issue.as_ref())?;
    }
    let row = frozen::repository(&repository.repo);
    let place = Place {
        repository,
        issue,
        pull,
    };
    let fire = frozen::fire_by_hand(forge, &decider.settings, trigger, &place);
    Ok((
        NewDecision {
            trigger: Some(TriggerId(trigger.id.clone())),
            call: Call::Fire(Box::new(fire)),
        },
        row,
    ))
}

/// The repository of the name that the person gave.
async fn find(forge: &Forge, full_name: &str) -> Result<Repository, Halt> {
    let (owner, name) = full_name
        .split_once('/')
        .ok_or_else(|| no(Reason::RunRequestUnknown, texts::NO_REPOSITORY_NAME))?;
    let repository = forge
        .setup
        .api
        .repository_by_name(owner, name)
        .await
        .map_err(|error| match error {
            ApiError::Moved(_) => no(Reason::RunRequestUnknown, texts::RENAMED),
            other => unanswered(Part::Repository, &other),
        })?;
    if !forge.lists(&repository.repo.full_name()) {
        return Err(no(Reason::RepositoryNotListed, ""));
    }
    if repository.archived {
        return Err(no(Reason::RepositoryArchived, ""));
    }
    Ok(repository)
}

async fn subject(forge: &Forge, repo: &RepoRef, request: &RunRequest) -> Result<(Option<Issue>, Option<Pull>), Halt> {
    let Some(number) = request.subject else {
        return Ok((None, None));
    };
    let api = &forge.setup.api;
    let issue = api
        .issue(repo, number)
        .await
        .map_err(|error| unanswered(Part::Subject, &error))?;
    if request
        .subject_kind
        .is_some_and(|kind| (kind == Target::PullRequest) != issue.is_pull)
    {
        return Err(no(Reason::RunRequestUnknown, texts::OTHER_SUBJECT_KIND));
    }
    let pull = if issue.is_pull {
        Some(
            api.pull(repo, number)
                .await
                .map_err(|error| unanswered(Part::Subject, &error))?,
        )
    } else {
        None
    };
    Ok((Some(issue), pull))
}

/// What a comment trigger narrows holds for a run by hand too: a person may not widen it either.
fn narrowed(on: &CommentOn, forge: &Forge, repo: &RepoRef, issue: Option<&Issue>) -> Result<(), Halt> {
    if on.forge.as_deref().is_some_and(|name| name != forge.setup.name) {
        return Err(no(Reason::OtherForge, ""));
    }
    let full_name = repo.full_name();
    // Globs of a file in force compile; were one not to, it would name nothing and except everything.
    let names = |globs: &Vec<String>, broken: bool| {
        RepositoryGlobs::new(globs).map_or(broken, |globs| globs.matches(&full_name))
    };
    if on.repositories.as_ref().is_some_and(|only| !names(only, false)) {
        return Err(no(Reason::OtherRepository, ""));
    }
    if on
        .except_repositories
        .as_ref()
        .is_some_and(|except| names(except, true))
    {
        return Err(no(Reason::RepositoryExcepted, ""));
    }
    let other_target = |issue: &Issue| {
        on.target
            .is_some_and(|wanted| (wanted == Target::PullRequest) != issue.is_pull)
    };
    if issue.is_some_and(other_target) {
        return Err(no(Reason::OtherTarget, ""));
    }
    Ok(())
}
