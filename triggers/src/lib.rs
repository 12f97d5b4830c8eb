//! The trigger language: parse, diagnose, match. Pure: no I/O, no clock.
