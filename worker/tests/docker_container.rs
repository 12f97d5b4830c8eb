//! The container that Docker makes is the one that was asked for, or it never starts. Needs Docker and busybox-static.

#![expect(clippy::expect_used, reason = "a fixture fails by panicking")]

mod docker;
mod tiny;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicI64, Ordering},
};

use bollard::container::LogOutput;
use docker::engine;
use futures_util::StreamExt;
use tiny::TinyImage;
use worker::{
    container::{Ask, Engine, EngineError, Folders, Owner, SeenImage},
    logs::{Line, Reader},
    settings::{ContainerSettings, LogLimits},
};

/// A box for one script: folders under a temporary one, labels of a deployment of its own.
struct Box_ {
    ask: Ask,
    _root: tempfile::TempDir,
}

impl Drop for Box_ {
    fn drop(&mut self) {
        let name = self.ask.owner.name();
        let _ = Command::new("docker")
            .args(["rm", "-f", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// A box whose runner is that script.
fn boxed(image: &SeenImage, script: &str) -> Box_ {
    static JOB: AtomicI64 = AtomicI64::new(1);
    let job = JOB.fetch_add(1, Ordering::Relaxed);
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = |name: &str, mode: u32| -> PathBuf {
        let path = root.path().join(name);
        fs::create_dir(&path).expect("it is new");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path
    };
    let folders = Folders {
        job: folder("job", 0o755),
        workspace: folder("workspace", 0o777),
        session: folder("session", 0o777),
        sockets: folder("sockets", 0o711),
    };
    fs::write(folders.job.join("run.sh"), script).expect("it is ours");
    let owner = Owner {
        deployment: format!("test-{}-{job}", std::process::id()),
        worker: "test".into(),
        job,
        attempt: 1,
    };
    let ask = Ask {
        image: image.clone(),
        owner,
        excluded: vec!["bash".into(), "powershell".into()],
        folders,
        settings: ContainerSettings::default(),
        log_size: 16 << 20,
    };
    Box_ { ask, _root: root }
}

async fn seen(engine: &Engine, image: &TinyImage) -> SeenImage {
    engine
        .image(&image.tag)
        .await
        .expect("docker answers")
        .expect("it was just imported")
}

async fn read(engine: &Engine, container: &str) -> Vec<Line> {
    let mut reader = Reader::new(LogLimits {
        lines_per_second: 100_000,
        ..LogLimits::default()
    });
    let pieces: Vec<LogOutput> = engine
        .logs(container)
        .map(|piece| piece.expect("a log"))
        .collect()
        .await;
    let mut lines: Vec<Line> = pieces.iter().flat_map(|piece| reader.take(piece)).collect();
    lines.extend(reader.end());
    lines
}

async fn run(engine: &Engine, image: &TinyImage, script: &str) -> (i64, Vec<String>) {
    let seen = seen(engine, image).await;
    let boxed = boxed(&seen, script);
    let container = engine.create(&boxed.ask).await.expect("it is as asked");
    engine.start(&container).await.expect("it starts");
    let exit = engine.wait(&container).await.expect("it ends");
    let lines = read(engine, &container)
        .await
        .into_iter()
        .map(|line| line.text)
        .collect();
    engine.remove(&container).await.expect("it goes");
    (exit.code, lines)
}

#[tokio::test]
async fn the_box_is_locked_as_seen_from_inside() {
    let Some(engine) = engine() else { return };
    let Some(image) = TinyImage::with("locked", &[]) else {
        return;
    };
    let script = r#"
        echo "id $(id -u):$(id -g)"
        grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
        touch /touched 2>/dev/null && echo "root is writable"
        touch /job/touched 2>/dev/null && echo "job is writable"
        touch /run/pi-dispatch/touched 2>/dev/null && echo "sockets are writable"
        touch /workspace/a /session/a /tmp/a /home/job/a /run/pi-agent/a && echo "the five are writable"
        ls /sys/class/net
        ls /var/run/docker.sock 2>/dev/null
        ls /dev/shm 2>/dev/null
        echo "exclude $PI_EXCLUDE_TOOLS"
        cat /proc/1/environ | tr '\0' '\n' | while read line; do echo "env $line"; done
        exit 7
    "#;

    let (code, lines) = run(&engine, &image, script).await;

    assert_eq!(code, 7);
    let is = |line: &str| lines.iter().any(|one| one == line);
    for expected in [
        "id 10001:10001",
        "CapEff:0000000000000000",
        "CapBnd:0000000000000000",
        "NoNewPrivs:1",
        "Seccomp:2",
        "the five are writable",
        "exclude bash,powershell",
    ] {
        assert!(is(expected), "`{expected}` is missing in {lines:#?}");
    }
    assert!(
        !lines
            .iter()
            .any(|line| line.ends_with("is writable") || line.contains("eth0")),
        "{lines:#?}"
    );
    assert!(!lines.iter().any(|line| line.contains("docker.sock")), "{lines:#?}");
    let mut env: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("env ")).collect();
    env.sort_unstable();
    assert_eq!(
        env.iter()
            .map(|line| line.split('=').next().unwrap())
            .collect::<Vec<_>>(),
        ["HOME", "HOSTNAME", "LANG", "PATH", "PI_EXCLUDE_TOOLS", "TZ"]
    );
}

#[tokio::test]
async fn what_an_image_brings_with_it_keeps_the_container_from_starting() {
    let Some(engine) = engine() else { return };
    for (name, change) in [
        ("env", "ENV CANARY=1"),
        ("volume", "VOLUME /data"),
        ("ports", "EXPOSE 80"),
    ] {
        let Some(image) = TinyImage::with(name, &[change]) else {
            return;
        };
        let seen = seen(&engine, &image).await;
        let boxed = boxed(&seen, "echo it runs");

        let made = engine.create(&boxed.ask).await;

        assert!(matches!(&made, Err(EngineError::Differs(_))), "{change}: {made:?}");
        let left = engine.inspect(&boxed.ask.owner.name()).await;
        assert!(
            matches!(left, Err(EngineError::NoSuchContainer)),
            "{change}: it was not removed"
        );
    }
}

#[tokio::test]
async fn an_images_own_entry_point_command_user_and_folder_have_no_say() {
    let Some(engine) = engine() else { return };
    let changes = [
        "ENTRYPOINT [\"/bin/false\"]",
        "CMD [\"evil\"]",
        "USER 0",
        "WORKDIR /tmp",
    ];
    let Some(image) = TinyImage::with("own", &changes) else {
        return;
    };

    let (code, lines) = run(&engine, &image, "echo \"$# $(id -u) $PWD\"").await;

    assert_eq!((code, lines), (0, vec!["0 10001 /workspace".to_owned()]));
}

#[tokio::test]
async fn a_real_log_reads_the_same_again_long_lines_included() {
    let Some(engine) = engine() else { return };
    let Some(image) = TinyImage::with("log", &[]) else {
        return;
    };
    let seen = seen(&engine, &image).await;
    let script = r#"
        for n in $(seq 1 40); do echo "out $n"; echo "err $n" >&2; done
        head -c 50000 /dev/zero | tr '\0' x; echo
        echo -n "without an end"
    "#;
    let boxed = boxed(&seen, script);
    let container = engine.create(&boxed.ask).await.unwrap();
    engine.start(&container).await.unwrap();
    engine.wait(&container).await.unwrap();

    let (first, second) = (read(&engine, &container).await, read(&engine, &container).await);
    engine.remove(&container).await.unwrap();

    assert_eq!(first, second);
    assert_eq!(first.len(), 82);
    assert!(first.iter().any(|line| line.text.len() == 50_000));
    assert!(first.iter().zip(1..).all(|(line, seq)| line.seq == seq));
}

#[tokio::test]
async fn a_container_that_will_not_end_is_killed_and_seen_gone() {
    let Some(engine) = engine() else { return };
    let Some(image) = TinyImage::with("kill", &[]) else {
        return;
    };
    let seen = seen(&engine, &image).await;
    let boxed = boxed(&seen, "trap '' TERM; while true; do sleep 1; done");
    let container = engine.create(&boxed.ask).await.unwrap();
    let pid = engine.start(&container).await.unwrap();
    assert!(pid > 0);
    assert_eq!(
        engine.ours(&boxed.ask.owner.deployment).await.unwrap().len(),
        1,
        "it is found by its labels"
    );

    engine.kill(&container).await.unwrap();
    assert_eq!(engine.wait(&container).await.unwrap().code, 137);
    engine.remove(&container).await.unwrap();

    assert!(matches!(
        engine.inspect(&container).await,
        Err(EngineError::NoSuchContainer)
    ));
    engine.kill(&container).await.expect("what is gone is dead");
    engine.remove(&container).await.expect("what is gone is gone");
}

#[tokio::test]
async fn a_memory_hog_a_fork_bomb_and_a_large_file_are_contained() {
    let Some(engine) = engine() else { return };
    let Some(image) = TinyImage::with("hog", &[]) else {
        return;
    };
    let seen = seen(&engine, &image).await;
    let script = r#"
        dd if=/dev/zero of=/workspace/big bs=1M count=20 2>/dev/null; echo "big $(wc -c < /workspace/big)"
        n=0; while [ $n -lt 100 ]; do sleep 30 & n=$((n+1)); done 2>/dev/null
        echo "never"
    "#;
    let mut boxed = boxed(&seen, script);
    boxed.ask.settings.file_size = 1 << 20;
    boxed.ask.settings.pids = 20;
    let container = engine.create(&boxed.ask).await.unwrap();
    engine.start(&container).await.unwrap();
    let exit = engine.wait(&container).await.unwrap();
    let lines: Vec<String> = read(&engine, &container)
        .await
        .into_iter()
        .map(|line| line.text)
        .collect();
    engine.remove(&container).await.unwrap();

    assert!(lines.contains(&"big 1048576".to_owned()), "{lines:?}");
    assert_ne!(exit.code, 0, "the shell could not fork: {lines:?}");
}

#[tokio::test]
async fn folders_change_hands_through_a_short_container_and_no_link_is_followed() {
    let Some(engine) = engine() else { return };
    let Some(image) = TinyImage::with("hands", &[]) else {
        return;
    };
    let (outside, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("mine"), "").unwrap();
    fs::create_dir(given.path().join("a")).unwrap();
    fs::write(given.path().join("a/file"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), given.path().join("link")).unwrap();
    let owner = |path: &std::path::Path| std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(path).unwrap());
    let before = owner(&outside.path().join("mine"));

    engine.give(&image.tag, &[given.path()], 12345).await.unwrap();

    assert_eq!(owner(&given.path().join("a/file")), 12345);
    assert_eq!(owner(&given.path().join("link")), 12345);
    assert_eq!(owner(&outside.path().join("mine")), before);
    assert_eq!(owner(outside.path()), before);

    // One whose worker was killed is found by its label once it is old.
    let made = std::process::Command::new("docker")
        .args(["create", "--label", "pi-dispatch.hands=", &image.tag, "/bin/chown"])
        .output()
        .unwrap();
    let left = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    engine.remove_old_hands("1h").await.unwrap();
    engine.inspect(&left).await.expect("it is young");
    // Docker counts in whole seconds.
    let begin = std::time::Instant::now();
    while engine.inspect(&left).await.is_ok() {
        engine.remove_old_hands("0s").await.unwrap();
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "it is old");
    }
}
