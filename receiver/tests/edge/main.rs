//! The edge over a real socket and a real PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod answers;
mod bodies;
mod captured;
mod durable;
mod log;
mod support;
