//! How pi is started: every argument, variable and setting pinned, nothing discovered.
//!
//! Source: pi 1.6.0, `docs/cli.md`, `docs/settings.md`, `docs/environment-variables.md`.

use contract::{Thinking, paths};
use serde_json::{Value, json};

/// What differs between two starts of pi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    /// The provider's name in `models.json`.
    pub(crate) provider: String,
    /// The model's id.
    pub(crate) model: String,
    /// The thinking level.
    pub(crate) thinking: Thinking,
    /// Excluded names in the order in which they came.
    pub(crate) excluded: Vec<String>,
    /// The file with the whole system prompt.
    pub(crate) system_file: String,
}

/// The arguments of node.
///
/// `--exclude-tools` stands at most once, because the last one wins; `--tools` and `--no-tools` never, because they
/// would take the bridge's tools away or activate others. The prompt is passed as a file: an argument is at most
/// 128 KiB long.
pub(crate) fn arguments(start: &Start) -> Vec<String> {
    let mut arguments: Vec<String> = [
        paths::PI,
        "--mode",
        "rpc",
        "--provider",
        &start.provider,
        "--model",
        &start.model,
        "--thinking",
        start.thinking.word(),
        "--no-extensions",
        "-e",
        paths::BRIDGE,
        "--no-skills",
        "--no-prompt-templates",
        "--no-themes",
        "--no-context-files",
        "--no-approve",
        "--offline",
        "--session-dir",
        paths::SESSION,
        "--system-prompt",
        &start.system_file,
    ]
    .map(str::to_owned)
    .into();
    if !start.excluded.is_empty() {
        arguments.extend(["--exclude-tools".to_owned(), start.excluded.join(",")]);
    }
    arguments
}

/// The whole environment of pi; it inherits nothing.
pub(crate) fn environment(start: &Start) -> Vec<(&'static str, String)> {
    let mut environment: Vec<(&'static str, String)> = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", paths::HOME),
        ("TMPDIR", paths::TMP),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
        ("PI_CODING_AGENT_DIR", paths::AGENT_DIR),
        ("PI_OFFLINE", "1"),
        ("PI_SKIP_VERSION_CHECK", "1"),
        ("PI_TELEMETRY", "0"),
        // Node would keep compiled code in /tmp, where the job's shell could replace it.
        ("NODE_DISABLE_COMPILE_CACHE", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    if !start.excluded.is_empty() {
        environment.push((contract::EXCLUDE_TOOLS_VARIABLE, start.excluded.join(",")));
    }
    environment
}

/// pi's `settings.json`. No `defaultTools`; cache warming off, because it sends requests that cost; five retries, so
/// that a worker's restart (half a minute) is outlived.
pub(crate) fn settings() -> Value {
    json!({
        "enableInstallTelemetry": false,
        "cacheWarming": "off",
        "defaultProjectTrust": "never",
        "quietStartup": true,
        "compaction": { "enabled": true, "reserveTokens": 16_384, "keepRecentTokens": 20_000 },
        "retry": { "enabled": true, "maxRetries": 5, "baseDelayMs": 2_000 },
    })
}

#[cfg(test)]
mod tests {
    use contract::Tool;

    use super::*;

    fn start(excluded: &[Tool]) -> Start {
        Start {
            provider: "local".into(),
            model: "vendor/model:free".into(),
            thinking: Thinking::Low,
            excluded: excluded.iter().map(|tool| tool.name().to_owned()).collect(),
            system_file: paths::SYSTEM_FILE.into(),
        }
    }

    #[test]
    fn exclusions_are_one_flag_and_only_when_there_are_any() {
        assert!(!arguments(&start(&[])).contains(&"--exclude-tools".to_owned()));
        let arguments = arguments(&start(&[Tool::Bash, Tool::Powershell]));
        let flags: Vec<usize> = arguments
            .iter()
            .enumerate()
            .filter(|(_, word)| *word == "--exclude-tools")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(flags.len(), 1);
        assert_eq!(arguments[flags[0] + 1], "bash,powershell");
    }

    #[test]
    fn nothing_is_discovered_nothing_is_approved_and_no_allowlist_is_given() {
        let arguments = arguments(&start(&Tool::ALL));
        for must in [
            "--no-extensions",
            "--no-skills",
            "--no-prompt-templates",
            "--no-context-files",
            "--no-approve",
        ] {
            assert!(arguments.iter().any(|word| word == must), "{must}");
        }
        for never in [
            "--tools",
            "-t",
            "--no-tools",
            "--no-builtin-tools",
            "--approve",
            "-a",
            "--api-key",
        ] {
            assert!(!arguments.iter().any(|word| word == never), "{never}");
        }
    }

    #[test]
    fn the_environment_of_pi_holds_nothing_but_what_stands_here() {
        let names: Vec<&str> = environment(&start(&[Tool::Ls])).iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"PI_EXCLUDE_TOOLS"));
        for never in ["NODE_OPTIONS", "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_EXTRA_CA_CERTS"] {
            assert!(!names.contains(&never));
        }
    }
}
