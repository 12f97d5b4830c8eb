//! The pages of the stub forge, and git through it.

use crate::common::{Receiver, client, post, read};
use serde_json::json;
use std::process::{Command, Output, Stdio};
use testkit::forge::{File, Scope, StubForge};

const WIDGETS: &str = "lab/widgets";

async fn page(forge: &StubForge, path: &str) -> (u16, String) {
    let Ok(answer) = client().get(format!("{}{path}", forge.url())).send().await else {
        return (0, String::new());
    };
    (answer.status().as_u16(), answer.text().await.unwrap_or_default())
}

#[tokio::test]
async fn a_thread_shows_who_wrote_what_and_how_people_reacted() {
    let forge = StubForge::lab();
    let comment = forge.comment(WIDGETS, 1, "mira", "@pi triage **please**");
    let bot = forge.token("pi-bot", &Scope::BOT);
    let path = format!("/repos/lab/widgets/issues/comments/{comment}/reactions");
    post(&forge, &path, &bot, &json!({ "content": "eyes" })).await;

    let (status, html) = page(&forge, "/lab/widgets/issues/1").await;

    assert_eq!(status, 200);
    for expected in [
        "A turn to the right goes left",
        "<strong>please</strong>",
        "👀 pi-bot",
        "right 90",
        "value=sol",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(page(&forge, "/").await.1.contains("lab/widgets"));
    assert!(page(&forge, "/lab/widgets/issues").await.1.contains("1 comment<"));
    assert_eq!(page(&forge, "/lab/widgets/issues/7").await.0, 404);
}

#[tokio::test]
async fn nothing_that_people_wrote_is_markup() {
    let forge = StubForge::lab();
    let evil =
        "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](http://x.example/b.png)";
    forge.issue(WIDGETS, "sol", "<script>alert(2)</script>\"'", evil);
    forge.comment(WIDGETS, 2, "sol", evil);

    let answer = client()
        .get(format!("{}/lab/widgets/issues/2", forge.url()))
        .send()
        .await
        .expect("it answers");
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .expect("text")
        .to_owned();
    let html = answer.text().await.expect("a page");

    assert!(
        !html.contains("<script>alert") && !html.contains("onerror") && !html.contains("javascript:"),
        "{html}"
    );
    assert!(html.contains("&lt;script&gt;alert(2)&lt;/script&gt;&quot;&#39;"));
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("img-src"),
        "no image is loaded"
    );
    assert!(!page(&forge, "/lab/widgets/issues").await.1.contains("<script>alert"));
}

#[tokio::test]
async fn the_form_writes_as_one_of_the_people_and_tells_the_hooks() {
    let (forge, receiver) = (StubForge::lab(), Receiver::start().await);
    forge.hook(WIDGETS, &receiver.url, "secret");
    let form = async |login: &str, body: &str, site: &str| {
        let form = format!("as={login}&body={body}");
        let request = client()
            .post(format!("{}/lab/widgets/issues/1/comment", forge.url()))
            .body(form);
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", site);
        request.send().await.expect("it answers").status().as_u16()
    };

    assert_eq!(form("ravi", "%40pi+triage%0D%0Anow", "same-origin").await, 303);
    assert_eq!(form("ravi", "+", "same-origin").await, 422);
    assert_eq!(
        form("pi-bot", "I+am+the+bot", "same-origin").await,
        422,
        "nobody speaks for the bot"
    );
    assert_eq!(form("ravi", "from+elsewhere", "cross-site").await, 403);

    forge.delivered().await;
    assert_eq!(read(&receiver.one().1)["comment"]["body"], "@pi triage\nnow");
    let elsewhere = client()
        .get(format!("{}/", forge.url()))
        .header("host", "evil.example")
        .send()
        .await;
    assert_eq!(
        elsewhere.expect("it answers").status(),
        403,
        "a name that was bent to this machine"
    );
    let by_program = client().post(format!("{}/demo/comment", forge.url()));
    let by_program = by_program
        .json(&json!({ "as": "mira", "issue": 1, "body": "@pi triage" }))
        .send()
        .await;
    let made: serde_json::Value = by_program.expect("it answers").json().await.expect("JSON");
    assert_eq!(
        made["url"],
        format!("{}/lab/widgets/issues/1#issuecomment-{}", forge.url(), made["id"])
    );
}

#[tokio::test]
async fn the_thread_reads_well_in_a_browser() {
    let Some(browser) = testkit::need::browser() else {
        return;
    };
    let forge = StubForge::lab();
    let options = json!({ "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1000,1200"] });
    let new = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
    let drive = async |path: String, body: serde_json::Value| -> serde_json::Value {
        let answer = client()
            .post(format!("{}{path}", browser.url()))
            .json(&body)
            .send()
            .await
            .expect("it answers");
        answer.json::<serde_json::Value>().await.expect("JSON")["value"].clone()
    };
    let session = drive("/session".to_owned(), new).await["sessionId"]
        .as_str()
        .expect("a session")
        .to_owned();
    let go = json!({ "url": format!("{}/lab/widgets/issues/1", forge.url()) });
    drive(format!("/session/{session}/url"), go).await;

    forge.comment(WIDGETS, 1, "olga", "this appears by itself");

    let script = json!({ "script": "return document.getElementById('thread').innerText", "args": [] });
    for _ in 0..100 {
        let text = drive(format!("/session/{session}/execute/sync"), script.clone()).await;
        if text
            .as_str()
            .is_some_and(|text| text.contains("this appears by itself"))
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the comment did not appear in the open page");
}

