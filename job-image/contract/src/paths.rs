//! Where things are inside a job container.

/// The job's inputs, read-only.
pub const JOB: &str = "/job";
/// [`crate::JobFile`].
pub const JOB_FILE: &str = "/job/job.json";
/// The whole system prompt.
pub const SYSTEM_FILE: &str = "/job/system.md";
/// The first message: the fenced event, nothing else.
pub const PROMPT_FILE: &str = "/job/prompt.md";
/// The event as data, for a skill's scripts.
pub const EVENT_FILE: &str = "/job/event.json";
/// [`crate::ToolsFile`]: the tools that the bridge registers.
pub const TOOLS_FILE: &str = "/job/tools.json";
/// The folder of the flow's skill.
pub const SKILL: &str = "/job/skill";
/// pi's model configuration: one provider, one model, a dummy key, the loopback listener.
pub const MODELS_FILE: &str = "/job/models.json";

/// The repository at the confirmed commit; pi's working directory.
pub const WORKSPACE: &str = "/workspace";
/// This job's session files and the spill files of pi's tools.
pub const SESSION: &str = "/session";
/// What the runner leaves for the worker (a later step's bundle).
pub const SESSION_OUT: &str = "/session/out";

/// The directory with the gateway's sockets, mounted read-only.
pub const SOCKETS: &str = "/run/pi-dispatch";
/// File name of the control socket in that directory.
pub const CONTROL_SOCKET_NAME: &str = "control.sock";
/// File name of the model socket in that directory.
pub const MODEL_SOCKET_NAME: &str = "model.sock";
/// The control socket.
pub const CONTROL_SOCKET: &str = "/run/pi-dispatch/control.sock";
/// The model socket.
pub const MODEL_SOCKET: &str = "/run/pi-dispatch/model.sock";

/// A tmpfs for everybody.
pub const TMP: &str = "/tmp";
/// A tmpfs: the job's home.
pub const HOME: &str = "/home/job";
/// A tmpfs: pi's agent directory, which must be writable and holds the runner's own settings.
pub const AGENT_DIR: &str = "/run/pi-agent";

/// What pi-dispatch put into the image.
pub const INSTALLED: &str = "/opt/pi-dispatch";
/// The runner: entry point of every job container.
pub const RUNNER: &str = "/opt/pi-dispatch/runner";
/// The bridge: the one extension that is loaded.
pub const BRIDGE: &str = "/opt/pi-dispatch/bridge.js";
/// The guardrails as the image has them.
pub const GUARDRAILS: &str = "/opt/pi-dispatch/guardrails.md";
/// [`crate::BuiltinTools`]: pi's own tools, read from the real pi when the image was built.
pub const BUILTIN_TOOLS: &str = "/opt/pi-dispatch/builtin-tools.json";
/// Node: owned by root and execute-only, so that the processes made of it are not dumpable.
pub const NODE: &str = "/usr/local/bin/node";
/// pi's program file.
pub const PI: &str = "/opt/pi/dist/bundle/cli.js";
