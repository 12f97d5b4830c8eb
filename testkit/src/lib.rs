//! Stub forge, scripted model, scratch PostgreSQL: what tests and the demo stand on.
//!
//! | module | what it stands in for |
//! |---|---|
//! | [`forge`] | Forgejo: its API, hooks, git, and a page in the browser; in memory, with its quirks and refusals |
//! | [`model`] | a model of either API shape, that says what a script says and remembers what it was asked |
//! | [`need`] | Docker, an image, a browser, the shared payloads: there, or the test is skipped in so many words |
//! | [`postgres`] | a PostgreSQL 15 of one test process; real, thrown away at the end |
//!
//! Nothing here knows pi-dispatch: the workspace's other crates use this one, never the other way round. Failing is
//! loud: what a test cannot do without panics with the reason, because a test has nobody to hand an error to.

mod clock;
pub mod forge;
pub mod model;
pub mod need;
pub mod postgres;
mod server;
