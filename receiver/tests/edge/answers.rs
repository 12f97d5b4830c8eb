//! Which answer what gets.

use receiver::{HookDoor, Receiver, Settings, SetupError};
use secrecy::SecretString;

use crate::support::{BODY, Edge, answer, doors, sign};

#[tokio::test]
async fn a_new_delivery_is_202_and_a_known_one_200_and_both_name_the_same_row() {
    let edge = Edge::start().await;
    let (status, first) = answer(edge.delivery("d-1", BODY)).await;
    assert_eq!((status, first["status"].as_str()), (202, Some("stored")));
    let (status, second) = answer(edge.delivery("d-1", BODY)).await;
    assert_eq!((status, second["status"].as_str()), (200, Some("known")));
    assert_eq!(first["delivery"], second["delivery"]);
    let (status, _) = answer(edge.delivery("d-2", BODY)).await;
    assert_eq!(
        status, 202,
        "a redelivery by hand has a new id: what it repeats is seen later"
    );
    assert_eq!(edge.stored().await, 2);
}

#[tokio::test]
async fn the_raw_body_and_the_headers_that_matter_are_stored_and_nothing_else() {
    let edge = Edge::start().await;
    let body = "{\"secret\":\"new-canary\",\n \"comment\": {\"body\":\"h\u{fc}\\u00fc  \"}}\n".as_bytes();
    let request = edge
        .delivery("d-1", body)
        .header("authorization", "Bearer auth-canary")
        .header("cookie", "cookie-canary=1")
        .header("x-custom", "custom-canary");
    assert_eq!(answer(request).await.0, 202);

    let stored: Vec<u8> = sqlx::query_scalar("SELECT body FROM deliveries")
        .fetch_one(edge.queue.pool())
        .await
        .unwrap();
    assert_eq!(
        String::from_utf8(stored).unwrap(),
        String::from_utf8_lossy(body).replace("new-canary", "")
    );
    let headers: String = sqlx::query_scalar("SELECT headers::text FROM deliveries")
        .fetch_one(edge.queue.pool())
        .await
        .unwrap();
    let headers: serde_json::Value = serde_json::from_str(&headers).unwrap();
    let names: Vec<&String> = headers.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "content-type",
            "x-forgejo-delivery",
            "x-forgejo-event",
            "x-forgejo-event-type"
        ]
    );
    let rows = edge.rows().await;
    for canary in [
        "auth-canary",
        "cookie-canary",
        "custom-canary",
        "new-canary",
        &sign("new-canary", body),
    ] {
        assert!(!rows.contains(canary), "{canary} in {rows}");
    }
}

#[tokio::test]
async fn each_thing_that_is_wrong_has_its_status_and_says_so_in_words() {
    let edge = Edge::start().await;
    let with = |name: &'static str, value: &str| {
        let mut request = edge.delivery("d-1", BODY).build().unwrap();
        request.headers_mut().remove(name);
        if !value.is_empty() {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        reqwest::RequestBuilder::from_parts(edge.client.clone(), request)
    };
    let old = sign("old-canary", BODY);
    assert_eq!(
        answer(with("x-forgejo-signature", &old)).await.0,
        202,
        "the other secret counts too"
    );

    let client = &edge.client;
    for (what, request, status, word) in [
        (
            "unknown forge",
            client.post(edge.url("/hooks/github")).body("x"),
            404,
            "unknown-forge",
        ),
        (
            "unknown forge, GET",
            client.get(edge.url("/hooks/github")),
            404,
            "unknown-forge",
        ),
        ("unknown address", client.get(edge.url("/")), 404, "not-found"),
        ("GET", client.get(edge.url("/hooks/codeberg")), 405, "not-post"),
        (
            "PUT",
            client.put(edge.url("/hooks/codeberg")).body("x"),
            405,
            "not-post",
        ),
        (
            "form",
            with("content-type", "application/x-www-form-urlencoded"),
            415,
            "not-json",
        ),
        ("no content type", with("content-type", ""), 415, "not-json"),
        ("no signature", with("x-forgejo-signature", ""), 401, "unsigned"),
        (
            "wrong signature",
            with("x-forgejo-signature", &sign("guess", BODY)),
            401,
            "bad-signature",
        ),
        (
            "another hook's",
            with("x-forgejo-signature", &sign("tea-canary", BODY)),
            401,
            "bad-signature",
        ),
        ("no hex", with("x-forgejo-signature", "zzz"), 401, "bad-signature"),
        ("no id", with("x-forgejo-delivery", ""), 400, "bad-header"),
        ("no event", with("x-forgejo-event", ""), 400, "bad-header"),
    ] {
        let (got, json) = answer(request).await;
        assert_eq!((got, json["error"].as_str()), (status, Some(word)), "{what}: {json}");
        assert!(json["message"].as_str().unwrap().len() > 15, "{what}: {json}");
    }
    assert_eq!(edge.stored().await, 1);
    let refused = client.get(edge.url("/hooks/codeberg")).send().await.unwrap();
    assert_eq!(refused.headers()["allow"], "POST");
}

#[tokio::test]
async fn a_gitea_hook_reads_its_own_headers() {
    let edge = Edge::start().await;
    let request = edge
        .client
        .post(edge.url("/hooks/tea"))
        .header("content-type", "application/json; charset=utf-8")
        .header("x-gitea-event", "push")
        .header("x-gitea-delivery", "g-1")
        .header("x-gitea-signature", sign("tea-canary", BODY))
        .body(BODY);
    assert_eq!(answer(request).await.0, 202);
}

#[tokio::test]
async fn a_hook_that_nobody_could_sign_for_does_not_start() {
    let edge = Edge::start().await;
    let new = |doors: Vec<HookDoor>| Receiver::new(edge.queue.clone(), doors, Settings::default()).unwrap_err();
    assert_eq!(new(Vec::new()), SetupError::NoForge);
    let mut none = doors();
    none[1].secrets.clear();
    let error = new(none);
    assert_eq!(error, SetupError::NoSecret("tea".to_owned()));
    assert!(error.to_string().contains("does not start"));
    let mut empty = doors();
    empty[0].secrets.push(SecretString::from(" \n"));
    assert_eq!(new(empty), SetupError::EmptySecret("codeberg".to_owned()));
    let mut twins = doors();
    twins[1].name = "codeberg".to_owned();
    assert_eq!(new(twins), SetupError::SameName("codeberg".to_owned()));
}
