//! The arrows between the crates are those of `docs/architecture.md`, and no others.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies below the root")
        .to_path_buf()
}

fn words_in_backticks(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The table of the page: crate → what it may import. `everything` is the set of all crates.
fn table() -> Arrows {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page is there");
    let rows: Vec<Vec<String>> = page
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    let all: BTreeSet<String> = rows.iter().flat_map(|row| words_in_backticks(&row[0])).collect();
    rows.iter()
        .map(|row| {
            let name = row[0].trim_matches('`').to_owned();
            let may = if row[2] == "everything" {
                all.clone()
            } else {
                words_in_backticks(&row[2])
            };
            (name, may)
        })
        .collect()
}

/// What the Cargo files say: crate → the workspace crates among its (normal and build) dependencies.
fn cargo() -> Arrows {
    let parse = |path: PathBuf| -> toml::Table {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.parse()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let workspace = parse(root().join("Cargo.toml"));
    let members: Vec<String> = workspace["workspace"]["members"]
        .as_array()
        .expect("members is a list")
        .iter()
        .map(|member| member.as_str().expect("a member is a path").to_owned())
        .collect();
    let manifests: Vec<toml::Table> = members
        .iter()
        .map(|member| parse(root().join(member).join("Cargo.toml")))
        .collect();
    let name_of = |manifest: &toml::Table| manifest["package"]["name"].as_str().expect("a name").to_owned();
    let names: BTreeSet<String> = manifests.iter().map(name_of).collect();
    manifests
        .iter()
        .map(|manifest| {
            let arrows = ["dependencies", "build-dependencies"]
                .iter()
                .filter_map(|section| manifest.get(*section)?.as_table())
                .flat_map(|table| table.keys().cloned())
                .filter(|name| names.contains(name))
                .collect();
            (name_of(manifest), arrows)
        })
        .collect()
}

#[test]
fn every_crate_stands_in_the_table_and_every_row_is_a_crate() {
    let (table, cargo) = (table(), cargo());
    assert_eq!(table.keys().collect::<Vec<_>>(), cargo.keys().collect::<Vec<_>>());
}

#[test]
fn no_crate_imports_what_its_row_does_not_name() {
    let table = table();
    let wrong: Vec<String> = cargo()
        .iter()
        .flat_map(|(name, arrows)| {
            let may = table.get(name).cloned().unwrap_or_default();
            arrows
                .difference(&may)
                .map(|arrow| format!("{name} → {arrow}"))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "not in docs/architecture.md: {wrong:?}");
}

#[test]
fn the_three_services_never_see_each_other() {
    let cargo = cargo();
    for service in ["admin", "worker", "receiver"] {
        for other in ["admin", "worker", "receiver"] {
            assert!(
                service == other || !cargo[service].contains(other),
                "{service} → {other}"
            );
        }
    }
}

#[test]
fn nothing_outside_the_tests_and_the_demo_stands_on_the_testkit() {
    let users: Vec<String> = cargo()
        .into_iter()
        .filter(|(name, arrows)| name != "stories" && arrows.contains("testkit"))
        .map(|x| x.0)
        .collect();
    assert!(users.is_empty(), "{users:?}");
}
