//! Reading a delivery: which thing happened, or why nothing that we fire on did.
//!
//! Unknown fields are passed over, so a newer forge reads as an older one. What is missing or of another shape makes
//! the delivery `malformed`. Source of the shapes: `facts/forges.md`, "Events", and deliveries of a real Forgejo.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::verify;
use crate::KeptHeaders;
use crate::event::{
    Actor, CommentAction, Event, EventKey, EventKind, IgnoredReason, Reading, RepoRef, SubjectKind, SubjectRef,
};
use crate::http::is_name;
use crate::kind::ForgeKind;

/// The few fields that say what kind of delivery it is.
#[derive(Deserialize)]
struct Peek {
    action: Option<String>,
    before: Option<String>,
    after: Option<String>,
    comment: Option<serde::de::IgnoredAny>,
}

/// A delivery about a comment.
#[derive(Deserialize)]
struct CommentDelivery {
    issue: Option<Subject>,
    /// Beside `issue` on a pull request; alone in some old versions.
    pull_request: Option<Subject>,
    comment: Comment,
    changes: Option<Changes>,
    repository: Repository,
    sender: User,
    /// Newer versions say it here, older ones by `issue.pull_request`.
    #[serde(default)]
    is_pull: bool,
}

#[derive(Deserialize)]
struct Subject {
    number: i64,
    #[serde(default)]
    title: String,
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Comment {
    id: i64,
    user: User,
    body: Option<String>,
    #[serde(default)]
    html_url: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Changes {
    body: Option<ChangedFrom>,
}

#[derive(Deserialize)]
struct ChangedFrom {
    from: String,
}

#[derive(Deserialize)]
struct Repository {
    id: i64,
    name: String,
    owner: User,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    login: Option<String>,
    username: Option<String>,
}

pub(crate) fn read(kind: ForgeKind, headers: &KeptHeaders, body: &[u8]) -> Reading {
    let names = verify::names(kind);
    let Some(event) = headers.get(names.event) else {
        return Reading::Ignored(IgnoredReason::Malformed);
    };
    let Ok(peek) = serde_json::from_slice::<Peek>(body) else {
        return Reading::Ignored(IgnoredReason::Malformed);
    };
    match event {
        "issue_comment" => comment(peek.action.as_deref(), body),
        // A review, unless it carries a comment: so some versions send one on a pull request.
        "pull_request_comment" if peek.comment.is_some() => comment(peek.action.as_deref(), body),
        "push" if peek.before.is_some() && peek.before == peek.after => Reading::Test,
        other => Reading::Ignored(not_for_us(other, peek.action.as_deref())),
    }
}

/// Why an event that is no comment starts nothing.
fn not_for_us(event: &str, action: Option<&str>) -> IgnoredReason {
    match (event, action) {
        ("issues" | "pull_request", Some("label_updated" | "label_cleared")) => IgnoredReason::Label,
        ("issues", _) => IgnoredReason::Issue,
        ("pull_request", _) => IgnoredReason::PullRequest,
        ("pull_request_approved" | "pull_request_rejected" | "pull_request_comment" | "pull_request_review", _) => {
            IgnoredReason::Review
        }
        ("push", _) => IgnoredReason::Push,
        ("create" | "delete", _) => IgnoredReason::Branch,
        ("release", _) => IgnoredReason::Release,
        ("wiki", _) => IgnoredReason::Wiki,
        ("fork", _) => IgnoredReason::Fork,
        ("repository", _) => IgnoredReason::Repository,
        ("package" | "status" | "workflow_run" | "workflow_job", _) => IgnoredReason::Other,
        (word, _) if word.starts_with("action_run") => IgnoredReason::Other,
        _ => IgnoredReason::UnknownEvent,
    }
}

fn comment(action: Option<&str>, body: &[u8]) -> Reading {
    let edited = match action {
        Some("created") => false,
        Some("edited") => true,
        Some("deleted") => return Reading::Ignored(IgnoredReason::CommentDeleted),
        _ => return Reading::Ignored(IgnoredReason::UnknownAction),
    };
    let read = serde_json::from_slice::<CommentDelivery>(body).ok();
    match read.and_then(|delivery| comment_event(delivery, edited)) {
        None => Reading::Ignored(IgnoredReason::Malformed),
        Some(Ok(event)) => Reading::Events(vec![event]),
        Some(Err(reason)) => Reading::Ignored(reason),
    }
}

/// `None`: a field has no usable value.
fn comment_event(delivery: CommentDelivery, edited: bool) -> Option<Result<Event, IgnoredReason>> {
    let is_pull = delivery.is_pull
        || delivery.pull_request.is_some()
        || delivery
            .issue
            .as_ref()
            .is_some_and(|issue| issue.pull_request.is_some());
    let subject = delivery
        .issue
        .or(delivery.pull_request)
        .filter(|subject| subject.number > 0)?;
    let repo = repository(delivery.repository)?;
    let actor = actor(delivery.sender)?;
    let author = actor_of(&delivery.comment.user)?;
    let comment = delivery.comment;
    if comment.id <= 0 {
        return None;
    }
    let text = comment.body.unwrap_or_default();
    let (key, action) = if edited {
        if actor.id != author.id {
            return Some(Err(IgnoredReason::EditByOther));
        }
        let previous = delivery.changes.and_then(|changes| changes.body).map(|body| body.from);
        let Some(previous) = previous.filter(|previous| *previous != text) else {
            return Some(Err(IgnoredReason::EditWithoutChange));
        };
        let hash = hex::encode(Sha256::digest(text.as_bytes()));
        (
            format!("comment/{}/edit/{hash}", comment.id),
            CommentAction::Edited { previous },
        )
    } else {
        (format!("comment/{}", comment.id), CommentAction::Created)
    };
    Some(Ok(Event {
        key: EventKey(key),
        kind: EventKind::Comment { id: comment.id, action },
        repo,
        subject: SubjectRef {
            kind: if is_pull {
                SubjectKind::PullRequest
            } else {
                SubjectKind::Issue
            },
            number: subject.number,
            title: subject.title,
        },
        actor,
        author,
        text,
        url: comment.html_url,
        object_created_at: comment.created_at,
        object_updated_at: comment.updated_at,
    }))
}

fn repository(repository: Repository) -> Option<RepoRef> {
    let owner = actor(repository.owner)?.login;
    let usable = repository.id > 0 && is_name(&owner) && is_name(&repository.name);
    usable.then_some(RepoRef {
        id: repository.id,
        owner,
        name: repository.name,
    })
}

fn actor(user: User) -> Option<Actor> {
    actor_of(&user)
}

fn actor_of(user: &User) -> Option<Actor> {
    let login = user
        .login
        .as_ref()
        .or(user.username.as_ref())
        .filter(|login| is_name(login))?;
    (user.id > 0).then(|| Actor {
        id: user.id,
        login: login.clone(),
    })
}
