//! The identity of a trigger.
