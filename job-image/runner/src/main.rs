//! PID 1 of a job container: checks, starts pi, reads it back, reports.
//!
//! Start reading at [`run`]: the life of one attempt from top to bottom. Everything that pi says is taken as said by
//! the box: bounded, compared, never trusted. Standard output is [`contract::RunnerLine`]s, standard error yields no
//! events, and the exit code is [`contract::ExitCode`].
//!
//! With an argument it shows what the image's pi is, without a job and without a model: `builtin-tools` prints
//! [`contract::BuiltinTools`] (the image is built with it), `read-back` prints a whole look at a live session
//! (`pi-dispatch image verify` reads it).

mod argv;
mod control;
mod events;
mod expect;
mod fault;
mod inputs;
mod lines;
mod look;
mod out;
mod pi;
mod proposals;
mod relay;
mod rpc;
mod run;
mod session;
mod spill;
mod tally;

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

fn main() -> ExitCode {
    // First of all: until this is done a shell of the same user could open our descriptors through /proc.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::from(contract::ExitCode::Infrastructure.code());
    }
    let excluded = std::env::var_os(contract::EXCLUDE_TOOLS_VARIABLE);
    let word = std::env::args_os().nth(1);
    let code = match word.as_ref().map(|word| word.to_string_lossy()).as_deref() {
        None => run::run(excluded),
        Some("builtin-tools") => look::print_builtin_tools(),
        Some("read-back") => look::print_read_back(excluded),
        Some(_) => {
            eprintln!("runner: it takes no argument, or `builtin-tools`, or `read-back`");
            contract::ExitCode::Policy
        }
    };
    ExitCode::from(code.code())
}
