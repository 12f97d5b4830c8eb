//! Reservations can not pass a cap together, and what is not settled stays charged.

use contract::Micros;
use queue::{Attempt, Caps, NewReservation, Queue, Reason, Reserved, Settlement};

use crate::world::{claim, fresh, job, number};

fn worst(tokens: i64, cost: i64) -> NewReservation {
    NewReservation {
        provider: "local".to_owned(),
        model: "m".to_owned(),
        worst_tokens: tokens,
        worst_cost: Micros(cost),
    }
}

fn used(tokens: i64, cost: i64) -> Settlement {
    Settlement {
        input: tokens - 1,
        output: 1,
        tokens,
        cost: Micros(cost),
        status: "200".to_owned(),
        ..Settlement::default()
    }
}

async fn reserve_20_at_once(queue: &Queue, claims: &[queue::Claim], caps: &Caps) -> (usize, Vec<Reason>) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (queue, claim, caps) = (queue.clone(), claims[n % claims.len()].clone(), caps.clone());
        tasks.spawn(async move { queue.reserve_model(&claim, &worst(100, 1_000), &caps).await.unwrap() });
    }
    let all = tasks.join_all().await;
    let refused = all
        .iter()
        .filter_map(|one| match one {
            Reserved::Yes(_) => None,
            Reserved::No { cap } => Some(*cap),
        })
        .collect::<Vec<_>>();
    (20 - refused.len(), refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_parallel_requests_of_one_run_stay_within_each_of_its_caps() {
    for (caps, granted, word) in [
        (
            Caps {
                run_requests: Some(7),
                ..Caps::default()
            },
            7,
            Reason::RequestsCap,
        ),
        (
            Caps {
                run_tokens: Some(550),
                ..Caps::default()
            },
            5,
            Reason::TokensCap,
        ),
        (
            Caps {
                run_cost: Some(Micros(3_000)),
                ..Caps::default()
            },
            3,
            Reason::CostCap,
        ),
        (
            Caps {
                day_tokens: Some(450),
                ..Caps::default()
            },
            4,
            Reason::DayTokensCap,
        ),
        (
            Caps {
                day_cost: Some(Micros(2_999)),
                ..Caps::default()
            },
            2,
            Reason::DayCostCap,
        ),
    ] {
        let queue = fresh().await;
        job(&queue, 1, 7, 41).await;
        let claim = claim(&queue, "w").await;
        let (yes, refused) = reserve_20_at_once(&queue, std::slice::from_ref(&claim), &caps).await;
        assert_eq!(yes, granted, "{caps:?}");
        assert!(refused.iter().all(|reason| *reason == word), "{caps:?}: {refused:?}");
        let spend = queue.run_spend(claim.job, claim.attempt).await.unwrap();
        assert_eq!(
            spend.requests,
            i64::try_from(granted).unwrap(),
            "a refusal leaves no row"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_together_stay_within_the_days_cap() {
    let queue = fresh().await;
    let mut claims = Vec::new();
    for n in 0..4 {
        job(&queue, 1, 7 + n, 41 + n).await;
        claims.push(claim(&queue, "w").await);
    }
    let caps = Caps {
        day_cost: Some(Micros(9_500)),
        run_cost: Some(Micros(5_000)),
        ..Caps::default()
    };
    let (yes, refused) = reserve_20_at_once(&queue, &claims, &caps).await;
    assert_eq!(yes, 9);
    assert!(
        refused
            .iter()
            .all(|reason| *reason == Reason::DayCostCap || *reason == Reason::CostCap),
        "{refused:?}"
    );
    assert_eq!(queue.day_spend().await.unwrap().1.cost, Micros(9_000));
}

#[tokio::test]
async fn a_settled_request_gives_back_what_it_did_not_use() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    let caps = Caps {
        run_tokens: Some(150),
        ..Caps::default()
    };
    let Reserved::Yes(first) = queue.reserve_model(&claim, &worst(100, 1_000), &caps).await.unwrap() else {
        panic!("the first fits")
    };
    assert_eq!(
        queue.reserve_model(&claim, &worst(100, 1_000), &caps).await.unwrap(),
        Reserved::No { cap: Reason::TokensCap }
    );
    queue.settle_model(first, &used(20, 200)).await.unwrap();
    queue.settle_model(first, &used(90, 900)).await.unwrap();
    assert!(matches!(
        queue.reserve_model(&claim, &worst(100, 1_000), &caps).await.unwrap(),
        Reserved::Yes(_)
    ));

    let spend = queue.run_spend(claim.job, claim.attempt).await.unwrap();
    assert_eq!(
        (spend.requests, spend.tokens, spend.cost),
        (2, 120, Micros(1_200)),
        "settled once, the other in full"
    );
    let (_, day) = queue.day_spend().await.unwrap();
    assert_eq!(
        (day.requests, day.tokens, day.cost, day.output),
        (2, 120, Micros(1_200), 1)
    );
    assert_eq!(
        queue.run_spend(claim.job, Attempt(9)).await.unwrap(),
        queue::Spend::default()
    );
    let requests = queue.model_requests(claim.job).await.unwrap();
    assert_eq!(
        (
            requests[0].tokens,
            requests[0].status.as_deref(),
            requests[1].status.as_deref()
        ),
        (20, Some("200"), None)
    );
}

#[tokio::test]
async fn the_rows_that_are_locked_say_the_same_as_the_requests_they_sum() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    for n in 1..=10 {
        let reserved = queue
            .reserve_model(&claim, &worst(100 * n, 7 * n), &Caps::default())
            .await
            .unwrap();
        let Reserved::Yes(id) = reserved else {
            panic!("there is no cap")
        };
        if n % 2 == 0 {
            queue.settle_model(id, &used(n, n)).await.unwrap();
        }
    }
    let difference = number(
        &queue,
        "SELECT (SELECT sum(tokens + cost * 1000) FROM run_spend)::bigint
            - (SELECT sum(COALESCE(tokens, worst_tokens) + COALESCE(cost, worst_cost) * 1000) FROM model_requests)::bigint",
    )
    .await;
    assert_eq!(difference, 0);
}
