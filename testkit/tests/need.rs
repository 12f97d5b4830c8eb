//! What a test needs is found, or its absence is said.

use testkit::need;

#[test]
fn an_image_has_an_id_and_docker_a_socket() {
    let Some(socket) = need::docker() else { return };
    assert!(socket.exists());
    let Some(id) = need::image("pi-job:2.0.0") else { return };
    assert!(id.starts_with("sha256:"));
}

#[tokio::test]
async fn a_browser_answers_and_goes_with_the_test() {
    let Some(browser) = need::browser() else { return };
    let status = reqwest::get(format!("{}/status", browser.url()))
        .await
        .expect("it listens");
    assert!(status.status().is_success());
    let address = browser.url();
    drop(browser);
    assert!(reqwest::get(format!("{address}/status")).await.is_err());
}
