//! `docs/security.md` claims nothing without a test: each row names at least one, and each named test exists.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies below the root")
        .to_path_buf()
}

fn rows() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page is there");
    page.lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|---") && !line.starts_with("| claim"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let tests = cells
                .last()
                .expect("a cell")
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            (cells[0].to_owned(), tests)
        })
        .collect()
}

#[test]
fn every_claim_names_a_test_and_every_named_test_exists() {
    let mut wrong = Vec::new();
    for (claim, tests) in rows() {
        if tests.is_empty() {
            wrong.push(format!("no test for: {claim}"));
        }
        for test in tests {
            let Some((file, name)) = test.split_once("::") else {
                wrong.push(format!("`{test}` is not FILE::TEST"));
                continue;
            };
            match std::fs::read_to_string(root().join(file)) {
                Ok(text) if text.contains(&format!("fn {name}(")) => {}
                Ok(_) => wrong.push(format!("{file} has no test {name}")),
                Err(error) => wrong.push(format!("{file}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_law_has_its_row() {
    let laws: BTreeSet<u32> = rows()
        .iter()
        .filter_map(|(claim, _)| claim.strip_prefix("**Law ")?.split('.').next()?.parse().ok())
        .collect();
    assert_eq!(laws, (1..=13).collect(), "a law without a row in docs/security.md");
}

#[test]
fn every_page_that_a_page_links_to_is_there() {
    let mut missing = Vec::new();
    let pages = std::fs::read_dir(root().join("docs"))
        .expect("docs/")
        .filter_map(|entry| Some(entry.ok()?.path()));
    for page in pages
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain([root().join("README.md")])
    {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        let folder = page.parent().expect("a folder").to_path_buf();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                missing.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
