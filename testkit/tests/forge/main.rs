//! The stub forge is like a real Forgejo, as far as pi-dispatch can see it.

mod answers;
mod common;
mod pages;
