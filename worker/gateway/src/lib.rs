//! The one door of a job: control and model sockets, the allowlist, the meter.
