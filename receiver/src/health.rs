//! `/health`: the process runs. `/ready`: it could store a delivery now.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;
use tokio::time::timeout;

use crate::{Receiver, texts};

/// 200 as long as the process answers. Asks nobody.
pub(crate) async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// 200 when PostgreSQL answers and has our schema, else 503.
pub(crate) async fn ready(State(receiver): State<Receiver>) -> Response {
    match timeout(
        receiver.inner.settings.store_timeout,
        receiver.inner.queue.check_schema(),
    )
    .await
    {
        Ok(Ok(())) => Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            not_ready()
        }
        Err(_) => {
            tracing::warn!("not ready: PostgreSQL did not answer in time");
            not_ready()
        }
    }
}

fn not_ready() -> Response {
    let body = Json(json!({ "error": "not-ready", "message": texts::NOT_READY }));
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}
