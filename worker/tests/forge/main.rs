//! What the worker makes of a forge's deliveries, and what the forge sees of it: real PostgreSQL, stub forge.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of a test end it as its own body does"
)]

mod captured;
mod comments;
mod outbox;
mod own_posts;
mod patience;
mod requests;
mod series;
mod trigger_file;
mod who;
mod words;
mod world;
