//! Stub forge, scripted model, scratch PostgreSQL: what tests and the demo stand on.
