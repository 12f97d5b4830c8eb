//! The pages, one module each: a loader, its HTML face, its JSON twin.

pub mod actions;
pub mod deliveries;
pub mod delivery;
pub mod overview;
pub mod run;
pub mod runs;
pub mod trigger;
pub mod triggers;
pub mod workers;

use chrono::{DateTime, Utc};
use queue::read::JobRow;

use crate::show;

/// Rows of a list.
pub const ROWS: i64 = 50;

/// A run in a list, ready to be shown.
pub struct RunLine {
    /// Its number.
    pub job: i64,
    /// Glyph and word.
    pub state: &'static str,
    /// The flow.
    pub flow: String,
    /// `owner/name#7`.
    pub place: String,
    /// Its title, a stranger's.
    pub title: String,
    /// The reason in words.
    pub why: String,
    /// Who asked.
    pub actor: String,
    /// How long it ran.
    pub took: String,
    /// What it cost.
    pub cost: String,
    /// When it was made, for people and for machines.
    pub when: String,
    /// The same, machine-readable.
    pub stamp: String,
}

/// Prepares a run for a list.
pub fn run_line(row: &JobRow) -> RunLine {
    let ended: Option<DateTime<Utc>> = match &row.state {
        queue::JobState::Finished { at, .. } => Some(*at),
        queue::JobState::Queued { .. } | queue::JobState::Held { .. } | queue::JobState::Running { .. } => None,
    };
    let took = row
        .started_at
        .zip(ended)
        .map_or_else(|| "–".to_owned(), |(from, to)| show::took(&from, &to));
    RunLine {
        job: row.job.0,
        state: show::state_word(&row.state),
        flow: row.flow.clone(),
        place: show::plain(&show::place(&row.repository, row.subject)),
        title: show::plain(row.title.as_deref().unwrap_or("")),
        why: show::why(&row.state),
        actor: show::plain(row.actor.as_deref().unwrap_or("–")),
        took,
        cost: show::money(row.cost),
        when: show::moment(&row.created_at),
        stamp: show::stamp(&row.created_at),
    }
}
