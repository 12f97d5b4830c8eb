//! What worker and runner share: the job's files, the runner's lines, exit codes, labels, capabilities.
//!
//! The worker and the container's PID 1 are built from the same tree but meet at run time, perhaps one version
//! apart. Everything that crosses the container's wall is a type of this crate: what goes in ([`JobFile`],
//! [`ToolsFile`]), what comes out ([`RunnerLine`], [`ExitCode`]), and what is said over the control socket
//! ([`ToGateway`], [`ToRunner`]). Plain data: nothing here opens a file, reads a clock or knows Docker.
//!
//! Units: money is whole micro-dollars ([`Micros`]), times are whole seconds unless a name says otherwise, sizes are
//! bytes. What the runner says comes from inside the box: the worker shows it and believes none of its numbers.

mod control;
mod exit;
mod image;
mod job;
mod line;
mod money;
mod proposal;
mod readback;
mod reason;
mod tool;

pub mod labels;
pub mod limits;
pub mod paths;

pub use control::{ProposalVerdict, ToGateway, ToRunner};
pub use exit::ExitCode;
pub use image::{BuiltinTool, BuiltinTools, Capability};
pub use job::{ApiShape, JOB_FILE_VERSION, JobFile, JobFileError, JobLimits, Thinking};
pub use line::{Phase, ReportedUsage, ResultOutcome, RunnerEvent, RunnerLine};
pub use money::{Micros, MicrosError, usd};
pub use proposal::{ForgeComment, Proposal, ProposalFault, ProposalTool, TOOLS_FILE_VERSION, ToolsFile};
pub use readback::{ReadBack, SeenTool};
pub use reason::{FaultReason, StopReason};
pub use tool::{Tool, UnknownTool, expected_active, expected_registered};

/// The version of this contract. The image carries it as a label, the runner says it in its `hello`.
///
/// It rises when an older runner could no longer serve a newer worker (a new *kind* of line does not raise it).
pub const CONTRACT_VERSION: u32 = 1;

/// The pinned version of pi, as its own `--version` prints it.
pub const PI_VERSION: &str = "1.6.0";

/// The tag under which this tree builds its job image.
pub const IMAGE_TAG: &str = "pi-job:2.0.0";

/// The environment variable through which alone exclusions enter a container: names joined by commas, in the order
/// of the triggers file; absent when nothing is excluded.
pub const EXCLUDE_TOOLS_VARIABLE: &str = "PI_EXCLUDE_TOOLS";

/// The port on the container's loopback where the runner forwards to the gateway's model socket.
///
/// `models.json` names it as base URL: [`MODEL_ORIGIN`], followed by `/v1` for [`ApiShape::OpenaiCompletions`].
pub const MODEL_PORT: u16 = 18_080;

/// The origin of the runner's loopback listener; see [`MODEL_PORT`].
pub const MODEL_ORIGIN: &str = "http://127.0.0.1:18080";

/// What stands where pi wants an API key. The real one never enters a container.
pub const DUMMY_KEY: &str = "held-by-the-gateway";

/// The user and group of a job when the configuration names none.
pub const JOB_USER: u32 = 10_001;

/// The guardrails: the first part of every job's prompt, and a file of the image.
pub const GUARDRAILS: &str = include_str!("../../guardrails.md");
