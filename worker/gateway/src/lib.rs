//! The one door of a job: control and model sockets, the allowlist, the meter.
//!
//! A job's container has no network and holds no key. What it can reach are two Unix sockets in one directory, served here, on the host:
//! *control* (the runner says that it lives, proposes outputs, is told to stop) and *model* (pi's model requests, two API shapes).
//! Everything that comes in was written by an adversary: a shell inside the job speaks with the same voice as pi.
//!
//! * [`Door`] is one job's two sockets. [`Host`] is what it asks of the worker: reserve money, settle it, take a proposal, note an event.
//! * [`providers`] knows the models, their prices and limits, and what `/job/models.json` must say.
//! * `request` is the allowlist, `json` the strict reader under it, `money` the worst case and the floor, `upstream` the only HTTP client.
//!
//! Units: money is whole micro-dollars ([`contract::Micros`]), rounded up; tokens are counted as the provider bills them; sizes are bytes.
//! Fails with [`DoorError`] only when the sockets cannot be made. A request that is turned away is an answer (403) and a [`DoorEvent`].
//!
//! Source of the facts about pi's requests: pi 1.6.0's own provider code; see `worker/gateway/README.md`.

mod control;
mod dir;
mod door;
mod forward;
mod host;
mod json;
mod model;
mod money;
pub mod providers;
mod request;
mod scan;
mod shared;
mod texts;
mod upstream;
mod usage;

pub use door::{Caps, Door, DoorError, DoorSpec, Timeouts};
pub use host::{
    Answer, Cap, DoorEvent, Host, HostFault, Proposal, Reservation, ReservationId, Reserve, Settled, Settlement,
    Socket, Usage,
};
pub use providers::ModelGrant;
