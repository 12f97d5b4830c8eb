//! Over HTTP, from the stub forge: what a forge answers, and what git makes of it.

use std::process::Command;

use forges::GitRemote;
use testkit::forge::{Access, Fault, File, Scope, StubForge};

use super::*;

struct World {
    forge: StubForge,
    repos: Repos,
    data: tempfile::TempDir,
    token: String,
}

impl World {
    fn new() -> World {
        World::with(GitSettings::default())
    }

    /// `lab/widgets` is private, and `pi-bot` may read it.
    fn with(settings: GitSettings) -> World {
        let forge = StubForge::lab();
        forge.make_private("lab/widgets");
        let token = forge.token("pi-bot", &Scope::BOT);
        let data = tempfile::tempdir().expect("a folder");
        let repos = Repos::new(data.path(), settings).expect("caches");
        World {
            forge,
            repos,
            data,
            token,
        }
    }

    fn remote(&self, path: &str) -> GitRemote {
        GitRemote {
            url: self.forge.clone_url(path),
            header: format!("Authorization: token {}", self.token).into(),
        }
    }

    async fn fetch(&self, path: &str) -> Result<Commit, GitError> {
        self.repos
            .fetch(&key(), &self.remote(path), &Want::Branch("main".to_owned()))
            .await
    }
}

fn key() -> RepoKey {
    RepoKey {
        forge: "codeberg".to_owned(),
        id: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_is_fetched_with_the_token_and_read_as_objects() {
    let world = World::new();

    let commit = world.fetch("lab/widgets").await.expect("it is fetched");

    assert_eq!(Some(&commit.id), world.forge.head("lab/widgets", "main").as_ref());
    let flow = world
        .repos
        .flow(&commit, "triage", None)
        .await
        .expect("git answers")
        .expect("it is there");
    assert_eq!(flow.source, FlowSource::Repository);
    let context = world.repos.context(&commit).await.expect("git answers");
    assert_eq!(context.agents.expect("it is there").0, "AGENTS.md");
    assert!(
        world
            .forge
            .calls()
            .iter()
            .all(|call| call.who.as_deref() == Some("pi-bot"))
    );
    let seen = Command::new("grep")
        .args(["-rl", &world.token])
        .arg(world.data.path())
        .output()
        .expect("grep");
    assert!(
        seen.stdout.is_empty(),
        "the token is on the disk: {}",
        String::from_utf8_lossy(&seen.stdout)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_here_is_not_fetched_again() {
    let world = World::new();
    let commit = world.fetch("lab/widgets").await.expect("it is fetched");
    world.forge.down();

    let again = world
        .repos
        .fetch(&key(), &world.remote("lab/widgets"), &Want::Commit(commit.id.clone()))
        .await;

    assert_eq!(again.expect("it is here"), commit);
    let dir = world.data.path().join("workspace");
    fs::create_dir(&dir).expect("a folder");
    world
        .repos
        .workspace(&commit, &dir)
        .await
        .expect("a workspace needs no forge");
    assert!(dir.join("widgets/turn.py").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_confirmed_head_of_a_pull_request_is_fetched() {
    let world = World::new();
    let head = world
        .forge
        .commit("lab/widgets", "pi/x", &[File::text("new", "text")], "Add");
    let number = world
        .forge
        .pull_request("lab/widgets", "mira", "pi/x", "A change", "It is better.");

    let commit = world
        .repos
        .fetch(&key(), &world.remote("lab/widgets"), &Want::PullRequest(number))
        .await;

    assert_eq!(commit.expect("it is fetched").id, head);
    let by_id = world
        .repos
        .fetch(&key(), &world.remote("lab/widgets"), &Want::Commit(head.clone()))
        .await;
    assert_eq!(by_id.expect("it is here").id, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_no_of_a_forge_has_its_own_variant() {
    let world = World::new();
    let nowhere = world.fetch("lab/nowhere").await;
    assert!(matches!(nowhere, Err(GitError::Missing)), "{nowhere:?}");

    world.forge.allow("lab/widgets", "pi-bot", Access::None);
    let hidden = world.fetch("lab/widgets").await;
    assert!(matches!(hidden, Err(GitError::Missing)), "{hidden:?}");
    world.forge.allow("lab/widgets", "pi-bot", Access::Read);

    world.forge.fault(Fault::forbidden().at("lab/widgets.git").times(1));
    let forbidden = world.fetch("lab/widgets").await;
    assert!(matches!(forbidden, Err(GitError::Forbidden)), "{forbidden:?}");

    for status in [500, 502, 503] {
        world.forge.fault(Fault::page(status).at("lab/widgets.git").times(1));
        let broken = world.fetch("lab/widgets").await;
        assert!(matches!(broken, Err(GitError::Unreachable(_))), "{status}: {broken:?}");
    }
    world.forge.fault(Fault::cut().at("lab/widgets.git").times(1));
    let cut = world.fetch("lab/widgets").await;
    assert!(matches!(cut, Err(GitError::Unreachable(_))), "{cut:?}");

    world.forge.down();
    let down = world.fetch("lab/widgets").await;
    assert!(matches!(down, Err(GitError::Unreachable(_))), "{down:?}");
    world.forge.up();
    world.fetch("lab/widgets").await.expect("everything is well again");

    world.forge.revoke_token(&world.token);
    let revoked = world.fetch("lab/widgets").await;
    assert!(matches!(revoked, Err(GitError::Unauthorized)), "{revoked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let world = World::new();
    world.forge.rename_repository("lab/widgets", "gadgets");
    world.forge.forget_calls();

    let moved = world.fetch("lab/widgets").await;

    assert!(matches!(moved, Err(GitError::Moved)), "{moved:?}");
    assert!(world.forge.calls().iter().all(|call| !call.path.contains("gadgets")));
    world
        .fetch("lab/gadgets")
        .await
        .expect("under its new name, into the same cache");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_hangs_is_given_up_and_its_git_is_gone() {
    let world = World::with(GitSettings {
        fetch_timeout: Duration::from_millis(500),
        ..GitSettings::default()
    });
    world.forge.fault(Fault::hang().at("lab/widgets.git"));

    let hung = world.fetch("lab/widgets").await;

    assert!(matches!(hung, Err(GitError::TimedOut(_))), "{hung:?}");
    let home = git::home(&world.data.path().join("git"));
    let gone = || {
        let places = fs::read_dir("/proc")
            .expect("proc")
            .filter_map(|entry| fs::read_link(entry.ok()?.path().join("cwd")).ok());
        !places.into_iter().any(|place| place == home)
    };
    let start = std::time::Instant::now();
    while !gone() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "git or its helper still runs"
        );
        tokio::task::yield_now().await;
    }
}
