//! What every test begins with: a migrated database, and short ways to get a job into it.

use std::time::Duration;

use chrono::DateTime;
use queue::{
    Actor, Asked, Call, Claim, ClaimRequest, Connect, Decided, Delivery, DeliveryVerdict, EventVerdict, Fire, JobData,
    JobId, Limits, NewDecision, NewDelivery, NewOutput, OutputKind, Queue, Receipt, Repository, Subject, TriggerId,
    WorkerName, lane_of_subject, series_of,
};
use serde_json::json;
use testkit::postgres::Scratch;

/// Longer than any test runs.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A fresh database with the schema in it.
pub(crate) async fn fresh() -> Queue {
    let database = Scratch::shared().await.database().await;
    let mut connect = Connect::new(database.url, "queue tests");
    connect.acquire_timeout = Duration::from_secs(60);
    connect.statement_timeout = Duration::from_secs(60);
    let queue = Queue::connect(&connect).await.expect("the scratch server answers");
    queue.migrate().await.expect("the migrations run");
    queue
}

pub(crate) fn worker(name: &str) -> WorkerName {
    WorkerName::from(name)
}

pub(crate) fn repository(id: i64) -> Repository {
    Repository {
        id,
        owner: "lab".to_owned(),
        name: format!("r{id}"),
    }
}

/// The data of a job on issue `number` of repository `id`.
pub(crate) fn data(id: i64, number: i64) -> JobData {
    JobData {
        version: JobData::VERSION,
        trigger: serde_json::from_value(json!({
            "id": "comment-triage",
            "line": 3,
            "on": { "type": "comment", "phrase": "@pi" },
            "run": { "kind": "forgejo", "flow": "triage", "excludeTools": ["bash", "powershell", "edit", "write"] },
        }))
        .expect("a trigger"),
        forge: "lab".to_owned(),
        kind: triggers::RunKind::Forgejo,
        repository: repository(id),
        subject: Some(Subject {
            kind: triggers::Target::Issue,
            number,
            title: "the door \u{0} is stuck".to_owned(),
            text: "it does not open".to_owned(),
            head: None,
            head_is_fork: false,
            url: None,
        }),
        default_branch: Some("main".to_owned()),
        image: "pi-job:2.0.0".to_owned(),
        limits: Limits::default(),
    }
}

pub(crate) fn asked(comment: i64, text: &str) -> Asked {
    Asked {
        comment: Some(comment),
        actor: Actor {
            id: 7,
            login: "mira".to_owned(),
        },
        allowed_by: "write access".to_owned(),
        text: text.to_owned(),
        url: None,
        at: DateTime::UNIX_EPOCH,
    }
}

pub(crate) fn output(kind: OutputKind, body: &str) -> NewOutput {
    NewOutput {
        kind,
        forge: "lab".to_owned(),
        repository: repository(1),
        subject: Some(7),
        comment: None,
        body: body.to_owned(),
        ordinal: 0,
        marker: None,
    }
}

/// What fires the trigger for a comment on that issue.
pub(crate) fn fire(repository: i64, number: i64, comment: i64, text: &str) -> Fire {
    let lane = lane_of_subject("lab", repository, number);
    let trigger = TriggerId::from("comment-triage");
    Fire {
        series: Some(series_of(&lane, &trigger, "triage")),
        lane,
        data: data(repository, number),
        asked: Some(asked(comment, text)),
        reaction: Some(NewOutput {
            comment: Some(comment),
            ..output(OutputKind::Reaction, "eyes")
        }),
    }
}

/// The verdict "this comment fires".
pub(crate) fn fires(fire: Fire) -> DeliveryVerdict {
    let comment = fire.asked.as_ref().and_then(|asked| asked.comment).unwrap_or_default();
    DeliveryVerdict {
        reason: None,
        detail: String::new(),
        events: vec![EventVerdict {
            key: format!("comment/{}/{comment}/created", fire.data.repository.id),
            kind: "comment-created".to_owned(),
            at: None,
            repository: Some(fire.data.repository.clone()),
            subject: fire.data.subject.as_ref().map(|subject| subject.number),
            actor: Some("mira".to_owned()),
            data: json!({ "comment": comment }),
            decisions: vec![NewDecision {
                trigger: Some(TriggerId::from("comment-triage")),
                call: Call::Fire(Box::new(fire)),
            }],
        }],
    }
}

/// Stores a delivery under that id.
pub(crate) async fn deliver(queue: &Queue, delivery: &str) -> Receipt {
    queue
        .store_delivery(&NewDelivery {
            forge: "lab",
            kind: "forgejo",
            delivery,
            event: "issue_comment",
            event_type: "issue_comment",
            headers: &json!({ "x-forgejo-event": "issue_comment" }),
            body: b"{\"action\":\"created\"}",
        })
        .await
        .expect("a delivery is stored")
}

/// Takes the delivery that is due.
pub(crate) async fn take(queue: &Queue) -> Delivery {
    queue
        .take_delivery(&worker("decider"), LONG)
        .await
        .expect("taking works")
        .expect("a delivery is due")
}

/// A delivery of its own, decided at once.
pub(crate) async fn decide(queue: &Queue, delivery: &str, verdict: &DeliveryVerdict) -> Decided {
    deliver(queue, delivery).await;
    let delivery = take(queue).await;
    queue.decide(&delivery, verdict).await.expect("a verdict is written")
}

/// A queued job on issue `number` of repository `id`, from comment `comment`.
pub(crate) async fn job(queue: &Queue, id: i64, number: i64, comment: i64) -> JobId {
    let decided = decide(
        queue,
        &format!("d-{id}-{comment}"),
        &fires(fire(id, number, comment, "@pi triage this")),
    )
    .await;
    decided.events[0].jobs.values().next().expect("it fired").job
}

pub(crate) fn request(name: &str, slots: u16) -> ClaimRequest {
    ClaimRequest {
        worker: worker(name),
        slots,
        max_data_version: JobData::VERSION,
        not_images: Vec::new(),
    }
}

/// Claims one job, which must be there.
pub(crate) async fn claim(queue: &Queue, name: &str) -> Claim {
    queue
        .claim(&request(name, 1))
        .await
        .expect("claiming works")
        .pop()
        .expect("a job is due")
}

/// One value that a test looks at.
pub(crate) async fn number(queue: &Queue, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(queue.pool()).await.expect("a number")
}

/// Moves rows.
pub(crate) async fn change(queue: &Queue, sql: &'static str) {
    sqlx::query(sql)
        .execute(queue.pool())
        .await
        .expect("the rows are moved");
}

/// Until a statement of this database waits for another's lock.
pub(crate) async fn until_somebody_waits(queue: &Queue) {
    let begin = tokio::time::Instant::now();
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while number(queue, waiting).await == 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "nobody waits");
        tokio::task::yield_now().await;
    }
}
