//! What a stranger wrote is data: it stands in the rows that show it as such, and in no log line and no reason.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use testkit::forge::Fault;
use tracing_subscriber::EnvFilter;

use crate::world::{WIDGETS, World};

const CANARY: &str = "canary-8c1f";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_line_and_no_reason_carries_a_strangers_text() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("worker=trace,queue=trace,forges=trace"))
        .with_writer(move || writer.clone())
        .finish();
    // For the whole process: other tests' lines are caught too, and only this test knows the canary.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let mut world = World::new().await;
    let issue = world
        .forge
        .issue(WIDGETS, "sol", &format!("{CANARY} title"), &format!("{CANARY} body"));
    let texts = [
        format!("@pi triage {CANARY}"),
        format!("`@pi` {CANARY}"),
        format!("@pi stop {CANARY}"),
        CANARY.to_owned(),
    ];
    for who in ["sol", "mira", "pi-bot"] {
        for text in &texts {
            world.forge.comment(WIDGETS, issue, who, text);
            world.carry_and_decide().await;
        }
    }
    let changed = world.forge.comment(WIDGETS, issue, "mira", &texts[0]);
    world.forge.rewrite_comment_quietly(changed, "otherwise");
    world.carry_and_decide().await;
    world.forge.fault(Fault::page(502).at("/issues/comments/").times(1));
    world.forge.comment(WIDGETS, issue, "mira", &texts[0]);
    world.carry_and_decide().await;
    world.post().await;

    let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(
        said.contains("decided a delivery") && said.contains("a delivery waits"),
        "{said}"
    );
    assert!(!said.contains(CANARY), "{said}");
    let reasons = "SELECT count(*) FROM decisions WHERE detail LIKE '%canary%'";
    assert_eq!(world.count(reasons).await, 0);
    assert_eq!(
        world
            .count("SELECT count(*) FROM deliveries WHERE detail LIKE '%canary%'")
            .await,
        0
    );
}
