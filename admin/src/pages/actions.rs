//! What an operator may do here. Each is a row that a worker reads, and a line in the audit; none widens what a job may do.

use axum::extract::{Path, State};
use axum::response::Redirect;
use queue::{DeliveryId, JobId};

use crate::Admin;
use crate::error::PageError;
use crate::people::Operator;

/// `POST /runs/{job}/stop`.
pub async fn stop(
    State(admin): State<Admin>,
    Operator(who): Operator,
    Path(job): Path<i64>,
) -> Result<Redirect, PageError> {
    admin.queue.stop(JobId(job), &who.name).await?;
    Ok(Redirect::to(&format!("/runs/{job}")))
}

/// `POST /deliveries/{id}/replay`.
pub async fn replay(
    State(admin): State<Admin>,
    Operator(who): Operator,
    Path(id): Path<i64>,
) -> Result<Redirect, PageError> {
    admin.queue.replay_delivery(DeliveryId(id), &who.name).await?;
    Ok(Redirect::to(&format!("/deliveries/{id}")))
}

/// `POST /pause`.
pub async fn pause(State(admin): State<Admin>, Operator(who): Operator) -> Result<Redirect, PageError> {
    admin.queue.pause(&who.name).await?;
    Ok(Redirect::to("/"))
}

/// `POST /resume`.
pub async fn resume(State(admin): State<Admin>, Operator(who): Operator) -> Result<Redirect, PageError> {
    admin.queue.resume(&who.name).await?;
    Ok(Redirect::to("/"))
}
