//! The road: a Forgejo comment becomes an answered job, with the real pi in Docker.

use queue::{JobState, Outcome, Reason, Role};
use stories::{IMAGE, PATIENCE, World};
use testkit::need;

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_becomes_one_answer_and_no_excluded_tool_was_ever_there() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let world = World::start().await;

    let asked = world.forge.comment("lab/widgets", 1, "mira", "@pi triage");
    world
        .forge
        .wait_for_comments_by("lab/widgets", 1, "pi-bot", 1, PATIENCE)
        .await;
    let job = world.jobs(1).await[0].job;
    let run = world.finished(job).await;
    world.forge.delivered().await;

    // The forge's side: one comment, its text, its footer, the eyes on what was asked.
    let comments = world.forge.comments_by("lab/widgets", 1, "pi-bot");
    assert_eq!(comments.len(), 1, "{comments:#?}");
    let text = &comments[0].body;
    assert!(text.contains("README.md"), "it says what it read: {text}");
    assert!(
        text.contains("without the tools `bash`, `powershell`, `edit`, `write`"),
        "the footer names what was taken away: {text}"
    );
    assert!(
        text.contains(&format!("https://dispatch.example/runs/{job}")),
        "the footer links the run: {text}"
    );
    assert!(
        text.contains("scripted-1") && text.contains(" USD"),
        "the footer names model and cost: {text}"
    );
    assert_eq!(world.forge.reactions(asked), [("pi-bot".to_owned(), "eyes".to_owned())]);

    // The model's side: what it was offered, in every request.
    let requests = world.model.requests();
    assert!(requests.len() >= 4, "the story has more turns than {}", requests.len());
    for request in &requests {
        assert_eq!(request.tools(), ["read", "forge_comment"]);
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {}", stories::MODEL_KEY).as_str())
        );
    }
    let told: Vec<_> = requests
        .iter()
        .filter_map(|r| r.conversation.as_ref())
        .flat_map(|c| c.calls())
        .collect();
    let bash = told
        .iter()
        .find(|(call, _)| call.name == "bash")
        .expect("the story tries bash");
    assert!(bash.1.is_some_and(|answer| answer.contains("not found")), "{bash:?}");

    // The record: outcome, proof at both ends, equal to what was asked.
    assert!(
        matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                reason: Reason::Done,
                ..
            }
        ),
        "{:?}",
        run.row.state
    );
    let phases: Vec<&str> = run
        .tools_excluded
        .iter()
        .filter_map(|line| line["phase"].as_str())
        .collect();
    assert_eq!(phases, ["start", "end"]);
    for line in &run.tools_excluded {
        assert_eq!(
            line["excluded"],
            serde_json::json!(["bash", "powershell", "edit", "write"])
        );
        assert_eq!(line["active"], serde_json::json!(["read", "forge_comment"]));
        assert_eq!(
            line["registered"],
            serde_json::json!(["find", "forge_comment", "grep", "ls", "read"])
        );
    }
    assert!(
        run.row.cost.0 > 0 && run.spend.requests == i64::try_from(requests.len()).expect("few"),
        "{:?}",
        run.spend
    );

    // What we posted came back as a delivery and started nothing.
    world.all_decided().await;
    assert_eq!(world.jobs(1).await.len(), 1);

    // The panel's side.
    let panel = world.signed_in(Role::Viewer).await;
    let page = panel
        .get(format!("{}/runs/{job}", world.panel))
        .send()
        .await
        .expect("a page")
        .text()
        .await
        .expect("text");
    for words in [
        "completed",
        "absent from the session at its start",
        "absent from the session at its end",
        "tools_excluded",
    ] {
        assert!(page.contains(words), "`{words}` is not on the page: {page}");
    }
}
