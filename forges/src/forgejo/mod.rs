//! Forgejo and Gitea. [`ForgeKind`](crate::ForgeKind) is the flavour: it chooses the names of the headers.

mod answers;
pub(crate) mod api;
pub(crate) mod read;
pub(crate) mod verify;
