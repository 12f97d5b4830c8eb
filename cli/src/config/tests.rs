use super::*;

fn read(text: &str) -> Result<Config, String> {
    read_with(text, &Environment::default())
}

fn read_with(text: &str, environment: &Environment) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pi-dispatch.toml");
    std::fs::write(&file, text).expect("it can be written");
    load(&file, environment).map_err(|faults| {
        faults
            .to_string()
            .replace(&format!("{}", folder.path().display()), "DIR")
    })
}

const FORGE: &str = r#"
[[forges]]
name = "codeberg"
kind = "forgejo"
url = "https://forge.example"
repositories = ["lab/*"]
token = { file = "secrets/token" }
webhook_secrets = [{ file = "secrets/hook" }]
"#;

#[test]
fn an_absent_file_gives_the_defaults() {
    let config = load(
        Path::new("/nonexistent-folder-of-a-test/pi-dispatch.toml"),
        &Environment::default(),
    );
    let config = config.expect("every key has a default or may be absent");
    assert_eq!(
        (
            config.worker.slots,
            config.receiver.max_body,
            config.limits.run_cost_micros
        ),
        (3, 25 << 20, 5_000_000)
    );
    assert!(config.file.is_none());
}

#[test]
fn all_faults_are_told_at_once_with_line_and_nearest_key() {
    let faults = read("[worker]\nslot = 3\nimage = 7\n[reciever]\nlisten = \"x\"\n[limits.run]\ncost_usd = 5\n")
        .expect_err("faults");
    assert!(
        faults.contains("DIR/pi-dispatch.toml:2: `worker.slot`: unknown key; did you mean `slots`?"),
        "{faults}"
    );
    assert!(
        faults.contains(":3: `worker.image`: found integer; allowed is text in quotes"),
        "{faults}"
    );
    assert!(
        faults.contains(":4: `reciever`: unknown key; did you mean `receiver`?"),
        "{faults}"
    );
    assert!(faults.contains(":7: `limits.run.cost_usd`"), "{faults}");
}

#[test]
fn a_secret_in_the_file_is_refused_and_not_repeated() {
    let faults = read(&FORGE.replace("{ file = \"secrets/token\" }", "\"hunter2\"")).expect_err("refused");
    assert!(
        faults.contains("never stands in this file") && !faults.contains("hunter2"),
        "{faults}"
    );
}

#[test]
fn a_variable_wins_over_the_file_and_is_shown_as_such() {
    let environment = Environment::from([
        ("PI_DISPATCH_WORKER_SLOTS", "7"),
        ("PI_DISPATCH_FORGES_CODEBERG_URL", "https://other.example"),
    ]);
    let config = read_with(FORGE, &environment).expect("it is fine");
    assert_eq!(config.worker.slots, 7);
    assert_eq!(config.forges[0].url.as_str(), "https://other.example/");
    assert!(
        config
            .shown
            .iter()
            .any(|shown| shown.place == "worker.slots" && shown.from == "variable PI_DISPATCH_WORKER_SLOTS")
    );
}

#[test]
fn a_variable_that_names_no_key_is_a_fault() {
    let faults = read_with("", &Environment::from([("PI_DISPATCH_WORKER_SLOT", "7")])).expect_err("refused");
    assert!(faults.contains("variable PI_DISPATCH_WORKER_SLOT"), "{faults}");
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pi-dispatch.toml");
    std::fs::write(&file, FORGE).expect("it can be written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o664)).expect("its mode can be set");
    let faults = load(&file, &Environment::default()).expect_err("refused").to_string();
    assert!(faults.contains("may be written by others"), "{faults}");
}

#[test]
fn a_forge_without_repositories_is_refused() {
    let faults = read(&FORGE.replace("repositories = [\"lab/*\"]\n", "")).expect_err("refused");
    assert!(faults.contains("`forges.0.repositories`: it is missing"), "{faults}");
}

#[test]
fn the_example_of_the_design_loads() {
    let config = read(include_str!("../../../docs/pi-dispatch.example.toml")).expect("the example is right");
    assert_eq!(config.forges[0].name, "codeberg");
    assert_eq!(config.providers["local"].models.len(), 1);
}
