//! The queue against a real PostgreSQL: each test has a fresh database.
//!
//! Nothing sleeps. Where time matters the row is moved, not the clock.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper of a test fails the test"
)]

mod world;

mod claims;
mod deciding;
mod deliveries;
mod leases;
mod load;
mod money;
mod outbox;
mod pages;
mod people;
mod states;
