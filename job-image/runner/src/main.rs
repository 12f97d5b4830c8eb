//! PID 1 of a job container: checks, starts pi, reads it back, reports.
fn main() {}
