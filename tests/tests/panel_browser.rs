//! The panel in a real browser: signing in by the form, every page, the live log, without JavaScript errors; light and dark, wide
//! and narrow. Pictures are left in `target/panel/`, for people to look at.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::json;
use stories::{IMAGE, PATIENCE, World, until};
use testkit::model::{Fault, Script, Step};
use testkit::need::{self, Browser};

async fn browser(driver: &Browser, width: u32, height: u32, dark: bool) -> Client {
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    let size = format!("--window-size={width},{height}");
    let options = json!({
        "goog:chromeOptions": { "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size, scheme] },
        "goog:loggingPrefs": { "browser": "ALL" },
    });
    let capabilities = options.as_object().cloned().expect("an object");
    ClientBuilder::new(hyper_util_connector())
        .capabilities(capabilities)
        .connect(&driver.url())
        .await
        .expect("a browser starts")
}

fn hyper_util_connector() -> hyper_util::client::legacy::connect::HttpConnector {
    hyper_util::client::legacy::connect::HttpConnector::new()
}

async fn sign_in(client: &Client, world: &World, password: &str) {
    client
        .goto(&format!("{}/runs", world.panel))
        .await
        .expect("the panel answers");
    let field = async |name: &str, text: &str| {
        let field = client.find(Locator::Id(name)).await.expect("the form has the field");
        field.send_keys(text).await.expect("it can be typed into");
    };
    field("name", "olga").await;
    field("password", password).await;
    client
        .find(Locator::Css("button.primary"))
        .await
        .expect("a button")
        .click()
        .await
        .expect("it can be pressed");
    client
        .wait()
        .for_element(Locator::Css("header.top"))
        .await
        .expect("signed in");
    assert!(
        client
            .current_url()
            .await
            .expect("an address")
            .path()
            .ends_with("/runs"),
        "back to where one wanted to go"
    );
}

async fn text(client: &Client) -> String {
    client
        .find(Locator::Css("body"))
        .await
        .expect("a body")
        .text()
        .await
        .expect("its text")
}

async fn picture(client: &Client, name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/panel");
    std::fs::create_dir_all(&folder).expect("a folder for the pictures");
    let png = client.screenshot().await.expect("a picture");
    std::fs::write(folder.join(format!("{name}.png")), png).expect("it can be written");
}

async fn scrolls_sideways(client: &Client) -> bool {
    let wide = client
        .execute(
            "return document.documentElement.scrollWidth > window.innerWidth + 1",
            vec![],
        )
        .await;
    wide.expect("a script of the driver runs").as_bool().unwrap_or(true)
}

async fn password(world: &World) -> String {
    let password = admin::password::random();
    let hash = admin::password::hash(password.clone()).await.expect("it hashes");
    world
        .queue
        .put_user("olga", &hash, queue::Role::Operator, "story")
        .await
        .expect("a user can be added");
    password
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_finds_everything_about_a_run_in_a_browser() {
    let (Some(_), Some(_), Some(driver)) = (need::docker(), need::image(IMAGE), need::browser()) else {
        return;
    };
    let world = World::start().await;
    world.forge.comment("lab/widgets", 1, "mira", "@pi triage");
    world
        .forge
        .wait_for_comments_by("lab/widgets", 1, "pi-bot", 1, PATIENCE)
        .await;
    let job = world.jobs(1).await[0].job;
    world.finished(job).await;
    world.all_decided().await;
    let password = password(&world).await;

    for (name, width, height, dark) in [
        ("wide-light", 1280, 1180, false),
        ("wide-dark", 1280, 1180, true),
        ("narrow-light", 420, 900, false),
        ("narrow-dark", 420, 900, true),
    ] {
        let client = browser(&driver, width, height, dark).await;
        sign_in(&client, &world, &password).await;
        for (page, path, words) in [
            ("overview", "/".to_owned(), vec!["SPENT TODAY", "triage"]),
            ("runs", "/runs".to_owned(), vec!["completed", "lab/widgets#1", "mira"]),
            (
                "run",
                format!("/runs/{job}"),
                vec![
                    "absent from the session at its start",
                    "absent from the session at its end",
                    "tools_excluded",
                    "forge_comment",
                    "mira",
                ],
            ),
            (
                "triggers",
                "/triggers".to_owned(),
                vec!["comment-pi-triage", "bash powershell edit write"],
            ),
            (
                "trigger",
                "/triggers/comment-pi-triage?comment=hello+%60%40pi%60".to_owned(),
                vec![
                    "excludeTools",
                    "bash powershell edit write",
                    "on.phrase",
                    "can take tools away",
                    "only in code",
                ],
            ),
            ("deliveries", "/deliveries".to_owned(), vec!["fired", "own-post"]),
            (
                "delivery",
                "/deliveries/1".to_owned(),
                vec!["comment-pi-triage", "fired"],
            ),
            ("workers", "/workers".to_owned(), vec!["lives", "pi-job:2.0.0"]),
        ] {
            client.goto(&format!("{}{path}", world.panel)).await.expect("a page");
            let text = text(&client).await;
            for words in words {
                assert!(text.contains(words), "{name} {page}: `{words}` is not in: {text}");
            }
            assert!(
                !scrolls_sideways(&client).await,
                "{name} {page} is wider than the window"
            );
            picture(&client, &format!("{page}-{name}")).await;
        }
        client.close().await.expect("the browser ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_running_job_grows_by_itself_and_a_button_stops_it() {
    let (Some(_), Some(_), Some(driver)) = (need::docker(), need::image(IMAGE), need::browser()) else {
        return;
    };
    let plans = stories::Plans {
        model: Script::steps([
            Step::calls("read", json!({ "path": "README.md" })),
            Step::fails(Fault::Hang),
        ])
        .into(),
        ..stories::Plans::default()
    };
    let world = World::with(plans).await;
    world.forge.comment("lab/widgets", 1, "mira", "@pi triage");
    let job = world.jobs(1).await[0].job;
    let password = password(&world).await;
    let client = browser(&driver, 1280, 1180, false).await;
    sign_in(&client, &world, &password).await;
    client
        .goto(&format!("{}/runs/{job}", world.panel))
        .await
        .expect("a page");
    // Nobody reloads: the lines come by themselves.
    until("the log shows the tool call", async || {
        text(&client).await.contains("tool_end").then_some(())
    })
    .await;
    picture(&client, "run-live").await;
    client
        .find(Locator::Css("button.danger"))
        .await
        .expect("a button")
        .click()
        .await
        .expect("it can be pressed");
    let run = world.finished(job).await;
    assert!(
        matches!(
            run.row.state,
            queue::JobState::Finished {
                outcome: queue::Outcome::Stopped,
                ..
            }
        ),
        "{:?}",
        run.row.state
    );
    until("the page says that it was stopped", async || {
        text(&client).await.contains("stopped").then_some(())
    })
    .await;
    client.close().await.expect("the browser ends");
}
