//! Confirming: what the delivery says is asked of the forge itself before anything is made of it.
//!
//! A delivery proves only that its sender knows a secret, and one secret may serve many repositories. So the
//! repository is found by its id, the comment by its own, and both must be what the delivery said: subject, author,
//! text. What the forge answered here is what the job will see; nothing is read again later.

use chrono::{DateTime, Utc};
use forges::{Actor, Comment, CommentAction, Event, EventKind, Issue, Pull, RepoRef, Repository, SubjectKind};
use queue::Reason;

use super::{
    forge::Forge,
    halt::{Halt, Part, differs, no, unanswered},
};
use crate::texts;

/// An event as the forge tells it.
#[derive(Debug, Clone)]
pub(super) struct Confirmed {
    /// The repository under its present name.
    pub(super) repository: Repository,
    /// The comment with its present text, equal to the delivery's.
    pub(super) comment: Comment,
    /// The issue, or the pull request seen as one.
    pub(super) issue: Issue,
    /// The pull request, when it is one.
    pub(super) pull: Option<Pull>,
}

impl Confirmed {
    /// Who did it, under the present name.
    pub(super) fn actor(&self) -> &Actor {
        &self.comment.author
    }

    /// Where, under the present name.
    pub(super) fn repo(&self) -> &RepoRef {
        &self.repository.repo
    }
}

/// Reads everything back. `oldest` is the earliest moment at which it may have happened.
pub(super) async fn confirm(forge: &Forge, event: &Event, oldest: DateTime<Utc>) -> Result<Confirmed, Halt> {
    let api = &forge.setup.api;
    let EventKind::Comment { id, action } = &event.kind;

    let repository = api
        .repository_by_id(event.repo.id)
        .await
        .map_err(|error| unanswered(Part::Repository, &error))?;
    let full_name = repository.repo.full_name();
    if !forge.lists(&full_name) {
        return Err(no(Reason::RepositoryNotListed, texts::renamed(&full_name)));
    }
    if repository.archived {
        return Err(no(Reason::RepositoryArchived, ""));
    }

    let comment = api
        .comment(&repository.repo, *id)
        .await
        .map_err(|error| unanswered(Part::Comment, &error))?;
    same_comment(event, action, &comment)?;
    let happened_at = match action {
        CommentAction::Created => comment.created_at,
        CommentAction::Edited { .. } => comment.updated_at,
    };
    if happened_at < oldest {
        return Err(no(Reason::TooOld, texts::happened(happened_at)));
    }

    let issue = api
        .issue(&repository.repo, event.subject.number)
        .await
        .map_err(|error| unanswered(Part::Subject, &error))?;
    if issue.is_pull != (event.subject.kind == SubjectKind::PullRequest) {
        return Err(differs(Part::Subject));
    }
    let pull = if issue.is_pull {
        Some(
            api.pull(&repository.repo, issue.number)
                .await
                .map_err(|error| unanswered(Part::Subject, &error))?,
        )
    } else {
        None
    };
    Ok(Confirmed {
        repository,
        comment,
        issue,
        pull,
    })
}

/// The comment of the forge is the one of the delivery, in each part that a job is made from.
fn same_comment(event: &Event, action: &CommentAction, comment: &Comment) -> Result<(), Halt> {
    let EventKind::Comment { id, .. } = &event.kind;
    if comment.id != *id {
        return Err(differs(Part::Comment));
    }
    if comment.number != Some(event.subject.number) {
        return Err(differs(Part::Subject));
    }
    // Ids below 1 are the forge's own: an account that is gone, its automation.
    if comment.author.id < 1 || comment.author.id != event.author.id || comment.author.id != event.actor.id {
        return Err(differs(Part::Author));
    }
    if comment.text != event.text {
        return Err(differs(Part::Text));
    }
    // A comment that was never edited has one time: such an "edit" would be a second event for the same words.
    if matches!(action, CommentAction::Edited { .. }) && comment.updated_at <= comment.created_at {
        return Err(differs(Part::Edit));
    }
    Ok(())
}
