//! Hooks and their deliveries: signed as Forgejo signs, sent one at a time, 5 seconds each, never again by themselves.

use super::Shared;
use super::world::{Repo, World};
use crate::clock;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a receiver has for its answer: Forgejo's `DELIVER_TIMEOUT`.
pub const DELIVER_TIMEOUT: Duration = Duration::from_secs(5);

/// How a hook sends its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The JSON itself.
    #[default]
    Json,
    /// `payload=` and the JSON, form-encoded; the signature is still over the JSON.
    Form,
}

#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) id: i64,
    /// A repository's id, or an organisation's.
    pub(crate) of: Of,
    pub(crate) url: String,
    pub(crate) secret: String,
    pub(crate) encoding: Encoding,
    pub(crate) authorization: Option<String>,
    pub(crate) active: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Repository(i64),
    Owner(i64),
}

/// A delivery: what was sent, and what came back.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The id in its headers; a redelivery has a new one.
    pub id: String,
    /// The hook that it belongs to.
    pub hook: i64,
    /// `X-Forgejo-Event`.
    pub event: String,
    /// `X-Forgejo-Event-Type`.
    pub event_type: String,
    /// Where it went.
    pub url: String,
    /// The headers as sent, in order.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Vec<u8>,
    /// What became of it.
    pub outcome: Sent,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It waits behind others, or is on its way.
    Waiting,
    /// The receiver answered with this status.
    Answered(u16),
    /// Nobody answered in time, or nobody was there. It does not come again.
    Lost,
}

impl World {
    /// Makes one delivery for each hook that hears of `repo`, in the hooks' order. The postman takes them from there.
    pub(crate) fn tell(&mut self, repo: i64, event: &str, event_type: &str, body: &Value) {
        let Some(owner) = self.repos.get(&repo).map(|repo: &Repo| repo.owner) else {
            return;
        };
        let hears = |hook: &&Hook| hook.active && (hook.of == Of::Repository(repo) || hook.of == Of::Owner(owner));
        let hooks: Vec<Hook> = self.hooks.values().filter(hears).cloned().collect();
        for hook in hooks {
            let delivery = delivery(&hook, event, event_type, body);
            self.deliveries.push(delivery);
        }
    }

    /// Makes a delivery for one hook only: the "test delivery" of the settings page.
    pub(crate) fn tell_one(&mut self, hook: i64, event: &str, body: &Value) {
        if let Some(delivery) = self.hooks.get(&hook).map(|hook| delivery(hook, event, event, body)) {
            self.deliveries.push(delivery);
        }
    }

    /// Makes the same delivery again under a new id, as the "redeliver" button of the web page does.
    pub(crate) fn redeliver(&mut self, id: &str) -> Option<String> {
        let mut again = self.deliveries.iter().find(|delivery| delivery.id == id)?.clone();
        again.id = clock::uuid();
        again.outcome = Sent::Waiting;
        for (name, value) in &mut again.headers {
            if name.ends_with("-Delivery") {
                value.clone_from(&again.id);
            }
        }
        let new = again.id.clone();
        self.deliveries.push(again);
        Some(new)
    }
}

/// The hexadecimal HMAC-SHA256 of a body under a secret, as Forgejo, Gitea and GitHub sign.
pub fn sign(secret: &str, body: &[u8]) -> String {
    hex::encode(mac::<Hmac<sha2::Sha256>>(secret, body))
}

fn mac<M: Mac + KeyInit>(secret: &str, body: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(secret.as_bytes()) else {
        return Vec::new();
    };
    mac.update(body);
    mac.finalize().into_bytes().to_vec()
}

fn delivery(hook: &Hook, event: &str, event_type: &str, body: &Value) -> Delivery {
    let id = clock::uuid();
    let json = serde_json::to_vec_pretty(body).unwrap_or_default();
    // Without a secret Forgejo sends the signature headers all the same, empty.
    let (sha256, sha1) = if hook.secret.is_empty() {
        (String::new(), String::new())
    } else {
        (
            sign(&hook.secret, &json),
            hex::encode(mac::<Hmac<sha1::Sha1>>(&hook.secret, &json)),
        )
    };
    let (body, content_type) = match hook.encoding {
        Encoding::Json => (json, "application/json"),
        Encoding::Form => {
            let form = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("payload", &String::from_utf8_lossy(&json))
                .finish();
            (form.into_bytes(), "application/x-www-form-urlencoded")
        }
    };
    let mut headers = vec![
        ("User-Agent", "Go-http-client/1.1".to_owned()),
        ("Content-Type", content_type.to_owned()),
    ];
    if let Some(authorization) = &hook.authorization {
        headers.push(("Authorization", authorization.clone()));
    }
    headers.extend([
        ("X-Forgejo-Delivery", id.clone()),
        ("X-Forgejo-Event", event.to_owned()),
        ("X-Forgejo-Event-Type", event_type.to_owned()),
        ("X-Forgejo-Signature", sha256.clone()),
        ("X-GitHub-Delivery", id.clone()),
        ("X-GitHub-Event", event.to_owned()),
        ("X-GitHub-Event-Type", event_type.to_owned()),
        ("X-Gitea-Delivery", id.clone()),
        ("X-Gitea-Event", event.to_owned()),
        ("X-Gitea-Event-Type", event_type.to_owned()),
        ("X-Gitea-Signature", sha256.clone()),
        ("X-Gogs-Delivery", id.clone()),
        ("X-Gogs-Event", event.to_owned()),
        ("X-Gogs-Event-Type", event_type.to_owned()),
        ("X-Gogs-Signature", sha256.clone()),
        ("X-Hub-Signature", format!("sha1={sha1}")),
        ("X-Hub-Signature-256", format!("sha256={sha256}")),
    ]);
    Delivery {
        id,
        hook: hook.id,
        event: event.to_owned(),
        event_type: event_type.to_owned(),
        url: hook.url.clone(),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        body,
        outcome: Sent::Waiting,
    }
}

/// Carries deliveries, one at a time for the whole instance, in the order they were made.
pub(super) async fn postman(shared: Arc<Shared>, mut rings: UnboundedReceiver<()>) {
    #[expect(
        clippy::unwrap_used,
        reason = "a client without TLS roots or proxies cannot fail to be built"
    )]
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(DELIVER_TIMEOUT)
        .no_proxy()
        .build()
        .unwrap();
    while rings.recv().await.is_some() {
        loop {
            let next = {
                let world = shared.world();
                let waiting = |delivery: &Delivery| delivery.outcome == Sent::Waiting;
                world.deliveries.iter().find(|delivery| waiting(delivery)).cloned()
            };
            let Some(delivery) = next else { break };
            let outcome = send(&client, &delivery).await;
            if let Some(kept) = shared.world().deliveries.iter_mut().find(|kept| kept.id == delivery.id) {
                kept.outcome = outcome;
            }
            shared.changed();
        }
    }
}

async fn send(client: &reqwest::Client, delivery: &Delivery) -> Sent {
    let mut headers = HeaderMap::new();
    for (name, value) in &delivery.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<reqwest::header::HeaderName>(), value.parse()) {
            headers.append(name, value);
        }
    }
    match client
        .post(&delivery.url)
        .headers(headers)
        .body(delivery.body.clone())
        .send()
        .await
    {
        Ok(answer) => Sent::Answered(answer.status().as_u16()),
        Err(_) => Sent::Lost,
    }
}
