//! The sentences of this crate that a person sees.

use crate::event::IgnoredReason;

/// Word and sentence for a delivery that starts nothing.
pub(crate) fn ignored(reason: IgnoredReason) -> (&'static str, &'static str) {
    match reason {
        IgnoredReason::CommentDeleted => (
            "comment-deleted",
            "a comment was deleted; only new and edited comments start jobs",
        ),
        IgnoredReason::EditByOther => (
            "edit-by-other",
            "a comment was edited by somebody who did not write it; only its author's edit counts",
        ),
        IgnoredReason::EditWithoutChange => (
            "edit-without-change",
            "a comment was edited, but its text is the same as before or the delivery does not say what it was",
        ),
        IgnoredReason::Label => ("label", "labels changed; this version starts jobs from comments only"),
        IgnoredReason::Issue => (
            "issue",
            "an issue itself changed; this version starts jobs from comments only",
        ),
        IgnoredReason::PullRequest => (
            "pull-request",
            "a pull request itself changed; this version starts jobs from comments only",
        ),
        IgnoredReason::Review => (
            "review",
            "a review or a comment on lines; this version starts jobs from comments of the conversation only",
        ),
        IgnoredReason::Push => (
            "push",
            "commits were pushed; this version starts jobs from comments only",
        ),
        IgnoredReason::Branch => (
            "branch",
            "a branch or tag was made or deleted; nothing starts from that",
        ),
        IgnoredReason::Release => ("release", "a release changed; nothing starts from that"),
        IgnoredReason::Wiki => ("wiki", "the wiki changed; nothing starts from that"),
        IgnoredReason::Fork => ("fork", "the repository was forked; nothing starts from that"),
        IgnoredReason::Repository => (
            "repository",
            "the repository itself was made, changed or deleted; nothing starts from that",
        ),
        IgnoredReason::Other => ("other-event", "an event that no trigger can name"),
        IgnoredReason::UnknownEvent => ("unknown-event", "an event that this version does not know"),
        IgnoredReason::UnknownAction => (
            "unknown-action",
            "a comment event with an action that this version does not know",
        ),
        IgnoredReason::Malformed => (
            "malformed",
            "well signed, but its body is not JSON of the shape that this event has",
        ),
    }
}

/// Stands before the words of what was an image.
pub(crate) const IMAGE: &str = "image: ";

/// The last line of a code block that was cut.
pub(crate) const CODE_CUT: &str = "… (cut here)";

/// The line that says a text was cut.
pub(crate) fn cut(more: Option<&str>) -> String {
    match more {
        Some(url) => format!("… cut here; the whole text is at <{url}>"),
        None => "… cut here".to_owned(),
    }
}

/// Part of the footer line.
pub(crate) fn turns(turns: u32) -> String {
    if turns == 1 {
        "1 turn".to_owned()
    } else {
        format!("{turns} turns")
    }
}

/// Part of the footer line of a run that excludes nothing.
pub(crate) const ALL_TOOLS: &str = "full pinned tool set";

/// Part of the footer line.
pub(crate) fn without_tools(names: &str) -> String {
    format!("without the tools {names}")
}
