//! Each state three times: type, CHECK, diagram. What is not an arrow of the diagram is refused by the database.

use queue::{DeliveryStatus, JobStatus, Queue};
use sqlx::AssertSqlSafe;

use crate::world::{claim, deliver, fresh, job};

/// The SET clause that gives a job's row the right shape for a state.
fn job_shape(state: JobStatus) -> &'static str {
    match state {
        JobStatus::Queued => {
            "state = 'queued', worker = NULL, reason = NULL, hold_until = NULL, outcome = NULL, finished_at = NULL"
        }
        JobStatus::Held => "state = 'held', worker = NULL, reason = 'paused', outcome = NULL, finished_at = NULL",
        JobStatus::Running => {
            "state = 'running', worker = 'w', attempt = 1, reason = NULL, hold_until = NULL, outcome = NULL, finished_at = NULL"
        }
        JobStatus::Finished => {
            "state = 'finished', worker = NULL, reason = 'done', hold_until = NULL, outcome = 'completed', finished_at = now()"
        }
    }
}

fn delivery_shape(state: DeliveryStatus) -> &'static str {
    match state {
        DeliveryStatus::Received => {
            "state = 'received', reason = NULL, decided_at = NULL, worker = NULL, lease_until = NULL"
        }
        DeliveryStatus::Waiting => {
            "state = 'waiting', reason = 'forge-unavailable', decided_at = NULL, worker = NULL, lease_until = NULL"
        }
        DeliveryStatus::Decided => {
            "state = 'decided', reason = NULL, decided_at = now(), worker = NULL, lease_until = NULL"
        }
        DeliveryStatus::Abandoned => {
            "state = 'abandoned', reason = 'patience-ended', decided_at = now(), worker = NULL, lease_until = NULL"
        }
    }
}

async fn set(queue: &Queue, table: &str, what: &str) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(format!("UPDATE {table} SET {what}")))
        .execute(queue.pool())
        .await
        .map(|_| ())
}

/// Brings the only row into a state without asking the arrows.
async fn force(queue: &Queue, table: &str, shape: &str) {
    let sql = format!(
        "ALTER TABLE {table} DISABLE TRIGGER {table}_arrows; UPDATE {table} SET {shape}; ALTER TABLE {table} ENABLE TRIGGER {table}_arrows"
    );
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(queue.pool())
        .await
        .expect("the shape is right");
}

fn refused(result: Result<(), sqlx::Error>) -> bool {
    match result {
        Ok(()) => false,
        Err(sqlx::Error::Database(error)) => {
            assert_eq!(
                error.code().as_deref(),
                Some("23514"),
                "refused by a CHECK or an arrow: {error}"
            );
            true
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_job_moves_only_along_the_arrows_of_its_diagram() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    for from in JobStatus::ALL {
        for to in JobStatus::ALL {
            if from == to && *from != JobStatus::Finished {
                continue; // a write within a state
            }
            force(&queue, "jobs", job_shape(*from)).await;
            let was_refused = refused(set(&queue, "jobs", job_shape(*to)).await);
            assert_eq!(!was_refused, from.may_become(*to), "{from} → {to}");
        }
    }
}

#[tokio::test]
async fn a_delivery_moves_only_along_the_arrows_of_its_diagram() {
    let queue = fresh().await;
    deliver(&queue, "a").await;
    for from in DeliveryStatus::ALL {
        for to in DeliveryStatus::ALL {
            if from == to && matches!(from, DeliveryStatus::Received | DeliveryStatus::Waiting) {
                continue; // a write within a state
            }
            force(&queue, "deliveries", delivery_shape(*from)).await;
            let was_refused = refused(set(&queue, "deliveries", delivery_shape(*to)).await);
            assert_eq!(!was_refused, from.may_become(*to), "{from} → {to}");
        }
    }
}

#[tokio::test]
async fn a_job_without_the_shape_of_its_state_is_refused() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    for wrong in [
        "worker = 'w'",
        "outcome = 'completed'",
        "finished_at = now()",
        "state = 'running', attempt = 1",
        "state = 'running', worker = 'w', attempt = 0",
        "state = 'running', worker = 'w', attempt = 1, reason = 'done'",
        "state = 'held'",
        "state = 'held', reason = 'paused', worker = 'w'",
        "state = 'finished', outcome = 'completed', finished_at = now()",
        "state = 'finished', reason = 'done', finished_at = now()",
        "state = 'finished', reason = 'done', outcome = 'splendid', finished_at = now()",
        "state = 'asleep'",
        "stop_by = 'olga'",
    ] {
        assert!(refused(set(&queue, "jobs", wrong).await), "{wrong}");
    }
}

#[tokio::test]
async fn a_delivery_without_the_shape_of_its_state_is_refused() {
    let queue = fresh().await;
    deliver(&queue, "a").await;
    for wrong in [
        "reason = 'too-old'",
        "worker = 'w'",
        "state = 'waiting'",
        "state = 'decided'",
        "state = 'decided', decided_at = now(), worker = 'w', lease_until = now()",
        "state = 'abandoned', decided_at = now()",
        "state = 'lost'",
    ] {
        assert!(refused(set(&queue, "deliveries", wrong).await), "{wrong}");
    }
}

#[tokio::test]
async fn an_output_without_the_shape_of_its_state_is_refused_and_only_a_status_is_posted_again() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    for wrong in [
        "state = 'posted'",
        "state = 'failed'",
        "state = 'posted', posted_at = now(), reason = 'subject-gone'",
        "kind = 'comment', ordinal = -1, job_id = NULL",
        "kind = 'status', ordinal = 1",
        "event_id = NULL",
    ] {
        assert!(refused(set(&queue, "outputs", wrong).await), "{wrong}");
    }
    set(&queue, "outputs", "state = 'posted', posted_at = now()")
        .await
        .unwrap();
    assert!(refused(set(&queue, "outputs", "state = 'pending'").await));
    assert!(refused(
        set(&queue, "outputs", "state = 'failed', reason = 'subject-gone'").await
    ));
}

#[tokio::test]
async fn two_running_jobs_of_one_lane_or_two_fresh_ones_of_one_series_are_refused_by_the_database_itself() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    claim(&queue, "w").await;
    job(&queue, 1, 7, 42).await;
    let second = sqlx::query("UPDATE jobs SET state = 'running', worker = 'w', attempt = 1 WHERE state = 'queued'")
        .execute(queue.pool())
        .await
        .expect_err("one lane, two running");
    assert!(second.to_string().contains("jobs_one_running_per_lane"), "{second}");
    let twin = sqlx::query(
        "INSERT INTO jobs (lane_id, repository_id, series, trigger_id, flow, forge, image, data_version, data)
            SELECT lane_id, repository_id, series, trigger_id, flow, forge, image, data_version, data FROM jobs WHERE state = 'queued'",
    )
    .execute(queue.pool())
    .await
    .expect_err("one series, two that nobody claimed");
    assert!(twin.to_string().contains("jobs_one_waiting_per_series"), "{twin}");
}

#[tokio::test]
async fn a_schema_that_is_older_or_newer_is_named() {
    let queue = fresh().await;
    queue.check_schema().await.unwrap();
    assert_eq!(queue.deployment_id().await.unwrap().len(), 12);
    queue.migrate().await.expect("a second time changes nothing");
    sqlx::query("UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1")
        .execute(queue.pool())
        .await
        .unwrap();
    let newer = queue.check_schema().await;
    assert!(
        matches!(&newer, Err(queue::StoreError::Schema { found, needed: 1 }) if found == "9999"),
        "got {newer:?}"
    );
}
