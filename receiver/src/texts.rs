//! Sentences that a person may see and that belong to no error.

/// For an address that is none of ours.
pub(crate) const NOTHING_HERE: &str = "there is nothing here: hooks are under /hooks/NAME";

/// PostgreSQL did not answer.
pub(crate) const NOT_READY: &str = "PostgreSQL does not answer, or its schema is not this program's";
