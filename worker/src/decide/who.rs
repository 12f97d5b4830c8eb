//! Who may start a job: a person with write access, as the forge's API says it now.
//!
//! Never from the payload and never from a name: numeric ids are compared, since a name can change hands.

use forges::{Permission, RepoRef};
use queue::Reason;

use super::{
    confirm::Confirmed,
    forge::Forge,
    halt::{Halt, Part, later, no, unanswered},
};
use crate::texts;

/// Asks whether the one who did it may start a job. The answer is the rule that allowed it, in words.
pub(super) async fn may_start(forge: &Forge, confirmed: &Confirmed) -> Result<String, Halt> {
    let actor = confirmed.actor();
    if forge.setup.allow_users.contains(&actor.id) {
        return Ok(texts::allowed_by_list(actor.id));
    }
    let repo: &RepoRef = confirmed.repo();
    let answer = forge
        .setup
        .api
        .permission(repo, &actor.login)
        .await
        .map_err(|error| unanswered(Part::Permission, &error))?;
    match answer {
        Permission::CannotAsk => Err(later(
            Reason::PermissionNotAskable,
            texts::permission_unasked(&forge.setup.name),
        )),
        Permission::NoSuchUser => Err(no(Reason::ActorUnknown, texts::no_such_account())),
        Permission::Known { user, .. } if user.id != actor.id => {
            Err(no(Reason::ActorUnknown, texts::other_account(user.id, actor.id)))
        }
        Permission::Known { level, .. } => match level.may_write() {
            Some(true) => Ok(texts::allowed_by_forge(level.word())),
            Some(false) => Err(no(Reason::PermissionTooLow, texts::may_only(level.word()))),
            None => Err(later(Reason::ForgeUnavailable, texts::unknown_level())),
        },
    }
}
