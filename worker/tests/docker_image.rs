//! The job image as it stands on this host: what the real pi in it is, and what it reads back for eleven sets of exclusions.
//! All 255 sets are run from end to end in `tests/tests/tools.rs`.
//! Needs Docker and the image `pi-job:2.0.0`; no model is asked.

#![expect(clippy::unwrap_used, reason = "a fixture fails by panicking")]

use bollard::Docker;
use contract::IMAGE_TAG;
use worker::image::{Subsets, verify};

/// The engine and the image's name, or a visible skip.
fn image() -> Option<(Docker, String)> {
    let socket = testkit::need::docker()?;
    let image = testkit::need::image(IMAGE_TAG)?;
    let docker = Docker::connect_with_unix(&socket.to_string_lossy(), 120, bollard::API_DEFAULT_VERSION).unwrap();
    Some((docker, image))
}

#[tokio::test]
async fn the_real_pi_has_the_tools_that_the_trigger_language_names_and_everything_in_the_image_is_locked() {
    let Some((docker, image)) = image() else { return };
    let report = verify(&docker, &image, Subsets::Some).await.unwrap();
    assert!(report.passed(), "{}", report.page("today"));
}
