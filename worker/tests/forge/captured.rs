//! Deliveries that a real Forgejo sent: each gets a verdict in words.
//!
//! The clock stands at the capture: a delivery counts as received when its newest time says. The forge that sent them is
//! gone; the stub stands in for it with the same people and, under the first issue, the same three comments. What it does
//! not have is not confirmed.

use std::{fmt::Write, path::Path};

use chrono::{DateTime, Utc};
use queue::DeliveryStatus;
use testkit::forge::StubForge;

use crate::world::{TRIAGE, WIDGETS, World, store};

const FOLDER: &str = "payloads/forgejo-captured";

#[derive(serde::Deserialize)]
struct Sent {
    secret: Option<String>,
    headers: Vec<(String, String)>,
}

/// The newest `created_at` or `updated_at` of a body: about when it was sent.
fn captured_at(body: &serde_json::Value) -> Option<DateTime<Utc>> {
    let mut newest = None;
    let mut ahead = vec![body];
    while let Some(value) = ahead.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str().map(str::parse::<DateTime<Utc>>) {
                        Some(Ok(at)) if ["created_at", "updated_at"].contains(&name.as_str()) => {
                            newest = newest.max(Some(at));
                        }
                        _ => ahead.push(value),
                    }
                }
            }
            serde_json::Value::Array(values) => ahead.extend(values),
            _ => {}
        }
    }
    newest
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".body")?.to_owned()))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_captured_delivery_gets_a_verdict_in_words() {
    let Some(folder) = testkit::need::shared(FOLDER) else {
        return;
    };
    let forge = StubForge::lab();
    let comments = [
        ("mira", "@pi triage this, please"),
        ("sol", "@pi triage"),
        ("pi-bot", "@pi triage <!-- ours -->"),
    ];
    let ids = comments.map(|(who, text)| forge.comment(WIDGETS, 1, who, text));
    assert_eq!(ids, [2, 3, 4], "the numbers that they have in the captured deliveries");
    let world = World::over(forge, &[TRIAGE]).await;

    let mut verdicts = String::new();
    for name in names(&folder) {
        let body = std::fs::read(folder.join(format!("{name}.body"))).unwrap();
        let sent: Sent =
            serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.headers.json"))).unwrap()).unwrap();
        let secret = sent.secret.unwrap_or_default();
        let line = match store(&world.queue, "codeberg", &sent.headers, &body, &secret).await {
            None => "(turned away at the edge)".to_owned(),
            Some(id) => {
                let at = serde_json::from_slice(&body).ok().as_ref().and_then(captured_at);
                sqlx::query("UPDATE deliveries SET received_at = coalesce($2, received_at) WHERE id = $1 AND state = 'received'")
                    .bind(id.0)
                    .bind(at)
                    .execute(world.queue.pool())
                    .await
                    .unwrap();
                world.decide().await;
                describe(&world.delivery(id).await)
            }
        };
        writeln!(verdicts, "{name}: {}", line.trim_end_matches([':', ' '])).unwrap();
    }
    assert_eq!(world.jobs().await, 1);
    insta::assert_snapshot!(verdicts);
}

fn describe(delivery: &queue::read::DeliveryDetail) -> String {
    let row = &delivery.row;
    let word = |reason: Option<queue::Reason>| reason.map_or("-", queue::Reason::word);
    match row.status {
        DeliveryStatus::Decided if delivery.events.is_empty() => format!("{}: {}", word(row.reason), row.detail),
        DeliveryStatus::Decided => {
            let decisions = delivery.events.iter().flat_map(|event| &event.decisions);
            let said: Vec<String> = decisions
                .map(|one| {
                    let word = one.reason.map_or(one.verdict.word(), queue::Reason::word);
                    format!("{word}: {}", one.detail)
                })
                .collect();
            format!("{}: {}", delivery.events[0].kind, said.join("; "))
        }
        DeliveryStatus::Waiting => format!("waits: {}", word(row.reason)),
        DeliveryStatus::Received | DeliveryStatus::Abandoned => format!("{}: {}", row.status, word(row.reason)),
    }
}
