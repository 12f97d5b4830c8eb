//! The panel over a real PostgreSQL and a real socket: who may see and do what, what strangers' text becomes, what a page says.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use queue::{Connect, Queue, Role};
use reqwest::{Client, StatusCode, redirect};
use testkit::postgres::{Scratch, TestDatabase};
use tokio::net::TcpListener;

struct Panel {
    url: String,
    queue: Queue,
    _database: TestDatabase,
}

fn client() -> Client {
    Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client")
}

impl Panel {
    async fn open() -> Self {
        let database = Scratch::shared().await.database().await;
        let queue = Queue::connect(&Connect::new(database.url.clone(), "panel-test"))
            .await
            .expect("it answers");
        queue.migrate().await.expect("a fresh database takes the migrations");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let admin = admin::Admin::new(queue.clone(), admin::Settings::default());
        tokio::spawn(async move { admin.serve(listener, std::future::pending()).await });
        Self {
            url,
            queue,
            _database: database,
        }
    }

    async fn user(&self, name: &str, role: Role) -> String {
        let password = admin::password::random();
        let hash = admin::password::hash(password.clone()).await.expect("it hashes");
        self.queue
            .put_user(name, &hash, role, "test")
            .await
            .expect("a user can be added");
        password
    }

    async fn sign_in(&self, name: &str, password: &str) -> reqwest::Response {
        let form = [("name", name), ("password", password), ("back", "/runs")];
        client()
            .post(format!("{}/sign-in", self.url))
            .form(&form)
            .send()
            .await
            .expect("it answers")
    }

    async fn session(&self, role: Role) -> String {
        let password = self.user("somebody", role).await;
        let answer = self.sign_in("somebody", &password).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()["set-cookie"].to_str().expect("text").to_owned();
        cookie.split(';').next().expect("a name and a value").to_owned()
    }

    async fn get(&self, path: &str, cookie: &str) -> (StatusCode, String) {
        let answer = client()
            .get(format!("{}{path}", self.url))
            .header("cookie", cookie)
            .send()
            .await
            .expect("it answers");
        (answer.status(), answer.text().await.expect("text"))
    }

    async fn post(&self, path: &str, cookie: &str) -> StatusCode {
        client()
            .post(format!("{}{path}", self.url))
            .header("cookie", cookie)
            .send()
            .await
            .expect("it answers")
            .status()
    }
}

#[tokio::test]
async fn nobody_sees_anything_without_signing_in() {
    let panel = Panel::open().await;
    for page in [
        "/",
        "/runs",
        "/runs/1",
        "/triggers",
        "/triggers/x",
        "/deliveries",
        "/deliveries/1",
        "/workers",
    ] {
        let answer = client()
            .get(format!("{}{page}", panel.url))
            .send()
            .await
            .expect("it answers");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{page}");
        assert!(
            answer.headers()["location"]
                .to_str()
                .expect("text")
                .starts_with("/sign-in"),
            "{page}"
        );
    }
    for twin in [
        "/api/overview",
        "/api/runs",
        "/api/runs/1",
        "/api/runs/1/log",
        "/api/triggers",
        "/api/deliveries",
        "/runs/1/live",
    ] {
        let answer = client()
            .get(format!("{}{twin}", panel.url))
            .send()
            .await
            .expect("it answers");
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{twin}");
    }
}

#[tokio::test]
async fn a_wrong_password_gives_no_session_and_a_guesser_has_to_wait() {
    let panel = Panel::open().await;
    let password = panel.user("olga", Role::Operator).await;
    for _ in 0..5 {
        let answer = panel.sign_in("olga", "wrong").await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        assert!(answer.headers().get("set-cookie").is_none());
    }
    let late = panel.sign_in("olga", &password).await;
    assert_eq!(late.status(), StatusCode::FORBIDDEN);
    assert!(late.text().await.expect("text").contains("failed too often"));
}