fn git(forge: &StubForge, token: Option<&str>, arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
    let mut git = Command::new("git");
    git.current_dir(dir.path())
        .args(arguments)
        .env("HOME", dir.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    if let Some(token) = token {
        git.env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("http.{}/.extraHeader", forge.url()));
        git.env("GIT_CONFIG_VALUE_0", format!("Authorization: token {token}"));
    }
    git.output()
        .unwrap_or_else(|error| panic!("git cannot be started: {error}"))
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn git_clones_what_is_public_and_a_private_repository_with_a_token_only() {
    let forge = StubForge::lab();
    let (bot, sol) = (forge.token("pi-bot", &Scope::BOT), forge.token("sol", &Scope::BOT));
    let url = forge.clone_url(WIDGETS);
    let list = |token: Option<&str>| git(&forge, token, &["ls-remote", &url, "refs/heads/main"]);
    let head = forge.head(WIDGETS, "main").expect("main");

    assert!(text(&list(None)).contains(&head));
    let clone = git(&forge, None, &["clone", "-q", "--depth", "1", &url, "here"]);
    assert!(clone.status.success(), "{}", text(&clone));

    forge.make_private(WIDGETS);
    assert!(text(&list(Some(&bot))).contains(&head));
    let refused = list(None);
    assert_eq!(refused.status.code(), Some(128));
    assert!(text(&refused).contains("could not read Username"), "{}", text(&refused));
    assert_eq!(list(Some("wrong")).status.code(), Some(128));
    assert_eq!(list(Some(&sol)).status.code(), Some(128));
    let nothing = git(&forge, None, &["ls-remote", &forge.clone_url("lab/none")]);
    assert!(
        text(&nothing).contains("could not read Username"),
        "what is not there looks the same"
    );
}

#[test]
fn git_fetches_by_commit_shallow_filtered_and_the_head_of_a_pull_request() {
    let forge = StubForge::lab();
    let first = forge.head(WIDGETS, "main").expect("main");
    let head = forge.commit(
        WIDGETS,
        "fix",
        &[File::text("NEWS", "new"), File::link("link", "NEWS")],
        "Fix",
    );
    let number = forge.pull_request(WIDGETS, "mira", "fix", "Fix", "");
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_str().expect("text");
    let url = forge.clone_url(WIDGETS);
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["-C", dir].iter().chain(arguments).copied().collect();
        let output = git(&forge, None, &all);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        text(&output).trim().to_owned()
    };
    run(&["init", "-q", "--bare"]);

    run(&["fetch", "-q", "--depth", "1", &url, &first]);
    assert_eq!(run(&["rev-parse", "FETCH_HEAD"]), first);
    run(&["fetch", "-q", "--depth", "1", &url, &format!("refs/pull/{number}/head")]);
    assert_eq!(run(&["rev-parse", "FETCH_HEAD"]), head);
    assert!(run(&["ls-tree", "FETCH_HEAD", "link"]).starts_with("120000"));
    run(&["fetch", "-q", "--filter=blob:none", &url, "refs/heads/main"]);
}

#[test]
fn git_pushes_with_write_access_only_and_follows_no_rename_by_itself() {
    let forge = StubForge::lab();
    let (bot, ravi) = (forge.token("pi-bot", &Scope::BOT), forge.token("ravi", &Scope::BOT));
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("here");
    let dir = dir.to_str().expect("text");
    let url = forge.clone_url(WIDGETS);
    assert!(git(&forge, None, &["clone", "-q", &url, dir]).status.success());
    let push = |token: &str| {
        git(
            &forge,
            Some(token),
            &["-C", dir, "push", "-q", &url, "HEAD:refs/heads/pi/x"],
        )
    };

    assert!(!push(&ravi).status.success());
    assert_eq!(forge.head(WIDGETS, "pi/x"), None);
    let pushed = push(&bot);
    assert!(pushed.status.success(), "{}", text(&pushed));
    assert_eq!(forge.head(WIDGETS, "pi/x"), forge.head(WIDGETS, "main"));

    forge.rename_repository(WIDGETS, "gadgets");
    let strict = git(&forge, None, &["-c", "http.followRedirects=false", "ls-remote", &url]);
    assert!(!strict.status.success());
    assert!(
        git(&forge, None, &["-c", "http.followRedirects=true", "ls-remote", &url])
            .status
            .success()
    );
}
