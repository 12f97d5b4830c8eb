//! The files of `/job`.