#[tokio::test]
async fn a_session_is_a_cookie_that_no_script_reads_and_it_ends_at_sign_out() {
    let panel = Panel::open().await;
    let password = panel.user("olga", Role::Viewer).await;
    let answer = panel.sign_in("olga", &password).await;
    assert_eq!(answer.headers()["location"], "/runs");
    let cookie = answer.headers()["set-cookie"].to_str().expect("text").to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let session = cookie.split(';').next().expect("a name and a value").to_owned();
    assert_eq!(panel.get("/", &session).await.0, StatusCode::OK);
    assert_eq!(panel.post("/sign-out", &session).await, StatusCode::SEE_OTHER);
    assert_eq!(panel.get("/", &session).await.0, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_viewer_looks_and_an_operator_acts() {
    let panel = Panel::open().await;
    let viewer = panel.session(Role::Viewer).await;
    for action in ["/pause", "/resume", "/runs/1/stop", "/deliveries/1/replay"] {
        assert_eq!(panel.post(action, &viewer).await, StatusCode::FORBIDDEN, "{action}");
    }
    assert!(panel.queue.paused().await.expect("it answers").is_none());
    assert!(!panel.get("/", &viewer).await.1.contains("Pause all"));

    let operator = panel.session(Role::Operator).await;
    assert_eq!(panel.post("/pause", &operator).await, StatusCode::SEE_OTHER);
    assert_eq!(
        panel
            .queue
            .paused()
            .await
            .expect("it answers")
            .expect("it is paused")
            .who,
        "somebody"
    );
    assert!(panel.get("/", &operator).await.1.contains("no job starts"));
    assert_eq!(panel.post("/resume", &operator).await, StatusCode::SEE_OTHER);
    assert!(panel.queue.paused().await.expect("it answers").is_none());
}

#[tokio::test]
async fn another_site_cannot_act_through_the_browser_of_an_operator() {
    let panel = Panel::open().await;
    let operator = panel.session(Role::Operator).await;
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let answer = client()
            .post(format!("{}/pause", panel.url))
            .header("cookie", &operator)
            .header(name, value)
            .send()
            .await;
        assert_eq!(answer.expect("it answers").status(), StatusCode::FORBIDDEN, "{name}");
    }
    assert!(panel.queue.paused().await.expect("it answers").is_none());
}

#[tokio::test]
async fn every_answer_carries_the_strict_policy_and_runs_no_inline_script() {
    let panel = Panel::open().await;
    let session = panel.session(Role::Operator).await;
    for page in [
        "/",
        "/runs",
        "/triggers",
        "/deliveries",
        "/workers",
        "/sign-in",
        "/nowhere",
    ] {
        let answer = client()
            .get(format!("{}{page}", panel.url))
            .header("cookie", &session)
            .send()
            .await
            .expect("it answers");
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{page}: {policy}"
        );
        assert_eq!(answer.headers()["x-frame-options"], "DENY", "{page}");
        let text = answer.text().await.expect("text");
        assert!(
            !text.contains("style=") && !text.contains("onclick") && !text.contains("http-equiv"),
            "{page}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_404_in_words_and_what_cannot_be_read_a_400() {
    let panel = Panel::open().await;
    let session = panel.session(Role::Viewer).await;
    for (page, status) in [
        ("/runs/999", StatusCode::NOT_FOUND),
        ("/deliveries/999", StatusCode::NOT_FOUND),
        ("/triggers/none", StatusCode::NOT_FOUND),
        ("/nowhere", StatusCode::NOT_FOUND),
        ("/runs/seven", StatusCode::BAD_REQUEST),
        ("/runs?state=sleeping", StatusCode::BAD_REQUEST),
        ("/deliveries?before=x", StatusCode::BAD_REQUEST),
    ] {
        let (found, text) = panel.get(page, &session).await;
        assert_eq!(found, status, "{page}: {text}");
    }
}

#[tokio::test]
async fn a_stored_delivery_is_listed_with_its_twin_and_its_body_is_for_operators() {
    let panel = Panel::open().await;
    let headers = serde_json::json!({ "x-forgejo-event": "issue_comment" });
    let new = queue::NewDelivery {
        forge: "codeberg",
        kind: "forgejo",
        delivery: "<script>alert(1)</script>",
        event: "issue_comment",
        event_type: "issue_comment",
        headers: &headers,
        body: "{\"text\":\"<b>\u{202e}canary-body</b>\"}".as_bytes(),
    };
    let queue::Receipt::Stored(id) = panel.queue.store_delivery(&new).await.expect("stored") else {
        panic!("it is new")
    };

    let operator = panel.session(Role::Operator).await;
    let (status, page) = panel.get(&format!("/deliveries/{id}"), &operator).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!page.contains("<script>alert"), "a stranger's markup is text");
    assert!(
        page.contains("canary-body") && page.contains("\\u{202e}") && !page.contains('\u{202e}'),
        "{page}"
    );
    assert!(panel.get("/deliveries", &operator).await.1.contains("received"));
    let twin: serde_json::Value = serde_json::from_str(&panel.get("/api/deliveries", &operator).await.1).expect("JSON");
    assert_eq!(twin["deliveries"][0]["forge"], "codeberg");

    let viewer = panel.session(Role::Viewer).await;
    for path in [format!("/deliveries/{id}"), format!("/api/deliveries/{id}")] {
        assert!(!panel.get(&path, &viewer).await.1.contains("canary-body"), "{path}");
    }
}

#[tokio::test]
async fn without_the_database_a_page_says_so_and_comes_back() {
    let scratch = Scratch::private().await;
    let database = scratch.database().await;
    let mut connect = Connect::new(database.url.clone(), "panel-test");
    connect.acquire_timeout = Duration::from_secs(1);
    let queue = Queue::connect(&connect).await.expect("it answers");
    queue.migrate().await.expect("a fresh database takes the migrations");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let admin = admin::Admin::new(queue.clone(), admin::Settings::default());
    tokio::spawn(async move { admin.serve(listener, std::future::pending()).await });
    let panel = Panel {
        url,
        queue,
        _database: database,
    };
    let session = panel.session(Role::Viewer).await;

    scratch.stop().await;
    let (status, text) = panel.get("/runs", &session).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("the database does not answer"), "{text}");

    scratch.resume().await;
    let mut status = StatusCode::SERVICE_UNAVAILABLE;
    // A connection that died is found out by the first statement on it: one failure for each is fair.
    for _ in 0..20 {
        status = panel.get("/runs", &session).await.0;
        if status == StatusCode::OK {
            break;
        }
    }
    assert_eq!(status, StatusCode::OK);
}
