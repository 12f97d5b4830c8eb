//! The proof of a delivery, and which of its headers are kept.
//!
//! Forgejo and Gitea sign the raw body with HMAC-SHA256 and send the hex twice: bare in a header of their own, and
//! as `sha256=HEX` in `X-Hub-Signature-256`. An SHA-1 header exists and is ignored. A hook without a secret sends
//! the headers empty. Source: `facts/forges.md`, "Delivery".

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use crate::body;
use crate::delivery::{DeliveryError, KeptHeaders, Verified, content_type};
use crate::kind::ForgeKind;

/// The names of the headers of one flavour.
pub(super) struct Names {
    signature: &'static str,
    delivery: &'static str,
    pub(super) event: &'static str,
    pub(super) event_type: &'static str,
}

const FORGEJO: Names = Names {
    signature: "x-forgejo-signature",
    delivery: "x-forgejo-delivery",
    event: "x-forgejo-event",
    event_type: "x-forgejo-event-type",
};

const GITEA: Names = Names {
    signature: "x-gitea-signature",
    delivery: "x-gitea-delivery",
    event: "x-gitea-event",
    event_type: "x-gitea-event-type",
};

/// What both flavours send beside their own.
const HUB_SIGNATURE: &str = "x-hub-signature-256";

/// Longest delivery id, in characters. The forge's are UUIDs.
const ID_MAX: usize = 128;

/// The names of a flavour.
pub(super) fn names(kind: ForgeKind) -> &'static Names {
    match kind {
        ForgeKind::Forgejo => &FORGEJO,
        ForgeKind::Gitea => &GITEA,
    }
}

pub(crate) fn verify<'b>(
    kind: ForgeKind,
    headers: &HeaderMap,
    body: &'b [u8],
    secrets: &[SecretString],
) -> Result<Verified<'b>, DeliveryError> {
    content_type(headers)?;
    let names = names(kind);
    if !signed_by_any(&signature(headers, names)?, body, secrets) {
        return Err(DeliveryError::BadSignature);
    }
    let delivery_id = word(headers, names.delivery)?;
    let event = word(headers, names.event)?;
    let event_type = word(headers, names.event_type).unwrap_or_else(|_| event.clone());
    let allowed = [
        names.delivery,
        names.event,
        names.event_type,
        "content-type",
        "user-agent",
    ];
    Ok(Verified {
        delivery_id,
        event,
        event_type,
        headers: KeptHeaders::take(headers, &allowed),
        body: body::without_secrets(body),
    })
}

/// The signature that the hook sent, decoded: from the flavour's own header, else from the one that both send.
fn signature(headers: &HeaderMap, names: &Names) -> Result<Vec<u8>, DeliveryError> {
    let hex = match single(headers, names.signature)? {
        Some(own) => own,
        None => match single(headers, HUB_SIGNATURE)? {
            Some(hub) => hub.strip_prefix("sha256=").ok_or(DeliveryError::BadSignature)?,
            None => return Err(DeliveryError::Unsigned(names.signature)),
        },
    };
    if hex.is_empty() {
        return Err(DeliveryError::Unsigned(names.signature));
    }
    hex::decode(hex).map_err(|_| DeliveryError::BadSignature)
}

/// A header that may stand once. Sent empty counts as not sent; sent twice, or with odd bytes, proves nothing.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, DeliveryError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(DeliveryError::BadSignature);
    }
    let value = value.to_str().map_err(|_| DeliveryError::BadSignature)?.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// Tries every secret, whether or not one before it matched: the time tells nothing about which one it was.
fn signed_by_any(signature: &[u8], body: &[u8], secrets: &[SecretString]) -> bool {
    let mut matched = false;
    for secret in secrets {
        let key = secret.expose_secret().as_bytes();
        // The empty key is no secret: everybody has it.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
            continue;
        };
        mac.update(body);
        matched |= mac.verify_slice(signature).is_ok() & !key.is_empty();
    }
    matched
}

/// A header that holds one word: visible ASCII, bounded.
fn word(headers: &HeaderMap, name: &'static str) -> Result<String, DeliveryError> {
    let value = headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
        .unwrap_or_default();
    let usable = !value.is_empty() && value.len() <= ID_MAX && value.bytes().all(|byte| byte.is_ascii_graphic());
    usable.then(|| value.to_owned()).ok_or(DeliveryError::BadHeader(name))
}
