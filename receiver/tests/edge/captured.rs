//! Deliveries of a real Forgejo, sent as it sent them: proven ones are stored, no other is, and none is a 5xx.
//!
//! They lie outside the tree; where they are absent the test says so and checks nothing.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::support::{Edge, answer, sign};

#[derive(Deserialize)]
struct Captured {
    headers: Vec<(String, String)>,
}

fn deliveries() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/payloads/forgejo-captured");
    let Ok(entries) = std::fs::read_dir(folder) else {
        use std::io::Write as _;
        // Past the capture of the test's output: somebody should see it.
        let _ = writeln!(
            std::io::stderr(),
            "NOT CHECKED: the captured deliveries are not at ../shared/payloads"
        );
        return None;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    Some(
        paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "body"))
            .collect(),
    )
}

#[tokio::test]
async fn every_captured_delivery_is_stored_with_a_good_proof_and_refused_with_any_other() {
    let Some(paths) = deliveries() else { return };
    let edge = Edge::start().await;
    let mut taken = 0;
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let body = std::fs::read(path).unwrap();
        let headers = std::fs::read(path.with_extension("headers.json")).unwrap();
        let captured: Captured = serde_json::from_slice(&headers).unwrap();
        // Our hook has another secret than the one of the capture, so the good proof is made here.
        let send = |signature: Option<String>| {
            let mut request = edge.client.post(edge.url("/hooks/codeberg")).body(body.clone());
            for (header, value) in &captured.headers {
                let header = header.to_lowercase();
                if header != "content-length" && !header.contains("signature") {
                    request = request.header(header, value);
                }
            }
            match signature {
                Some(value) => request.header("x-forgejo-signature", value),
                None => request,
            }
        };
        let form = name.starts_with("60-");
        let refused = if form { 415 } else { 401 };
        for signature in [
            None,
            Some(String::new()),
            Some("0".repeat(64)),
            Some(sign("tea-canary", &body)),
        ] {
            assert_eq!(answer(send(signature)).await.0, refused, "{name}");
        }
        let of_github = send(None)
            .header("x-hub-signature", "sha1=00")
            .header("x-gitlab-token", "new-canary");
        assert_eq!(answer(of_github).await.0, refused, "{name}");
        let (status, json) = answer(send(Some(sign("new-canary", &body)))).await;
        assert_eq!(status, if form { 415 } else { 202 }, "{name}: {json}");
        taken += i64::from(!form);
    }
    assert!(taken > 50, "only {taken}");
    assert_eq!(edge.stored().await, taken);
    assert!(
        !edge.rows().await.contains("not-a-real-one"),
        "the Authorization header of number 63"
    );
}
