//! A comment: is it ours, is it new, does a trigger want it, is it true, may its author ask.

use chrono::{DateTime, TimeDelta, Utc};
use forges::{CommentAction, Event, EventKind, SubjectKind, text::find_marker};
use queue::{Asked, Call, Delivery, EventVerdict, NewDecision, Reason, TriggerId};
use triggers::{Candidate, ControlWord, Match, RunKind, Target, Trigger, What};

use super::{
    Decider, confirm,
    confirm::Confirmed,
    event_no,
    forge::Forge,
    frozen::{self, Place},
    halt::{Halt, Part, no, unanswered},
    some_trigger, trigger_no, undecided, who,
};
use crate::{texts, trigger_file::InForce};

/// The verdict on one event of a delivery: one decision per trigger, or one for all of them.
pub(super) async fn verdict(
    decider: &Decider,
    in_force: &InForce,
    forge: &Forge,
    delivery: &Delivery,
    event: &Event,
) -> Result<EventVerdict, Halt> {
    let Said { standing, decisions } = match decisions(decider, in_force, forge, delivery, event).await {
        Err(Halt::No { reason, detail }) => Said::unconfirmed(vec![event_no(reason, detail)]),
        other => other?,
    };
    let key = match standing {
        Standing::Known | Standing::Confirmed => event.key.to_string(),
        // Else a forgery would be the first arrival, and the real comment its duplicate.
        Standing::Unconfirmed => format!("{}/unconfirmed/{}", event.key, delivery.id),
    };
    let EventKind::Comment { action, .. } = &event.kind;
    let kind = match action {
        CommentAction::Created => "comment-created",
        CommentAction::Edited { .. } => "comment-edited",
    };
    Ok(EventVerdict {
        at: Some(event.happened_at()),
        repository: Some(frozen::repository(&event.repo)),
        subject: Some(event.subject.number),
        actor: Some(event.actor.login.clone()),
        data: serde_json::to_value(event).unwrap_or_default(),
        decisions,
        ..undecided(key, kind)
    })
}

/// What the triggers got, and on whose word.
struct Said {
    standing: Standing,
    decisions: Vec<NewDecision>,
}

/// Who says that it happened. Only what the forge itself confirmed may hold the event's key for ever.
enum Standing {
    /// It had arrived before.
    Known,
    /// The forge.
    Confirmed,
    /// The sender of the delivery alone.
    Unconfirmed,
}

impl Said {
    fn unconfirmed(decisions: Vec<NewDecision>) -> Self {
        Self {
            standing: Standing::Unconfirmed,
            decisions,
        }
    }

    fn confirmed(decisions: Vec<NewDecision>) -> Self {
        Self {
            standing: Standing::Confirmed,
            decisions,
        }
    }
}

async fn decisions(
    decider: &Decider,
    in_force: &InForce,
    forge: &Forge,
    delivery: &Delivery,
    event: &Event,
) -> Result<Said, Halt> {
    if decider
        .queue
        .known_event(&forge.setup.name, &event.key.0)
        .await?
        .is_some()
    {
        // The constraint says the same when this row is written; asking first spares the forge.
        return Ok(Said {
            standing: Standing::Known,
            decisions: Vec::new(),
        });
    }
    let full_name = event.repo.full_name();
    if !forge.lists(&full_name) {
        return Err(no(Reason::RepositoryNotListed, ""));
    }
    own(decider, forge, event, forge.setup.account_id).await?;
    let oldest = oldest(decider, delivery);
    if event.happened_at() < oldest {
        return Err(no(Reason::TooOld, texts::happened(event.happened_at())));
    }
    some_trigger(in_force)?;

    let said = answers(in_force, forge, event, &full_name);
    let all_no = |no: Option<(Reason, &str)>| {
        said.iter()
            .map(|(trigger, answer)| unfired(trigger, answer, no))
            .collect()
    };
    if !said.iter().any(|(_, answer)| matches!(answer, Answer::WouldFire)) {
        return Ok(Said::unconfirmed(all_no(None)));
    }

    // From here on the forge is asked, once for all triggers that want to fire.
    let confirmed = match ask(decider, forge, event, oldest).await {
        Err(Halt::No { reason, detail }) => return Ok(Said::unconfirmed(all_no(Some((reason, &detail))))),
        other => other?,
    };
    let allowed_by = match who::may_start(forge, &confirmed).await {
        Err(Halt::No { reason, detail }) => return Ok(Said::confirmed(all_no(Some((reason, &detail))))),
        other => other?,
    };

    // A renamed repository is matched under the name that it has now.
    let said = answers(in_force, forge, event, &confirmed.repo().full_name());
    let place = Place {
        repository: confirmed.repository.clone(),
        issue: Some(confirmed.issue.clone()),
        pull: confirmed.pull.clone(),
    };
    let fire = |trigger: &Trigger| {
        let asked = asked(&confirmed, event, &allowed_by);
        let fire = frozen::fire_on_comment(forge, &decider.settings, trigger, &place, &confirmed.comment, asked);
        NewDecision {
            trigger: Some(TriggerId(trigger.id.clone())),
            call: Call::Fire(Box::new(fire)),
        }
    };
    let decide = |(trigger, answer): &(&Trigger, Answer)| match answer {
        Answer::WouldFire => fire(trigger),
        Answer::Control(_) | Answer::No(_) => unfired(trigger, answer, None),
    };
    Ok(Said::confirmed(said.iter().map(decide).collect()))
}

