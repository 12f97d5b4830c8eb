//! Everything in PostgreSQL: all SQL, the states, leases, the outbox, the log.
