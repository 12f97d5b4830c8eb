//! The queue against a real PostgreSQL: each test has a fresh database.
//!
//! Nothing sleeps. Where time matters the row is moved, not the clock.

mod world;

mod claims;
mod deciding;
mod deliveries;
mod leases;
mod money;
mod outbox;
mod pages;
mod people;
mod states;
