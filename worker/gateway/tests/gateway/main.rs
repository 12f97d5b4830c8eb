//! The gateway from outside: a real door on real sockets, a provider that plays a script, the worker's books.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod catalog;
mod door;
mod money;
mod traffic;
mod world;
