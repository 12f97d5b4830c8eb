//! The triggers file is read live, and a bad edit never takes a good file out of force.

use std::os::unix::fs::PermissionsExt;

use worker::trigger_file::{Live, TriggerFileError};

use crate::world::{JOBS_USER, TRIAGE, World, file_of, word};

const OTHER: &str = r#"{ "id": "other", "on": { "type": "comment", "phrase": "@qi" }, "run": { "kind": "forgejo", "flow": "triage" } }"#;

#[tokio::test]
async fn a_good_edit_is_in_force_at_the_next_look() {
    let mut world = World::new().await;
    std::fs::write(world.file(), file_of(&[OTHER])).unwrap();
    assert_eq!(word(&world.comment("mira", "@qi triage").await), "phrase-absent");
    assert!(world.triggers.look(&world.queue, &world.worker()).await.unwrap());
    assert_eq!(word(&world.comment("mira", "@qi triage").await), "fired");
}

#[tokio::test]
async fn a_bad_edit_is_shown_and_the_last_good_file_stays_in_force() {
    let mut world = World::new().await;
    let before = world.triggers.current();
    std::fs::write(world.file(), file_of(&[&TRIAGE.replace("excludeTools", "excludeTool")])).unwrap();
    assert!(world.triggers.look(&world.queue, &world.worker()).await.unwrap());
    assert!(
        !world.triggers.look(&world.queue, &world.worker()).await.unwrap(),
        "said once"
    );

    assert_eq!(world.triggers.current().hash, before.hash);
    let (sha256, faults): (String, serde_json::Value) = sqlx::query_as("SELECT sha256, faults FROM triggers_in_force")
        .fetch_one(world.queue.pool())
        .await
        .unwrap();
    assert_eq!(sha256, before.hash);
    assert!(
        faults[0]["message"].as_str().unwrap().contains("excludeTool"),
        "{faults}"
    );
    assert_eq!(word(&world.comment("mira", "@pi triage").await), "fired");

    std::fs::write(world.file(), file_of(&[TRIAGE])).unwrap();
    world.triggers.look(&world.queue, &world.worker()).await.unwrap();
    assert!(world.triggers.faults().is_empty(), "the edit was taken back");
}

#[tokio::test]
async fn a_file_that_others_may_write_is_not_taken() {
    let world = World::new().await;
    std::fs::write(world.file(), file_of(&[OTHER])).unwrap();
    std::fs::set_permissions(world.file(), std::fs::Permissions::from_mode(0o666)).unwrap();
    world.triggers.look(&world.queue, &world.worker()).await.unwrap();
    assert!(world.triggers.faults()[0].message.contains("may be written by others"));
    assert_eq!(world.triggers.current().file.triggers()[0].run.exclude_tools.len(), 4);
    assert!(matches!(
        Live::open(&world.file(), JOBS_USER),
        Err(TriggerFileError::Untrusted(_))
    ));
}

#[tokio::test]
async fn a_file_that_went_away_leaves_the_last_one_in_force() {
    let world = World::new().await;
    std::fs::remove_file(world.file()).unwrap();
    world.triggers.look(&world.queue, &world.worker()).await.unwrap();
    assert_eq!(world.triggers.faults().len(), 1);
    assert_eq!(world.triggers.current().file.triggers().len(), 1);
}

#[test]
fn a_bad_file_refuses_to_start_and_names_every_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("triggers.json");
    let bad = TRIAGE.replace("\"bash\"", "\"Bash\"").replace("\"flow\"", "\"flov\"");
    std::fs::write(&path, file_of(&[&bad])).unwrap();
    let refusal = Live::open(&path, JOBS_USER).unwrap_err();
    let TriggerFileError::Faulty { faults, .. } = &refusal else {
        panic!("{refusal}")
    };
    assert!(faults.len() >= 2, "{refusal}");
    assert!(refusal.to_string().contains("Bash"), "{refusal}");
}
