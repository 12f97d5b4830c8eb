//! Repositories on the host.
