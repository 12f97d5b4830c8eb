//! What a job leaves in its folders for the host's git, and for whoever reads or removes them.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use queue::{JobState, Outcome};
use serde_json::json;
use stories::hand::{answers, trigger};
use stories::{IMAGE, PATIENCE, Plans, World, until};
use testkit::model::{Plan, Step};
use testkit::need;

/// A door that counts who knocks.
fn listener() -> (u16, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let knocks = Arc::new(AtomicUsize::new(0));
    let count = knocks.clone();
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, knocks)
}

/// Everything that is in a folder and below it, links not followed.
fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(below(&entry.path()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_job_plants_runs_on_the_host_or_is_contacted_and_the_worker_goes_on() {
    let (Some(_), Some(_)) = (need::docker(), need::image(IMAGE)) else {
        return;
    };
    let (port, knocks) = listener();
    // Where what runs on the host would leave its trace, and what a link that is followed would destroy.
    let host = tempfile::Builder::new()
        .prefix("pd-host-")
        .tempdir_in("/tmp")
        .expect("a folder");
    std::fs::set_permissions(host.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("it is ours");
    let precious = host.path().join("precious");
    std::fs::create_dir(&precious).expect("a folder");
    std::fs::write(precious.join("file"), "precious").expect("a file");
    let ran = host.path().join("ran");
    let (ran, precious, url) = (
        ran.display(),
        precious.display(),
        format!("http://127.0.0.1:{port}/x.git"),
    );
    let program = format!("printf '#!/bin/sh\\ntouch {ran}\\ncurl {url}\\n'");

    let commands = [
        // The workspace's own repository.
        format!(
            "cd /workspace && {program} > evil.sh && chmod 755 evil.sh && for k in core.fsmonitor core.sshCommand core.pager core.editor diff.external \
             uploadpack.packObjectsHook credential.helper gpg.program filter.x.clean filter.x.smudge filter.x.process; \
             do git config $k \"/workspace/evil.sh\"; done; git config core.hooksPath /workspace/hooks; \
             git config url.{url}.insteadOf https://; git config remote.origin.url {url}; git config include.path {precious}/file; \
             git config filter.lfs.process /workspace/evil.sh; git config extensions.partialClone origin; git config remote.origin.promisor true; \
             mkdir -p hooks .git/hooks; for h in pre-commit post-checkout post-commit pre-push reference-transaction post-index-change; \
             do cp evil.sh hooks/$h; cp evil.sh .git/hooks/$h; done; \
             echo '* filter=x diff=x merge=x' > .gitattributes; cp .gitattributes .git/info/attributes; echo done"
        ),
        // Other repositories, alternates, submodules.
        format!(
            "cd /workspace && mkdir -p nested .git/objects/info && echo 'gitdir: {precious}' > nested/.git; \
             echo {precious} > .git/objects/info/alternates; echo {url} > .git/objects/info/http-alternates; \
             printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = {url}\\n\\tupdate = !/workspace/evil.sh\\n' > .gitmodules; \
             printf '[submodule \"-u./evil.sh\"]\\n\\tpath = -c\\n\\turl = ext::/workspace/evil.sh\\n' >> .gitmodules; \
             mkdir -p bare/objects bare/refs; printf '[core]\\n\\tbare = true\\n\\tfsmonitor = /workspace/evil.sh\\n' > bare/config; \
             echo 'ref: refs/heads/main' > bare/HEAD; echo done"
        ),
        // Traps for whoever reads: links out, FIFOs, sparse and many-named files, in both folders.
        format!(
            "for d in /workspace /session; do cd $d; mkdir -p out; for n in out/link bundle out/bundle result.json; do ln -sfn {precious} $d/$n-link; done; \
             ln -sfn /etc/passwd out/passwd; ln -sfn / root; ln -sfn $d loop; mkfifo out/fifo out/work.bundle pipe; \
             truncate -s 400M sparse; truncate -s 100M out/sparse; : > \"$(printf 'new\\nline')\"; : > \"$(printf '\\377\\376')\"; : > '-rf'; : > '--output=x'; \
             mkdir -p deep; cd deep; for i in $(seq 1 30); do mkdir d && cd d; done; cd $d; chmod 000 deep; mkdir locked; touch locked/x; chmod 000 locked; done; echo done"
        ),
        // The folder for what comes out is no folder, and a link where it was.
        format!("rm -rf /session/out; ln -s {precious} /session/out; ls -la /session | head -30; echo done"),
    ];
    let steps = commands.clone();
    let plan = Plan::by(move |conversation| {
        let at = conversation.assistant_messages();
        if conversation.first_message().contains("@next") {
            return match at {
                0 => Step::calls("forge_comment", json!({ "body": "The next job is done." })),
                _ => Step::says("That is all."),
            };
        }
        match steps.get(at) {
            Some(command) => Step::calls("bash", json!({ "command": command, "timeout": 60 })),
            None if at == steps.len() => Step::calls("forge_comment", json!({ "body": "I have planted." })),
            None => Step::says("That is all."),
        }
    });
    let triggers = vec![
        trigger("@plant", &[]),
        trigger(
            "@next",
            &[("excludeTools", json!(["bash", "powershell", "edit", "write"]))],
        ),
    ];
    let world = World::with(Plans {
        triggers,
        model: plan,
        ..Plans::default()
    })
    .await;

    world.forge.comment("lab/widgets", 1, "mira", "@plant");
    let first = world.jobs(1).await[0].job;
    let first = world.finished(first).await;
    world.forge.comment("lab/widgets", 1, "mira", "@next");
    let second = world.jobs(2).await[1].job;
    let second = world.finished(second).await;

    for (name, answer) in answers(&world.model, |conversation| {
        conversation.first_message().contains("@plant")
    }) {
        assert!(
            name != "bash" || answer.contains("done"),
            "the attack was not carried out: {answer}"
        );
    }
    for run in [&first, &second] {
        let completed = matches!(
            run.row.state,
            JobState::Finished {
                outcome: Outcome::Completed,
                ..
            }
        );
        assert!(completed, "{:?}: {}", run.row.state, run.detail);
    }
    let comments = world
        .forge
        .wait_for_comments_by("lab/widgets", 1, "pi-bot", 2, PATIENCE)
        .await;
    assert!(comments[1].body.contains("The next job is done."));
    assert!(!host.path().join("ran").exists(), "something ran on the host");
    assert_eq!(knocks.load(Ordering::SeqCst), 0, "something was contacted");
    let kept = std::fs::read_to_string(host.path().join("precious/file"));
    assert_eq!(kept.ok().as_deref(), Some("precious"), "a link was followed");
    assert_eq!(below(host.path()).len(), 2, "nothing was written through a link");
    let jobs = world.settings().data_dir.join("jobs");
    until("the jobs' folders are gone", async || {
        below(&jobs).is_empty().then_some(())
    })
    .await;
}
