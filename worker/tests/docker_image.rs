//! The job image as it stands on this host: what the real pi in it is, and what it reads back.
//! Needs Docker and the image `pi-job:2.0.0`; no model is asked.

#![expect(clippy::unwrap_used, reason = "a fixture fails by panicking")]

use bollard::Docker;
use contract::IMAGE_TAG;
use worker::image::{Subsets, read_backs, verify};

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

#[tokio::test]
async fn for_every_set_of_exclusions_the_live_session_has_exactly_the_tools_that_are_left() {
    let Some((docker, image)) = image() else { return };
    let sets = Subsets::All.list();
    // Two containers at a time: pi starts on one core and a small machine has two.
    let (first, second) = sets.split_at(sets.len() / 2);
    let (first, second) = tokio::join!(read_backs(&docker, &image, first), read_backs(&docker, &image, second));
    let all: Vec<_> = first.unwrap().into_iter().chain(second.unwrap()).collect();
    assert_eq!(all.len(), 256);
    for read in all {
        assert!(read.good(), "{:?}: {:?} {}", read.excluded, read.seen, read.complaint);
    }
}
