//! The prompt of a job.
