//! The `secret` field.