/// Whether the forge says the same as the delivery.
async fn ask(decider: &Decider, forge: &Forge, event: &Event, oldest: DateTime<Utc>) -> Result<Confirmed, Halt> {
    if forge.setup.account_id.is_none() {
        let account = forge
            .account()
            .await
            .map_err(|error| unanswered(Part::Account, &error))?;
        own(decider, forge, event, Some(account)).await?;
    }
    confirm::confirm(forge, event, oldest).await
}

/// Our own posts are known three ways, each of which is enough: the account, the hidden marker, the table.
async fn own(decider: &Decider, forge: &Forge, event: &Event, account: Option<i64>) -> Result<(), Halt> {
    if account.is_some_and(|account| account == event.actor.id || account == event.author.id) {
        return Err(no(Reason::OwnPost, texts::OWN_ACCOUNT));
    }
    if find_marker(&event.text).is_some() {
        return Err(no(Reason::OwnPost, texts::OWN_MARKER));
    }
    let EventKind::Comment { id, .. } = event.kind;
    if decider.queue.is_own_post(&forge.setup.name, id).await? {
        return Err(no(Reason::OwnPost, texts::OWN_TABLE));
    }
    Ok(())
}

/// The earliest moment at which it may have happened. A person's replay knows no age.
fn oldest(decider: &Decider, delivery: &Delivery) -> DateTime<Utc> {
    let age = TimeDelta::from_std(decider.settings.max_event_age).unwrap_or(TimeDelta::MAX);
    let oldest = delivery.received_at.checked_sub_signed(age);
    oldest
        .filter(|_| !delivery.replayed)
        .unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// A trigger's answer, as far as it is known without the forge.
enum Answer {
    WouldFire,
    Control(ControlWord),
    No(triggers::NoMatch),
}

fn answers<'t>(in_force: &'t InForce, forge: &Forge, event: &Event, repository: &str) -> Vec<(&'t Trigger, Answer)> {
    let candidate = Candidate {
        forge: &forge.setup.name,
        kind: run_kind(forge.setup.kind),
        repository,
        what: What::Comment {
            text: &event.text,
            previous_text: event.previous_text(),
            target: target(event.subject.kind),
        },
    };
    let answer = |(trigger, found): (&'t Trigger, Match)| {
        let answer = match found {
            Match::Fires { control: None } => Answer::WouldFire,
            Match::Fires { control: Some(word) } => Answer::Control(word),
            Match::No(why) => Answer::No(why),
        };
        (trigger, answer)
    };
    in_force.file.verdicts(&candidate).into_iter().map(answer).collect()
}

/// The row of a trigger that does not fire. `no` is why those that wanted to may not.
fn unfired(trigger: &Trigger, answer: &Answer, no: Option<(Reason, &str)>) -> NewDecision {
    match (answer, no) {
        (Answer::No(why), _) => trigger_no(trigger, Reason::from(*why), ""),
        (Answer::Control(word), _) => trigger_no(trigger, Reason::ControlWord, texts::control_word(word.word())),
        (Answer::WouldFire, Some((reason, detail))) => trigger_no(trigger, reason, detail),
        (Answer::WouldFire, None) => trigger_no(trigger, Reason::InternalFault, ""),
    }
}

fn asked(confirmed: &Confirmed, event: &Event, allowed_by: &str) -> Asked {
    let comment = &confirmed.comment;
    let EventKind::Comment { action, .. } = &event.kind;
    Asked {
        comment: Some(comment.id),
        actor: queue::Actor {
            id: comment.author.id,
            login: comment.author.login.clone(),
        },
        allowed_by: allowed_by.to_owned(),
        text: comment.text.clone(),
        url: Some(comment.url.clone()),
        at: match action {
            CommentAction::Created => comment.created_at,
            CommentAction::Edited { .. } => comment.updated_at,
        },
    }
}

pub(super) fn run_kind(kind: forges::ForgeKind) -> RunKind {
    match kind {
        forges::ForgeKind::Forgejo => RunKind::Forgejo,
        forges::ForgeKind::Gitea => RunKind::Gitea,
    }
}

fn target(kind: SubjectKind) -> Target {
    match kind {
        SubjectKind::Issue => Target::Issue,
        SubjectKind::PullRequest => Target::PullRequest,
    }
}
