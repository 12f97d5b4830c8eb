//! What the worker makes of a forge's deliveries, and what the forge sees of it: real PostgreSQL, stub forge.

mod captured;
mod comments;
mod outbox;
mod own_posts;
mod patience;
mod requests;
mod series;
mod trigger_file;
mod who;
mod world;
