//! What a job is made of: the confirmed answers of the forge, frozen, with the limits that were in force.

use forges::{Comment, Issue, Pull, ReactionTarget, RepoRef, Repository};
use queue::{Asked, Fire, JobData, Limits, NewOutput, OutputKind, Subject, lane_of_subject, series_of};
use triggers::{Mode, Run, Target, Trigger};

use super::forge::Forge;
use crate::settings::{RunLimits, Settings};

/// The longest text of an issue or pull request that a job takes along, in bytes. A longer one is cut at a character.
pub(super) const MAX_SUBJECT_TEXT: usize = 64 * 1024;
/// The reaction that says "seen, and taken".
const TAKEN: &str = "eyes";

/// A subject as the forge has it, ready to be frozen.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) repository: Repository,
    pub(super) issue: Option<Issue>,
    pub(super) pull: Option<Pull>,
}

/// The job of a trigger that fires on a comment.
pub(super) fn fire_on_comment(
    forge: &Forge,
    settings: &Settings,
    trigger: &Trigger,
    place: &Place,
    comment: &Comment,
    asked: Asked,
) -> Fire {
    let number = place.issue.as_ref().map(|issue| issue.number);
    let lane = lane(forge, place, trigger);
    let series = Some(series_of(&lane, &trigger.id.as_str().into(), &trigger.run.flow));
    let reaction = NewOutput {
        kind: OutputKind::Reaction,
        forge: forge.setup.name.clone(),
        repository: repository(&place.repository.repo),
        subject: number,
        comment: Some(comment.id),
        body: TAKEN.to_owned(),
        ordinal: 0,
        marker: None,
    };
    Fire {
        lane,
        series,
        data: data(forge, settings, trigger, place),
        asked: Some(asked),
        // An observed trigger posts nothing at all.
        reaction: (trigger.run.mode == Mode::Run).then_some(reaction),
    }
}

/// The job of a trigger that a person runs by hand: each request is a job of its own.
pub(super) fn fire_by_hand(forge: &Forge, settings: &Settings, trigger: &Trigger, place: &Place) -> Fire {
    Fire {
        lane: lane(forge, place, trigger),
        series: None,
        data: data(forge, settings, trigger, place),
        asked: None,
        reaction: None,
    }
}

/// What an output of that reaction row goes to.
pub(crate) fn reaction_target(comment: Option<i64>, subject: Option<i64>) -> Option<ReactionTarget> {
    comment
        .map(ReactionTarget::Comment)
        .or(subject.map(ReactionTarget::Subject))
}

/// One lane per subject; without a subject one per repository and trigger.
fn lane(forge: &Forge, place: &Place, trigger: &Trigger) -> String {
    let (name, repository) = (&forge.setup.name, place.repository.repo.id);
    match &place.issue {
        Some(issue) => lane_of_subject(name, repository, issue.number),
        None => format!("{name}/{repository}/trigger/{}", trigger.id),
    }
}

fn data(forge: &Forge, settings: &Settings, trigger: &Trigger, place: &Place) -> JobData {
    let branch = &place.repository.default_branch;
    JobData {
        version: JobData::VERSION,
        trigger: trigger.clone(),
        forge: forge.setup.name.clone(),
        kind: trigger.run.kind,
        repository: repository(&place.repository.repo),
        subject: place.issue.as_ref().map(|issue| subject(issue, place)),
        default_branch: (!branch.is_empty()).then(|| branch.clone()),
        image: trigger.run.image.clone().unwrap_or_else(|| settings.image.clone()),
        limits: limits(&trigger.run, &settings.limits.run),
    }
}

pub(super) fn repository(repo: &RepoRef) -> queue::Repository {
    queue::Repository {
        id: repo.id,
        owner: repo.owner.clone(),
        name: repo.name.clone(),
    }
}

fn subject(issue: &Issue, place: &Place) -> Subject {
    let pull = place.pull.as_ref();
    Subject {
        kind: if issue.is_pull {
            Target::PullRequest
        } else {
            Target::Issue
        },
        number: issue.number,
        title: issue.title.clone(),
        text: cut(&issue.text, MAX_SUBJECT_TEXT).to_owned(),
        head: pull.map(|pull| pull.head_sha.clone()),
        head_is_fork: pull.is_some_and(|pull| pull.head_repo_id != Some(place.repository.repo.id)),
        url: Some(issue.url.clone()),
    }
}

/// The smaller of what the trigger and the deployment allow: a trigger takes away, it never adds.
fn limits(run: &Run, deployment: &RunLimits) -> Limits {
    let total = u32::try_from(deployment.total.as_secs()).unwrap_or(u32::MAX);
    Limits {
        turns: Some(run.max_turns.map_or(deployment.turns, |own| own.min(deployment.turns))),
        tokens: Some(
            run.max_tokens
                .map_or(deployment.tokens, |own| own.min(deployment.tokens)),
        ),
        cost: match (run.max_cost_usd, deployment.cost) {
            (Some(own), Some(all)) => Some(own.min(all)),
            (own, all) => own.or(all),
        },
        seconds: Some(
            run.timeout_minutes
                .map_or(total, |own| own.saturating_mul(60).min(total)),
        ),
    }
}

/// At most `max` bytes of a text, ending at a whole character.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use contract::Micros;

    use super::*;

    fn run(json: &str) -> Run {
        let file = format!(
            r#"{{"triggers":[{{"on":{{"type":"comment","phrase":"@pi"}},"run":{{"kind":"forgejo","flow":"triage"{json}}}}}]}}"#
        );
        let parsed = triggers::parse("triggers.json", &file);
        assert!(parsed.faults.is_empty(), "{:?}", parsed.faults);
        parsed.file.unwrap().triggers()[0].run.clone()
    }

    fn deployment() -> RunLimits {
        RunLimits {
            turns: 60,
            tokens: 1000,
            cost: Some(Micros(500)),
            total: Duration::from_secs(600),
        }
    }

    #[test]
    fn a_trigger_without_limits_has_those_of_the_deployment() {
        let limits = limits(&run(""), &deployment());
        assert_eq!((limits.turns, limits.tokens), (Some(60), Some(1000)));
        assert_eq!((limits.cost, limits.seconds), (Some(Micros(500)), Some(600)));
    }

    #[test]
    fn a_trigger_may_lower_each_limit_and_raise_none() {
        let less = limits(
            &run(r#","maxTurns":3,"maxTokens":10,"maxCostUsd":"0.000100","timeoutMinutes":2"#),
            &deployment(),
        );
        assert_eq!((less.turns, less.tokens), (Some(3), Some(10)));
        assert_eq!((less.cost, less.seconds), (Some(Micros(100)), Some(120)));
        let more = limits(
            &run(r#","maxTurns":300,"maxTokens":10000,"maxCostUsd":"9","timeoutMinutes":99"#),
            &deployment(),
        );
        assert_eq!(more, limits(&run(""), &deployment()));
    }

    #[test]
    fn a_dollar_cap_of_the_trigger_holds_where_the_deployment_has_none() {
        let open = RunLimits {
            cost: None,
            ..deployment()
        };
        assert_eq!(
            limits(&run(r#","maxCostUsd":"1""#), &open).cost,
            Some(Micros(1_000_000))
        );
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
