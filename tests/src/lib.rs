//! Stories that cross the crates, on real PostgreSQL and real Docker.
