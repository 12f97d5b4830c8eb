//! Decide, gates, container, gateway, outbox, report: the life of a job.
