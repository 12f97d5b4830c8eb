//! What the worker owes the forges.
