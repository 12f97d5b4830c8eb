//! With real git, from a folder (`file://`); what a forge answers over HTTP is tried with the stub forge in `tests/`.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use forges::GitRemote;
use tempfile::TempDir;

use super::*;

/// A repository that stands for the forge's, and a worker's data folder.
struct Place {
    dir: TempDir,
    repos: Repos,
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "olga")
        .env("GIT_AUTHOR_EMAIL", "olga@example.org")
        .env("GIT_COMMITTER_NAME", "olga")
        .env("GIT_COMMITTER_EMAIL", "olga@example.org")
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

impl Place {
    fn new() -> Place {
        Place::with(GitSettings::default())
    }

    fn with(settings: GitSettings) -> Place {
        let dir = tempfile::tempdir().expect("a folder");
        let repos = Repos::with_local_remotes(&dir.path().join("data"), settings).expect("caches");
        let place = Place { dir, repos };
        fs::create_dir(place.origin()).expect("a folder");
        git(&place.origin(), &["init", "-q", "-b", "main"]);
        git(&place.origin(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        place
    }

    fn origin(&self) -> PathBuf {
        self.dir.path().join("origin")
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.origin().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
        self
    }

    fn commit(&self) -> String {
        git(&self.origin(), &["add", "-A"]);
        git(&self.origin(), &["commit", "-q", "-m", "x", "--allow-empty"]);
        git(&self.origin(), &["rev-parse", "HEAD"])
    }

    fn remote(&self) -> GitRemote {
        GitRemote {
            url: format!("file://{}", self.origin().display()),
            header: "Authorization: token 0123456789abcdef0123456789abcdef01234567".into(),
        }
    }

    async fn fetch(&self, want: Want) -> Result<Commit, GitError> {
        self.repos.fetch(&key(), &self.remote(), &want).await
    }

    async fn main(&self) -> Commit {
        self.fetch(Want::Branch("main".to_owned()))
            .await
            .expect("it is fetched")
    }

    async fn flow(&self, name: &str, overlay: Option<&Path>) -> Option<Flow> {
        self.repos
            .flow(&self.main().await, name, overlay)
            .await
            .expect("git answers")
    }
}

fn key() -> RepoKey {
    RepoKey {
        forge: "codeberg".to_owned(),
        id: 42,
    }
}

#[tokio::test]
async fn a_branch_is_fetched_and_each_new_head_is_found() {
    let place = Place::new();
    place.write("a", "one");
    let first = place.commit();
    assert_eq!(place.main().await.id, first);
    place.write("a", "two");
    let second = place.commit();

    let commit = place.main().await;

    assert_eq!(commit.id, second);
    let old = place.fetch(Want::Commit(first.clone())).await.expect("it is kept");
    let blob = place.repos.blob(&old, "a", 10).await.expect("git answers");
    assert_eq!(
        blob,
        Some(Blob::File {
            bytes: b"one".to_vec(),
            executable: false
        })
    );
}

#[tokio::test]
async fn a_commit_and_a_pull_requests_head_are_fetched_by_their_names() {
    let place = Place::new();
    place.write("a", "one");
    let first = place.commit();
    place.write("a", "two").commit();
    git(&place.origin(), &["update-ref", "refs/pull/3/head", &first]);

    assert_eq!(place.fetch(Want::Commit(first.clone())).await.expect("by id").id, first);
    assert_eq!(place.fetch(Want::PullRequest(3)).await.expect("by number").id, first);
}

#[tokio::test]
async fn what_is_not_there_is_told_from_what_cannot_be_reached() {
    let place = Place::new();
    place.write("a", "one").commit();

    assert!(matches!(
        place.fetch(Want::Branch("other".to_owned())).await,
        Err(GitError::NoSuchRef)
    ));
    let unknown = Want::Commit("0123456789012345678901234567890123456789".to_owned());
    assert!(matches!(place.fetch(unknown).await, Err(GitError::NoSuchRef)));
    let gone = GitRemote {
        url: "file:///nonexistent/x.git".to_owned(),
        ..place.remote()
    };
    let result = place.repos.fetch(&key(), &gone, &Want::Branch("main".to_owned())).await;
    assert!(matches!(result, Err(GitError::Missing)), "{result:?}");
    let closed = GitRemote {
        url: "http://127.0.0.1:9/x.git".to_owned(),
        ..place.remote()
    };
    let result = place
        .repos
        .fetch(&key(), &closed, &Want::Branch("main".to_owned()))
        .await;
    assert!(matches!(result, Err(GitError::Unreachable(_))), "{result:?}");
}

#[tokio::test]
async fn no_name_becomes_an_option_or_another_refspec() {
    let place = Place::new();
    place.commit();
    for name in [
        "",
        "-x",
        "--upload-pack=id",
        "a:b",
        "a b",
        "*",
        "a..b",
        "a/.b",
        "x.lock",
        "a//b",
        "/a",
        "a/",
        "@{u}",
        "a\n",
        "^a",
        "+a:b",
    ] {
        let result = place.fetch(Want::Branch(name.to_owned())).await;
        assert!(matches!(result, Err(GitError::Refused(_))), "{name:?}: {result:?}");
    }
    for id in ["main", "HEAD", "0123", "--all"] {
        assert!(matches!(
            place.fetch(Want::Commit(id.to_owned())).await,
            Err(GitError::Refused(_))
        ));
    }
    assert!(matches!(
        place.fetch(Want::PullRequest(-1)).await,
        Err(GitError::Refused(_))
    ));
    let key = RepoKey {
        forge: "../x".to_owned(),
        id: 1,
    };
    let result = place
        .repos
        .fetch(&key, &place.remote(), &Want::Branch("main".to_owned()))
        .await;
    assert!(matches!(result, Err(GitError::Refused(_))));
    let production = Repos::new(&place.dir.path().join("other"), GitSettings::default()).expect("caches");
    let result = production
        .fetch(&self::key(), &place.remote(), &Want::Branch("main".to_owned()))
        .await;
    assert!(
        matches!(result, Err(GitError::Refused(_))),
        "folders are for tests: {result:?}"
    );
}

#[tokio::test]
async fn the_token_and_the_configuration_of_the_host_stay_out_of_the_cache() {
    let place = Place::new();
    place.write("a", "one").commit();
    place.main().await;

    let output = Command::new("grep")
        .args(["-r", "0123456789abcdef"])
        .arg(place.dir.path().join("data"))
        .output()
        .expect("grep");
    assert!(output.stdout.is_empty());
    let cache = place.dir.path().join("data/git/caches/codeberg/42.git");
    let config = fs::read_to_string(cache.join("config")).expect("a config");
    assert!(
        config.starts_with("[core]") && config.matches('[').count() == 1,
        "{config}"
    );
    assert!(!cache.join("hooks").exists() && !cache.join("FETCH_HEAD").exists());
    let mode = fs::metadata(place.dir.path().join("data/git"))
        .expect("a folder")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn links_submodules_and_folders_are_not_read_and_caps_hold() {
    let place = Place::new();
    place.write("file", "hello").write("folder/file", "x");
    std::os::unix::fs::symlink("/etc/passwd", place.origin().join("link")).expect("a link");
    std::os::unix::fs::symlink("folder", place.origin().join("linked")).expect("a link");
    let head = place.commit();
    git(
        &place.origin(),
        &["update-index", "--add", "--cacheinfo", &format!("160000,{head},module")],
    );
    git(&place.origin(), &["commit", "-q", "-m", "module"]);
    let commit = place.main().await;

    let blob = async |path: &str, max| place.repos.blob(&commit, path, max).await.expect("git answers");

    assert_eq!(
        blob("file", 5).await,
        Some(Blob::File {
            bytes: b"hello".to_vec(),
            executable: false
        })
    );
    assert_eq!(blob("file", 4).await, Some(Blob::TooLarge(5)));
    for path in ["link", "module", "folder", "linked"] {
        assert_eq!(blob(path, 100).await, Some(Blob::NotAFile), "{path}");
    }
    for path in ["linked/file", "nothing", "*", ":(glob)**", "file/x"] {
        assert_eq!(blob(path, 100).await, None, "{path}");
    }
}

#[tokio::test]
async fn a_listing_is_bounded_and_shows_odd_names() {
    let place = Place::new();
    place
        .write("a", "")
        .write("b c", "")
        .write("ü/x", "")
        .write("z\tq", "")
        .commit();
    let commit = place.main().await;

    let all = place
        .repos
        .listing(&commit, ListingBounds { files: 10, bytes: 1000 })
        .await
        .expect("git answers");
    let two = place
        .repos
        .listing(&commit, ListingBounds { files: 2, bytes: 1000 })
        .await
        .expect("git answers");
    let short = place
        .repos
        .listing(&commit, ListingBounds { files: 10, bytes: 3 })
        .await
        .expect("git answers");

    assert_eq!(
        all,
        Listing {
            names: ["a", "b c", "z\tq", "ü/x"].map(str::to_owned).to_vec(),
            cut: false
        }
    );
    assert_eq!(
        two,
        Listing {
            names: ["a", "b c"].map(str::to_owned).to_vec(),
            cut: true
        }
    );
    assert_eq!(
        short,
        Listing {
            names: vec!["a".to_owned()],
            cut: true
        }
    );
}

#[tokio::test]
async fn a_flow_is_the_repositorys_own_and_else_the_overlays() {
    let place = Place::new();
    let overlay = place.dir.path().join("overlay");
    for name in ["triage", "review"] {
        fs::create_dir_all(overlay.join("skills").join(name)).expect("folders");
        fs::write(overlay.join("skills").join(name).join("SKILL.md"), "the operator's").expect("a file");
    }
    place
        .write(
            ".pi/skills/triage/SKILL.md",
            "---\nname: triage\nallowed-tools: bash\n---\n\nthe repository's\n",
        )
        .write(".pi/skills/triage/scripts/look.sh", "#!/bin/sh\n")
        .commit();

    let triage = place.flow("triage", Some(&overlay)).await.expect("it is there");
    assert_eq!(
        (triage.source.clone(), triage.shadows_overlay),
        (FlowSource::Repository, true)
    );
    assert_eq!(triage.text, "the repository's");
    assert!(triage.says_allowed_tools);
    let paths: Vec<_> = triage
        .files
        .iter()
        .map(|file| file.path.display().to_string())
        .collect();
    assert_eq!(paths, ["SKILL.md", "scripts/look.sh"]);

    let review = place.flow("review", Some(&overlay)).await.expect("it is there");
    assert_eq!(
        (review.source, review.shadows_overlay, review.text.as_str()),
        (FlowSource::Overlay, false, "the operator's")
    );
    assert_eq!(place.flow("tidy", Some(&overlay)).await, None);
    assert_eq!(place.flow("review", None).await, None);
    let bad = place.repos.flow(&place.main().await, "../triage", None).await;
    assert!(matches!(bad, Err(GitError::Refused(_))));
}

#[tokio::test]
async fn links_in_a_skill_are_left_out_and_said() {
    let place = Place::new();
    let overlay = place.dir.path().join("overlay");
    fs::create_dir_all(overlay.join("skills/other")).expect("folders");
    fs::write(overlay.join("skills/other/SKILL.md"), "text").expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", overlay.join("skills/other/secret")).expect("a link");
    place
        .write(".pi/skills/triage/SKILL.md", "text")
        .write(".pi/skills/triage/large", &"x".repeat(600_000));
    std::os::unix::fs::symlink("/etc/passwd", place.origin().join(".pi/skills/triage/secret")).expect("a link");
    fs::create_dir_all(place.origin().join(".pi/skills/linked")).expect("a folder");
    std::os::unix::fs::symlink("../triage/SKILL.md", place.origin().join(".pi/skills/linked/SKILL.md"))
        .expect("a link");
    place.commit();

    let triage = place.flow("triage", Some(&overlay)).await.expect("it is there");
    assert_eq!(triage.files.len(), 1);
    assert_eq!(triage.left_out.len(), 2, "{:?}", triage.left_out);
    let other = place.flow("other", Some(&overlay)).await.expect("it is there");
    assert_eq!((other.files.len(), other.left_out.len()), (1, 1));
    assert_eq!(place.flow("linked", Some(&overlay)).await, None);
}

#[tokio::test]
async fn the_context_is_the_first_of_its_files_at_the_root() {
    let place = Place::new();
    place
        .write("CLAUDE.md", "third")
        .write("AGENTS.md", "second")
        .write("sub/AGENTS.override.md", "not at the root")
        .write(".pi/APPEND_SYSTEM.md", "appended")
        .write(".pi/SYSTEM.md", "not taken")
        .write(".pi/settings.json", "{}")
        .commit();
    let context = place.repos.context(&place.main().await).await.expect("git answers");
    assert_eq!(context.agents, Some(("AGENTS.md".to_owned(), "second".to_owned())));
    assert_eq!(context.append_system.as_deref(), Some("appended"));

    std::os::unix::fs::symlink("/etc/passwd", place.origin().join("AGENTS.override.md")).expect("a link");
    fs::write(place.origin().join(".pi/APPEND_SYSTEM.md"), [0xff, 0xfe]).expect("a file");
    place.commit();
    let context = place.repos.context(&place.main().await).await.expect("git answers");
    assert_eq!((context.agents, context.append_system), (None, None));
    assert_eq!(context.left_out.len(), 2);
}

#[tokio::test]
async fn a_workspace_is_the_commit_without_remote_credential_or_hook() {
    let place = Place::new();
    place.write("a", "one").commit();
    place.write("src/b", "two").write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(place.origin().join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    place
        .write(".gitattributes", "*.bin filter=evil\n")
        .write("x.bin", "raw");
    let head = place.commit();
    let commit = place.main().await;
    let dir = place.dir.path().join("workspace");
    fs::create_dir(&dir).expect("a folder");

    place.repos.workspace(&commit, &dir).await.expect("it is made");

    assert_eq!(fs::read_to_string(dir.join("src/b")).expect("a file"), "two");
    assert_eq!(
        fs::metadata(dir.join("run.sh")).expect("a file").permissions().mode() & 0o100,
        0o100
    );
    assert_eq!(git(&dir, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&dir, &["status", "--porcelain"]), "");
    assert_eq!(git(&dir, &["remote"]), "");
    assert_eq!(git(&dir, &["log", "--oneline"]).lines().count(), 1);
    assert_eq!(git(&dir, &["rev-parse", "--is-shallow-repository"]), "true");
    assert!(
        !dir.join(".git/hooks").exists() && !dir.join(".git/FETCH_HEAD").exists() && !dir.join(".git/logs").exists()
    );
    let output = Command::new("grep")
        .args(["-rl", "-e", "0123456789abcdef", "-e", "42.git"])
        .arg(&dir)
        .output()
        .expect("grep");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn a_commit_with_a_hostile_tree_is_not_taken() {
    let place = Place::new();
    place.write("a", "one").commit();
    let blob = git(&place.origin(), &["rev-parse", "HEAD:a"]);
    for name in [".git", "..", ".GIT"] {
        let listing = place.dir.path().join("tree");
        fs::write(&listing, format!("100644 blob {blob}\t{name}\n")).expect("a file");
        let tree = git(
            &place.origin(),
            &["-c", "core.protectNTFS=false", "mktree", "--missing", "--batch"],
        );
        let _ = tree;
        let made = Command::new("sh")
            .arg("-c")
            .arg(format!("git mktree < '{}'", listing.display()))
            .current_dir(place.origin())
            .output()
            .expect("git runs");
        let tree = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        assert!(!tree.is_empty(), "{}", String::from_utf8_lossy(&made.stderr));
        let commit = git(&place.origin(), &["commit-tree", "-m", "x", &tree]);
        git(&place.origin(), &["update-ref", "refs/heads/evil", &commit]);

        let result = place.fetch(Want::Branch("evil".to_owned())).await;

        assert!(result.is_err(), "{name}: {result:?}");
    }
    assert!(
        place.fetch(Want::Branch("main".to_owned())).await.is_ok(),
        "the cache is not stuck"
    );
}

#[tokio::test]
async fn more_than_the_host_takes_is_too_large() {
    let place = Place::with(GitSettings {
        max_files: 3,
        max_tree: 1000,
        ..GitSettings::default()
    });
    for name in ["a", "b", "c", "d"] {
        place.write(name, "x");
    }
    place.commit();
    let many = place.main().await;
    let dir = place.dir.path().join("workspace");
    fs::create_dir(&dir).expect("a folder");
    assert!(matches!(
        place.repos.workspace(&many, &dir).await,
        Err(GitError::TooLarge(_))
    ));
    for name in ["b", "c", "d"] {
        fs::remove_file(place.origin().join(name)).expect("it was there");
    }
    place.write("a", &"x".repeat(2000)).commit();
    let large = place.main().await;
    assert!(matches!(
        place.repos.workspace(&large, &dir).await,
        Err(GitError::TooLarge(_))
    ));

    let small = Place::with(GitSettings {
        max_cache: 200_000,
        ..GitSettings::default()
    });
    let noise: String = (0..40_000_u32)
        .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761)))
        .collect();
    small.write("a", &noise).commit();
    let result = small.fetch(Want::Branch("main".to_owned())).await;
    assert!(matches!(result, Err(GitError::TooLarge(_))), "{result:?}");
    small.write("a", "small").commit();
    git(&small.origin(), &["checkout", "-q", "--orphan", "fresh"]);
    small.commit();
    assert!(
        small.fetch(Want::Branch("fresh".to_owned())).await.is_ok(),
        "the cache began anew"
    );
}

#[tokio::test]
async fn what_an_ended_git_left_does_not_stop_the_next() {
    let place = Place::new();
    place.write("a", "one").commit();
    place.main().await;
    let cache = place.dir.path().join("data/git/caches/codeberg/42.git");
    for leftover in ["shallow.lock", "refs/fetched/now.lock", "objects/pack/tmp_pack_x"] {
        fs::create_dir_all(cache.join(leftover).parent().expect("a parent")).expect("folders");
        fs::write(cache.join(leftover), "").expect("a file");
    }
    place.write("a", "two");
    let head = place.commit();

    assert_eq!(place.main().await.id, head);
    assert!(!cache.join("objects/pack/tmp_pack_x").exists());
}

#[tokio::test]
async fn fetches_of_one_repository_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    place.write("a", "one");
    let head = place.commit();

    let commits = futures_util::future::join_all((0..8).map(|_| place.main())).await;

    assert!(commits.iter().all(|commit| commit.id == head));
}

#[tokio::test]
async fn a_forge_that_never_answers_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = Place::with(GitSettings {
        fetch_timeout: Duration::from_millis(300),
        ..GitSettings::default()
    });
    let url = format!("http://{}/x.git", silent.local_addr().expect("an address"));
    let remote = GitRemote { url, ..place.remote() };

    let result = place
        .repos
        .fetch(&key(), &remote, &Want::Branch("main".to_owned()))
        .await;

    assert!(matches!(result, Err(GitError::TimedOut(_))), "{result:?}");
}
