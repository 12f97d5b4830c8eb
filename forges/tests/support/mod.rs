//! What the tests of this crate share.

use forges::{CommentAction, EventKind, ForgeKind, KeptHeaders, Reading, SubjectKind};

/// The headers that a delivery of that event is kept with.
pub(crate) fn kept(kind: ForgeKind, event: &str, event_type: &str) -> KeptHeaders {
    let header = |name: &str, value: &str| (format!("x-{kind}-{name}"), value.to_owned());
    [
        header("event", event),
        header("event-type", event_type),
        header("delivery", "1"),
    ]
    .into_iter()
    .collect()
}

/// A reading in words.
pub(crate) fn words(reading: &Reading) -> String {
    match reading {
        Reading::Test => "a test delivery".to_owned(),
        Reading::Ignored(reason) => format!("ignored, {reason}: {}", reason.sentence()),
        Reading::Events(events) => {
            let events: Vec<String> = events
                .iter()
                .map(|event| {
                    let EventKind::Comment { id, action } = &event.kind;
                    let did = match action {
                        CommentAction::Created => "wrote".to_owned(),
                        CommentAction::Edited { previous } => format!("changed {previous:?} to"),
                    };
                    let subject = match event.subject.kind {
                        SubjectKind::Issue => "issue",
                        SubjectKind::PullRequest => "pull request",
                    };
                    let text: String = event.text.chars().take(60).collect();
                    format!(
                        "{} ({}) {did} {text:?} as comment {id} of {} ({}) under {subject} {} of {} ({}) at {}, key {}",
                        event.actor.login,
                        event.actor.id,
                        event.author.login,
                        event.author.id,
                        event.subject.number,
                        event.repo.full_name(),
                        event.repo.id,
                        event.happened_at(),
                        event.key,
                    )
                })
                .collect();
            events.join("; ")
        }
    }
}
