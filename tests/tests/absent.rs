//! What must not be there: code that merges, approves or force-pushes; SQL outside the queue; clocks and variables outside their place.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies below the root")
        .to_path_buf()
}

/// Every file with that ending below the folders, without those that only tests read.
fn sources(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)
            .expect("a folder of the tree")
            .filter_map(Result::ok)
        {
            let path = entry.path();
            let name = path
                .strip_prefix(root())
                .expect("below the root")
                .to_string_lossy()
                .into_owned();
            let for_tests = name.contains("/tests/") || name.ends_with("tests.rs") || name.contains("node_modules");
            if path.is_dir() && !name.starts_with("target") && !name.starts_with(".git") {
                open.push(path);
            } else if !for_tests && endings.iter().any(|ending| name.ends_with(ending)) {
                let text = std::fs::read_to_string(&path).expect("a source file is text");
                // A module of tests at the end of a file is no part of the program.
                let text = text.split("\n#[cfg(test)]\n").next().unwrap_or("").to_owned();
                found.push((name, text));
            }
        }
    }
    assert!(found.len() > 20 || folders.len() < 3, "the sources were not found");
    found
}

const PROGRAM: &[&str] = &[
    "cli/src",
    "admin/src",
    "worker/src",
    "worker/gateway/src",
    "receiver/src",
    "queue/src",
    "forges/src",
    "triggers/src",
    "job-image",
];

fn lines_with<'a>(files: &'a [(String, String)], wrong: impl Fn(&str) -> bool + 'a) -> Vec<String> {
    files
        .iter()
        .flat_map(|(name, text)| {
            let code = text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim_start().starts_with("//"));
            code.filter(|(_, line)| wrong(line))
                .map(move |(at, line)| format!("{name}:{}: {}", at + 1, line.trim()))
        })
        .collect()
}

#[test]
fn no_code_merges_approves_or_force_pushes() {
    let files = sources(PROGRAM, &[".rs", ".js"]);
    let found = lines_with(&files, |line| {
        let line = line.to_ascii_lowercase();
        [
            "/merge",
            "\"merge\"",
            "approved\"",
            "\"approve\"",
            "force-with-lease",
            "\"push\"",
        ]
        .iter()
        .any(|word| line.contains(word))
    });
    // Words that are read from a forge or shown to a person name these things; calls do not.
    let calls: Vec<_> = found
        .into_iter()
        .filter(|line| {
            !["forges/src/forgejo/read", "texts", "triggers/"]
                .iter()
                .any(|place| line.contains(place))
        })
        .collect();
    assert!(calls.is_empty(), "{calls:#?}");
}

#[test]
fn sql_stands_in_the_queue_alone() {
    let others: Vec<&str> = PROGRAM
        .iter()
        .copied()
        .filter(|folder| *folder != "queue/src")
        .collect();
    let files = sources(&others, &[".rs"]);
    let found = lines_with(&files, |line| {
        line.contains("sqlx::query") || line.contains("INSERT INTO") || line.contains("SELECT * FROM")
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_log_macro_prints_a_whole_payload() {
    let files = sources(PROGRAM, &[".rs"]);
    let found = lines_with(&files, |line| {
        let logs = ["trace!(", "debug!(", "info!(", "warn!(", "error!("]
            .iter()
            .any(|name| line.contains(&format!("tracing::{name}")));
        logs && ["body", "?headers", "payload", "secret", "token"].iter().any(|word| {
            line.contains(&format!("%{word}"))
                || line.contains(&format!("?{word}"))
                || line.contains(&format!("{word} ="))
        })
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for (name, text) in sources(&["."], &["Cargo.toml"]) {
        let member = name.matches('/').count() >= 1 && !name.starts_with("target");
        assert!(
            !member || text.contains("[lints]\nworkspace = true"),
            "{name} does not take the workspace's lints"
        );
    }
}
