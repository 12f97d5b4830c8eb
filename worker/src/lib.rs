//! The worker: it decides what a delivery means, lets jobs through the gates, and runs each in a locked container.
//!
//! Start reading at `job`: the life of one job from top to bottom. `run` only wires the loops around it.
//! What happens to a delivery before there is a job stands in [`decide`]; what goes back to the forge, in [`outbox`]
//! and [`report`]. This crate writes no SQL and reads no webhook's JSON.
//!
//! A loop that panics or ends unasked ends the whole worker with an error: a worker that limps looks alive to its
//! operator and is not.

mod adopt;
pub mod backoff;
pub mod container;
pub mod decide;
pub mod disk;
pub mod folders;
pub mod gates;
pub mod image;
pub mod job;
pub mod jobdir;
pub mod ledger;
pub mod logs;
pub mod manual;
pub mod outbox;
pub mod outcome;
mod prepare;
pub mod prompt;
mod publish;
pub mod random;
pub mod repo;
pub mod report;
mod service;
pub mod settings;
mod status;
pub mod stop;
pub mod texts;
pub mod trigger_file;
pub mod trusted_path;
mod watch;

pub use job::{Bench, JobFault};
pub use manual::{ByHandError, HandReport, JobByHand, run_job_file};
pub use service::{WorkerError, run};
pub use settings::{Deps, ForgeSetup, Settings};
