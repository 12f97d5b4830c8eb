//! The keys of the language.
