//! The engine of the Docker tests.

#![expect(clippy::expect_used, reason = "a fixture fails by panicking")]

use worker::container::Engine;

/// The engine, or nothing and a line that says why.
pub(crate) fn engine() -> Option<Engine> {
    let socket = testkit::need::docker()?;
    let docker = bollard::Docker::connect_with_unix(&socket.display().to_string(), 120, bollard::API_DEFAULT_VERSION);
    Some(Engine::new(docker.expect("the socket is there")))
}
