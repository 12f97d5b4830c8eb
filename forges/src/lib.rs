//! One module per forge: verify a delivery, read it into an [`Event`], call its API.
//!
//! Nothing is decided here. [`verify`] says whether a delivery was signed by somebody who knows a secret of the hook,
//! [`read`] says in our own words what happened, [`Api`] asks and tells the forge, [`text`] rebuilds what we post.
//! JSON of webhooks is known in this crate only.
//!
//! Each forge has the same few files (`verify`, `read`, `api`). Forgejo and Gitea are one module, [`ForgeKind`] being
//! its flavour: they differ in the names of a few headers.
//!
//! Fails with [`DeliveryError`] (the sender's doing, answered at the edge) and [`ApiError`] (what the forge, or the
//! road to it, did). A delivery that starts nothing is no failure: that is [`Reading::Ignored`], with its reason.

mod api;
mod api_error;
mod body;
mod delivery;
mod event;
mod forgejo;
mod http;
mod kind;
pub mod text;
mod texts;

pub use api::{
    Account, Api, ApiSettings, Branch, Comment, GitRemote, Issue, Permission, PermissionLevel, Pull, ReactionTarget,
    Repository, SetupError, SubjectState,
};
pub use api_error::ApiError;
pub use delivery::{DeliveryError, KeptHeaders, Verified, content_type};
pub use event::{
    Actor, CommentAction, Event, EventKey, EventKind, IgnoredReason, Reading, RepoRef, SubjectKind, SubjectRef,
};
pub use kind::{ForgeKind, UnknownKind};

use ::http::HeaderMap;
use secrecy::SecretString;

/// Checks the proof of a delivery over its raw bytes, in constant time, against each secret of the hook.
///
/// What comes back is all that may be stored: the headers of the allowlist, and the body in which the value of any
/// `secret` field is blanked. The kind is that of the path the delivery came in on, never of a header: Forgejo
/// sends GitHub's and Gitea's headers too.
///
/// # Errors
/// [`DeliveryError`], each variant being one answer of the edge. A hook without secrets refuses everything.
pub fn verify<'b>(
    kind: ForgeKind,
    headers: &HeaderMap,
    body: &'b [u8],
    secrets: &[SecretString],
) -> Result<Verified<'b>, DeliveryError> {
    match kind {
        ForgeKind::Forgejo | ForgeKind::Gitea => forgejo::verify::verify(kind, headers, body, secrets),
    }
}

/// Reads a stored delivery. Pure: no clock, no network; the same bytes always read the same.
///
/// It never fails: what cannot be read is [`Reading::Ignored`] with the reason `malformed`.
#[must_use]
pub fn read(kind: ForgeKind, headers: &KeptHeaders, body: &[u8]) -> Reading {
    match kind {
        ForgeKind::Forgejo | ForgeKind::Gitea => forgejo::read::read(kind, headers, body),
    }
}
