//! Every sentence of this crate that a person reads: details of decisions, and the comments on the forge.
//!
//! The meaning and the fix of a reason stand with [`queue::Reason`]; here is what is said around them. Nothing here
//! holds text of a delivery; names and numbers that do come in are shown in backticks by their caller or are ids.

pub(crate) mod job;

/// The forge has `part` otherwise than the delivery said.
pub(crate) fn differs(part: &str) -> String {
    format!("{part} differs between the delivery and the forge")
}

/// `part` is not on the forge.
pub(crate) fn gone(part: &str) -> String {
    format!("{part} is not on the forge any more, or our account may not see it")
}

/// A lookup failed.
pub(crate) fn asked_in_vain(part: &str, error: &str) -> String {
    format!("asked for {part}: {error}")
}

/// The operator named the actor.
pub(crate) fn allowed_by_list(id: i64) -> String {
    format!("user {id} is listed in `allow_users`")
}

/// The forge says that the actor may write.
pub(crate) fn allowed_by_forge(level: &str) -> String {
    format!("the forge gives the actor `{level}`")
}

/// The forge says that the actor may not write.
pub(crate) fn may_only(level: &str) -> String {
    format!("the forge gives the actor `{level}`; write access or more is needed")
}

/// Nobody has the actor's name.
pub(crate) fn no_such_account() -> String {
    "the forge knows no account of the actor's name".to_owned()
}

/// The name changed hands.
pub(crate) fn other_account(found: i64, wanted: i64) -> String {
    format!("the actor's name belongs to user {found} now; the comment is of user {wanted}")
}

/// A permission level that we do not know.
pub(crate) fn unknown_level() -> String {
    "the forge answered with a permission level that this version does not know".to_owned()
}

/// Our token may not ask for other people's permission.
pub(crate) fn permission_unasked(forge: &str) -> String {
    format!(
        "our account may not ask the forge what others may do: give forge `{forge}` a `permission_token` (read-only, \
         of a repository admin), or name the people in `allow_users`, or make our account an admin of the repository"
    )
}

/// The run ended well, and its agent said nothing.
pub(crate) const NO_WORDS: &str = "The run is done. Its agent had nothing to say.";

/// A stopped run that had said nothing.
pub(crate) const NOTHING_YET: &str = "\n\nUntil then it had said nothing.";

/// The status comment of a run that goes on.
pub(crate) const WORKING: &str = "⏳ I am working on it. The answer comes as a comment of its own.";

/// A gate's refusal.
pub(crate) fn refusal(word: &str, meaning: &str, detail: &str, fix: &str) -> String {
    format!(
        "{}\n\nNothing was started and nothing was spent.",
        ending("Not started", word, meaning, detail, fix)
    )
}

/// A broken run.
pub(crate) fn failure(word: &str, meaning: &str, detail: &str, fix: &str) -> String {
    ending("Failed", word, meaning, detail, fix)
}

/// A run that a cap or a person ended.
pub(crate) fn stopped(word: &str, meaning: &str, detail: &str, fix: &str) -> String {
    ending("Stopped", word, meaning, detail, fix)
}

/// What a stopped run had said.
pub(crate) fn until_then(text: &str) -> String {
    format!("\n\nUntil then it had said:\n\n{text}")
}

/// The status comment of a run that is over.
pub(crate) fn ended(word: &str, meaning: &str) -> String {
    format!("**Over:** `{word}`. {meaning}")
}

fn ending(what: &str, word: &str, meaning: &str, detail: &str, fix: &str) -> String {
    let aside = if detail.is_empty() {
        String::new()
    } else {
        format!("\n\n{detail}")
    };
    format!("**{what}:** `{word}`. {meaning}{aside}\n\n**What helps:** {fix}")
}

/// A stored delivery whose kept headers are not what we wrote.
pub(crate) const HEADERS_UNREADABLE: &str = "the kept headers are not of the shape that this version stores";
/// A request of a person that is not what we wrote.
pub(crate) const REQUEST_UNREADABLE: &str = "the request is not of the shape that this version stores";
/// Own post, first way.
pub(crate) const OWN_ACCOUNT: &str = "the account is ours";
/// Own post, second way.
pub(crate) const OWN_MARKER: &str = "the text carries our hidden marker";
/// Own post, third way.
pub(crate) const OWN_TABLE: &str = "the comment is in the table of our own posts";
/// A run by hand of a trigger that is not there.
pub(crate) const NO_SUCH_TRIGGER: &str = "the triggers file in force has no trigger of that name";
/// A run by hand in something that is no repository's name.
pub(crate) const NO_REPOSITORY_NAME: &str = "a repository is written `owner/name`";
/// A run by hand in a repository that has another name now.
pub(crate) const RENAMED: &str = "the repository was renamed; ask under its present name";
/// A run by hand under the other kind of subject.
pub(crate) const OTHER_SUBJECT_KIND: &str = "that number belongs to the other one of issue and pull request";

/// When something happened that is too old.
pub(crate) fn happened(at: chrono::DateTime<chrono::Utc>) -> String {
    format!(
        "it happened at {}",
        at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    )
}

/// The control word that was found.
pub(crate) fn control_word(word: &str) -> String {
    format!("`{word}`")
}

/// The last thing that a delivery waited for.
pub(crate) fn given_up(word: &str, detail: &str) -> String {
    if detail.is_empty() {
        format!("last: {word}")
    } else {
        format!("last: {word}: {detail}")
    }
}

/// The name that a repository has by now. The forge gives letters, digits, `-`, `_` and `.` only.
pub(crate) fn renamed(full_name: &str) -> String {
    format!("the repository is `{full_name}` now")
}
