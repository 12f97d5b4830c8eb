//! `POST /hooks/{name}`: the handler, and the status code of everything that can be wrong.
//!
//! Order of the checks: a known forge (404), the method (405), the content type (415), the size (413), a whole body
//! (400, 408), the proof (401), the headers (400); then it is stored: 202 when it was new, 200 when it was known.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use forges::{DeliveryError, Verified};
use http::header::{ALLOW, CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use queue::{NewDelivery, Receipt};
use serde_json::json;
use tokio::time::timeout;

use crate::body::{BodyError, Incoming};
use crate::{HookDoor, Receiver, texts};

/// How many seconds a sender is asked to wait after a 503.
const RETRY_SECONDS: u16 = 5;

/// Why a delivery is not taken. All but [`NotStored`](Self::NotStored) and [`Full`](Self::Full) are the sender's doing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    /// 404.
    #[error("no forge is configured under that name: the address is /hooks/NAME, with NAME from pi-dispatch.toml")]
    UnknownForge,
    /// 405.
    #[error("a hook takes POST only")]
    NotPost,
    /// 400, 401, 415: see the variants.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// 400, 408, 413, 503: see the variants.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// 503.
    #[error("the delivery could not be made durable: send it again")]
    NotStored,
}

/// 202 once the delivery is in PostgreSQL, 200 when it already was.
#[tracing::instrument(skip_all, fields(forge = %name))]
pub(crate) async fn receive(
    State(receiver): State<Receiver>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, HookError> {
    let (parts, body) = request.into_parts();
    let mut body = Incoming::new(body, &parts.headers);
    let taken = take(&receiver, &name, &parts, &mut body).await;
    if let Err(error) = &taken {
        // The sender is still writing: an answer before it is done would reach it as a broken connection.
        body.dismiss(&receiver.inner.settings).await;
        tracing::info!(reason = error.word(), "a delivery was turned away");
    }
    taken.map(answer)
}

async fn take(
    receiver: &Receiver,
    name: &str,
    parts: &http::request::Parts,
    body: &mut Incoming,
) -> Result<Receipt, HookError> {
    let door = receiver.inner.doors.get(name).ok_or(HookError::UnknownForge)?;
    if parts.method != Method::POST {
        return Err(HookError::NotPost);
    }
    forges::content_type(&parts.headers)?;
    let whole = body.read(&receiver.inner.settings, &receiver.inner.large).await?;
    let delivery = forges::verify(door.kind, &parts.headers, &whole, &door.secrets)?;
    store(receiver, door, &delivery).await
}

async fn store(receiver: &Receiver, door: &HookDoor, delivery: &Verified<'_>) -> Result<Receipt, HookError> {
    let headers = serde_json::to_value(&delivery.headers).map_err(|_| HookError::NotStored)?;
    let new = NewDelivery {
        forge: &door.name,
        kind: door.kind.word(),
        delivery: &delivery.delivery_id,
        event: &delivery.event,
        event_type: &delivery.event_type,
        headers: &headers,
        body: &delivery.body,
    };
    match timeout(
        receiver.inner.settings.store_timeout,
        receiver.inner.queue.store_delivery(&new),
    )
    .await
    {
        Ok(Ok(receipt)) => Ok(receipt),
        Ok(Err(error)) => {
            tracing::error!(delivery.id = %delivery.delivery_id, %error, "a delivery could not be stored");
            Err(HookError::NotStored)
        }
        Err(_) => {
            tracing::error!(delivery.id = %delivery.delivery_id, "PostgreSQL did not store a delivery in time");
            Err(HookError::NotStored)
        }
    }
}

fn answer(receipt: Receipt) -> Response {
    let (status, word, id) = match receipt {
        Receipt::Stored(id) => (StatusCode::ACCEPTED, "stored", id),
        Receipt::Known(id) => (StatusCode::OK, "known", id),
    };
    (status, Json(json!({ "status": word, "delivery": id }))).into_response()
}

/// Every other address.
pub(crate) async fn nothing_here() -> Response {
    (
        StatusCode::NOT_FOUND,
        Json(json!({ "error": "not-found", "message": texts::NOTHING_HERE })),
    )
        .into_response()
}

impl HookError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownForge => StatusCode::NOT_FOUND,
            Self::NotPost => StatusCode::METHOD_NOT_ALLOWED,
            Self::Delivery(DeliveryError::NotJson) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Delivery(DeliveryError::Unsigned(_) | DeliveryError::BadSignature) => StatusCode::UNAUTHORIZED,
            Self::Delivery(DeliveryError::BadHeader(_)) | Self::Body(BodyError::Broken) => StatusCode::BAD_REQUEST,
            Self::Body(BodyError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(BodyError::Full) | Self::NotStored => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::UnknownForge => "unknown-forge",
            Self::NotPost => "not-post",
            Self::Delivery(DeliveryError::NotJson) => "not-json",
            Self::Delivery(DeliveryError::Unsigned(_)) => "unsigned",
            Self::Delivery(DeliveryError::BadSignature) => "bad-signature",
            Self::Delivery(DeliveryError::BadHeader(_)) => "bad-header",
            Self::Body(BodyError::Broken) => "broken-body",
            Self::Body(BodyError::TooLarge { .. }) => "too-large",
            Self::Body(BodyError::TooSlow) => "too-slow",
            Self::Body(BodyError::Full) => "too-many-large-bodies",
            Self::NotStored => "not-stored",
        }
    }

    /// After these the connection is of no more use: part of a body may still be on its way.
    fn ends_connection(&self) -> bool {
        matches!(self, Self::Body(_))
    }
}

impl IntoResponse for HookError {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": self.word(), "message": self.to_string() }));
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        if matches!(self, Self::NotPost) {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if self.ends_connection() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
