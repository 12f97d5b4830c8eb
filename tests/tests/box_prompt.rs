//! What reaches the model: everything that the worker passed, and no file that it did not pass.

use std::collections::BTreeMap;

use contract::Tool;
use queue::{JobState, Outcome};
use serde_json::json;
use stories::hand::{FOUR, Image, names, trigger};
use stories::{IMAGE, Plans, World};
use testkit::forge::File;
use testkit::model::{Plan, Step};
use testkit::need;

/// Stands in every file that nobody passed.
const PLANTED: &str = "planted-marker-6d21";

/// Files of the repository from which a pi that discovers things would take text.
const NOT_TAKEN: [&str; 17] = [
    ".pi/SYSTEM.md",
    ".pi/settings.json",
    ".pi/prompts/planted.md",
    ".pi/skills/other/SKILL.md",
    ".pi/skills/triage.md",
    ".pi/extensions/planted.js",
    ".pi/agent/AGENTS.md",
    ".pi/themes/planted.json",
    ".pi/persona.md",
    ".agents/skills/other/SKILL.md",
    ".claude/skills/other/SKILL.md",
    ".claude/CLAUDE.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
    "CLAUDE.md",
    "widgets/AGENTS.md",
    "widgets/CLAUDE.md",
];

/// Above the workspace, in and above the home, and where pi keeps its own: places in the image.
const ABOVE: [&str; 15] = [
    "AGENTS.md",
    "CLAUDE.md",
    "AGENTS.override.md",
    ".pi/SYSTEM.md",
    ".pi/APPEND_SYSTEM.md",
    ".pi/settings.json",
    ".agents/skills/other/SKILL.md",
    "home/AGENTS.md",
    "home/job/AGENTS.md",
    "home/job/.pi/agent/AGENTS.md",
    "home/job/.pi/agent/SYSTEM.md",
    "home/job/.pi/agent/skills/other/SKILL.md",
    "home/job/.agents/skills/other/SKILL.md",
    "run/pi-agent/AGENTS.md",
    "root/.pi/agent/AGENTS.md",
];

/// A text that holds the marker and is of the shape that the place wants.
fn planted(path: &str) -> String {
    if path.ends_with(".json") {
        json!({ "systemPrompt": PLANTED, "name": PLANTED, "skills": [PLANTED], "appendSystemPrompt": PLANTED })
            .to_string()
    } else if path.ends_with(".js") {
        format!("export default (pi) => pi.on('before_agent_start', () => ({{ systemPrompt: '{PLANTED}' }}));")
    } else {
        format!("---\nname: other\ndescription: {PLANTED}\n---\n{PLANTED}\n")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_worker_passed_reaches_the_model_and_nothing_that_was_planted_does() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let files: Vec<(String, String)> = ABOVE
        .iter()
        .map(|path| (format!("top/{path}"), planted(path)))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let image = Image::derived("planted", &["COPY top/ /", "USER 10001:10001"], &files);

    let sets: [(&str, Vec<Tool>); 4] = [
        ("@none", Vec::new()),
        ("@four", FOUR.to_vec()),
        ("@noread", vec![Tool::Read]),
        ("@alleight", Tool::ALL.to_vec()),
    ];
    let triggers = sets
        .iter()
        .map(|(phrase, excluded)| {
            // One of the two at a time: the trigger language wants it so.
            let wish = if excluded.len() == 1 || excluded.is_empty() {
                ("task", json!("passed-task"))
            } else {
                ("instructions", json!("passed-instructions"))
            };
            let mut run = vec![("image", json!(image.tag)), wish];
            if !excluded.is_empty() {
                run.push(("excludeTools", json!(names(excluded))));
            }
            trigger(phrase, &run)
        })
        .collect();
    let overlay = tempfile::tempdir().expect("a folder");
    std::fs::write(overlay.path().join("persona.md"), "passed-persona").expect("a file");
    let path = overlay.path().to_path_buf();
    let plans = Plans {
        triggers,
        model: Plan::by(|conversation| match conversation.assistant_messages() {
            0 => Step::calls("forge_comment", json!({ "body": "Hello." })),
            _ => Step::says("That is all."),
        }),
        settings: Box::new(move |settings| settings.overlay = Some(path)),
        ..Plans::default()
    };
    let mut world = World::without_worker(plans).await;
    let mut files: Vec<File> = NOT_TAKEN.iter().map(|path| File::text(path, planted(path))).collect();
    files.push(File::text("AGENTS.md", "passed-agents-file"));
    files.push(File::text(".pi/APPEND_SYSTEM.md", "passed-append-system"));
    files.push(File::text(
        ".pi/skills/triage/SKILL.md",
        format!("---\nname: triage\ndescription: {PLANTED}\n---\npassed-flow\n"),
    ));
    world.forge.commit("lab/widgets", "main", &files, "Plant");
    world.start_worker();
    for (phrase, _) in &sets {
        world
            .forge
            .comment("lab/widgets", 1, "mira", &format!("{phrase} passed-comment"));
    }

    for job in world.jobs(sets.len()).await {
        let run = world.finished(job.job).await;
        let completed = matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                ..
            }
        );
        assert!(completed, "{:?}: {}", run.row.state, run.detail);
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for request in world.model.requests() {
        let body = request.body.to_string();
        assert!(!body.contains(PLANTED), "a planted text reached the model: {body}");
        for own in [
            "/opt/pi/",
            "pi-coding-agent",
            "docs/extensions",
            "pi.dev",
            "Pi documentation",
        ] {
            assert!(!body.contains(own), "pi's own prompt reached the model: {own}");
        }
        let conversation = request.conversation.as_ref().expect("a conversation");
        let (phrase, excluded) = sets
            .iter()
            .find(|(phrase, _)| conversation.first_message().contains(phrase))
            .expect("the comment reached the model");
        let task = excluded.len() == 1 || excluded.is_empty();
        let wish = if task { "passed-task" } else { "passed-instructions" };
        *seen.entry(phrase).or_default() += 1;
        for passed in [
            "passed-persona",
            "passed-agents-file",
            "passed-append-system",
            "passed-flow",
            wish,
        ] {
            assert!(
                conversation.system.contains(passed),
                "{phrase}: {passed} is not in the prompt"
            );
        }
        assert!(conversation.first_message().contains("passed-comment"), "{phrase}");
        assert!(
            !conversation.system.contains("passed-comment"),
            "what somebody wrote is in the first message alone"
        );

        // The prompt's list is the request's.
        let section = conversation.system.split("\n- `").skip(1);
        let listed: Vec<&str> = section
            .filter_map(|line| line.split_once("`: ").map(|(name, _)| name))
            .collect();
        assert_eq!(request.tools(), listed, "{phrase}");
        for tool in excluded {
            assert!(!request.tools().iter().any(|name| name == tool.name()), "{phrase}");
        }
    }
    assert_eq!(seen.len(), sets.len());
    assert!(seen.values().all(|count| *count == 2), "{seen:?}");
}
