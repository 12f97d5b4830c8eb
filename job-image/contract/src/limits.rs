//! How long, large and deep what crosses the wall may be. Both sides refuse or cut at the same figures.

/// A line of the runner's standard output, its line end not counted.
pub const RUNNER_LINE: usize = 128 * 1024;
/// A line of the control socket, its line end not counted.
pub const CONTROL_LINE: usize = 512 * 1024;
/// The text of the last assistant message in the `result` line.
pub const REPLY: usize = 64 * 1024;
/// Any other text in a runner's line: a tool's arguments, its output, an error, a message of the model.
pub const EXCERPT: usize = 4 * 1024;
/// The arguments of one proposal, as JSON text.
pub const PROPOSAL: usize = 256 * 1024;
/// The body of a `forge_comment`.
pub const COMMENT: usize = 60_000;
/// `job.json` and `tools.json`.
pub const INPUT_FILE: usize = 1024 * 1024;
/// `system.md` and `prompt.md`.
pub const PROMPT_FILE: usize = 4 * 1024 * 1024;
/// Nesting of JSON from inside the box (serde_json's own limit stands above it).
pub const JSON_DEPTH: usize = 100;
/// Seconds between two heartbeats of the runner.
pub const HEARTBEAT_SECONDS: u64 = 10;
/// Seconds without a control connection after which a runner ends itself.
pub const GATEWAY_GONE_SECONDS: u64 = 120;
