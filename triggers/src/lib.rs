//! The trigger language: parse, diagnose, match. Pure: no I/O, no clock.
//!
//! A triggers file is JSON with comments: `{ "triggers": [ { "id"?, "on": {…}, "run": {…} } ] }`. [`parse`] reads it
//! and reports every fault of the file at once, each with its place; [`render`] prints them as a compiler would.
//! What loads is a [`TriggerFile`], and [`TriggerFile::verdicts`] says of each trigger whether something that
//! happened fires it, and if not, why not.
//!
//! Nothing here fails: a file that is wrong is an answer ([`Parsed::faults`]), a trigger that does not fire is one too
//! ([`Match::No`]). Positions are lines and columns from 1, columns counted in characters; spans are bytes.
//!
//! The language is described in `docs/triggers.md`, the part about tools in `docs/exclude-tools.md`.

mod fault;
mod globs;
mod identity;
mod keys;
mod language;
mod narrow;
mod parse;
mod phrase;
mod render;
mod schema;
mod source;
mod texts;
mod usd;
mod verdict;

pub use contract::{Micros, Thinking, Tool};
pub use fault::{Fault, FaultKind, Severity, Span};
pub use globs::{GlobFault, RepositoryGlobs};
pub use language::{
    CommentOn, Mode, On, Outputs, PackagesOff, Run, RunKind, Target, Trigger, TriggerFile, flow_name_is_safe,
};
pub use narrow::narrow;
pub use parse::{Parsed, parse, parse_bytes};
pub use phrase::{ControlWord, Found, find_phrase};
pub use render::render;
pub use schema::schema;
pub use source::visible;
pub use verdict::{Candidate, Match, NoMatch, What};
