//! Law 2: what happened makes each job once, under however many delivery ids it arrives.

use queue::{Call, DeliveryVerdict, NewDecision, Reason, TriggerId, read::Verdict};

use crate::world::{LONG, claim, decide, deliver, fire, fires, fresh, number, take, worker};

#[tokio::test]
async fn the_same_comment_under_a_second_delivery_id_is_a_duplicate_and_makes_nothing() {
    let queue = fresh().await;
    let verdict = fires(fire(1, 7, 41, "@pi triage"));
    let first = decide(&queue, "first", &verdict).await;
    let second = decide(&queue, "second", &verdict).await;

    assert_eq!(second.events[0].duplicate_of, Some(first.events[0].event));
    assert!(second.events[0].jobs.is_empty());
    assert_eq!(number(&queue, "SELECT count(*) FROM jobs").await, 1);
    assert_eq!(number(&queue, "SELECT count(*) FROM outputs").await, 1);

    let told = queue.explain("second").await.unwrap();
    let event = &told.deliveries[0].events[0];
    assert_eq!(event.decisions[0].reason, Some(Reason::DuplicateOf));
    assert_eq!(
        event.duplicate_of_delivery,
        Some(queue.explain("first").await.unwrap().deliveries[0].row.id)
    );
    assert_eq!(told.deliveries[0].row.no, Some(Reason::DuplicateOf));
}

#[tokio::test]
async fn two_hooks_that_bring_the_same_comment_at_the_same_moment_make_one_job() {
    for round in 0..10 {
        let queue = fresh().await;
        deliver(&queue, "repository hook").await;
        deliver(&queue, "organisation hook").await;
        let (one, other) = (take(&queue).await, take(&queue).await);
        let verdict = fires(fire(1, 7, 41, "@pi triage"));

        let (one, other) = tokio::join!(queue.decide(&one, &verdict), queue.decide(&other, &verdict));

        let (one, other) = (one.unwrap(), other.unwrap());
        let duplicates = [&one, &other]
            .iter()
            .filter(|decided| decided.events[0].duplicate_of.is_some())
            .count();
        assert_eq!(duplicates, 1, "round {round}: {one:?} {other:?}");
        assert_eq!(number(&queue, "SELECT count(*) FROM jobs").await, 1, "round {round}");
    }
}

#[tokio::test]
async fn a_key_outlives_the_delivery_that_brought_it() {
    let queue = fresh().await;
    let verdict = fires(fire(1, 7, 41, "@pi"));
    let first = decide(&queue, "first", &verdict).await;
    let claim = claim(&queue, "w").await;
    queue.finish(&claim, &crate::leases::completed()).await.unwrap();
    crate::world::change(&queue, "UPDATE deliveries SET decided_at = now() - interval '90 days'").await;
    assert_eq!(queue.prune(LONG).await.unwrap().deliveries, 1);

    assert_eq!(
        queue.known_event("lab", "comment/1/41/created").await.unwrap(),
        Some(first.events[0].event)
    );
    let again = decide(&queue, "again", &verdict).await;
    assert!(again.events[0].duplicate_of.is_some());
    assert_eq!(number(&queue, "SELECT count(*) FROM jobs").await, 1);
}

#[tokio::test]
async fn a_later_comment_joins_the_job_that_nobody_claimed_and_both_reach_it() {
    let queue = fresh().await;
    let first = decide(&queue, "a", &fires(fire(1, 7, 41, "@pi triage"))).await;
    let second = decide(&queue, "b", &fires(fire(1, 7, 42, "@pi and look at the log"))).await;

    let trigger = TriggerId::from("comment-triage");
    let (made, joined) = (first.events[0].jobs[&trigger], second.events[0].jobs[&trigger]);
    assert!(!made.joined && joined.joined);
    assert_eq!(made.job, joined.job);
    let told = queue.explain("b").await.unwrap();
    assert_eq!(told.deliveries[0].events[0].decisions[0].verdict, Verdict::Joined);

    let claim = claim(&queue, "w").await;
    let texts: Vec<_> = claim.asked.iter().map(|asked| asked.text.as_str()).collect();
    assert_eq!(texts, ["@pi triage", "@pi and look at the log"]);
    assert_eq!(
        number(&queue, "SELECT count(*) FROM outputs WHERE kind = 'reaction'").await,
        2,
        "each comment gets its reaction"
    );
}

#[tokio::test]
async fn a_running_job_takes_no_later_comment() {
    let queue = fresh().await;
    decide(&queue, "a", &fires(fire(1, 7, 41, "@pi triage"))).await;
    let claim = claim(&queue, "w").await;
    let second = decide(&queue, "b", &fires(fire(1, 7, 42, "@pi again"))).await;
    let made = second.events[0].jobs.values().next().unwrap();
    assert!(!made.joined);
    assert_ne!(made.job, claim.job);
    assert_eq!(number(&queue, "SELECT count(*) FROM job_events").await, 2);
}

#[tokio::test]
async fn comments_that_arrive_while_workers_claim_are_all_answered_by_some_job() {
    let queue = fresh().await;
    let mut tasks = tokio::task::JoinSet::new();
    for comment in 0..40 {
        let decider = queue.clone();
        tasks.spawn(async move {
            deliver(&decider, &format!("d{comment}")).await;
            let delivery = decider
                .take_delivery(&worker("decider"), LONG)
                .await
                .unwrap()
                .expect("as many as deliveries");
            let key: i64 = delivery.delivery[1..].parse().unwrap();
            decider.decide(&delivery, &fires(fire(1, 7, key, "@pi"))).await.unwrap();
        });
        let queue = queue.clone();
        tasks.spawn(async move {
            for claim in queue.claim(&crate::world::request("w", 2)).await.unwrap() {
                queue.finish(&claim, &crate::leases::completed()).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(number(&queue, "SELECT count(*) FROM job_events").await, 40);
    let rest = number(&queue, "SELECT count(*) FROM jobs WHERE state = 'queued'").await;
    assert!(rest <= 1, "of one series {rest} wait");
    assert_eq!(
        number(&queue, "SELECT queued::bigint FROM lanes").await,
        rest,
        "the lane's count is the truth"
    );
}

#[tokio::test]
async fn every_trigger_gets_its_decision_with_its_reason() {
    let queue = fresh().await;
    let mut verdict = fires(fire(1, 7, 41, "@pi"));
    verdict.events[0].decisions.push(NewDecision {
        trigger: Some(TriggerId::from("nightly")),
        call: Call::No {
            reason: triggers::NoMatch::OtherType.into(),
            detail: "it is for the clock".to_owned(),
        },
    });
    decide(&queue, "a", &verdict).await;
    let told = queue.explain("a").await.unwrap();
    let row = &told.deliveries[0].row;
    assert_eq!((row.jobs.len(), row.no), (1, None));
    let decisions = &told.deliveries[0].events[0].decisions;
    assert_eq!(decisions.len(), 2);
    assert_eq!(decisions[1].reason, Some(Reason::OtherType));
    assert_eq!(
        queue.decisions_of(&TriggerId::from("nightly"), 10).await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_verdict_that_breaks_off_leaves_nothing_behind() {
    let queue = fresh().await;
    let mut verdict = fires(fire(1, 7, 41, "@pi"));
    // two answers of one trigger to one event: the table refuses that
    let double = verdict.events[0].decisions[0].clone();
    verdict.events[0].decisions.push(double);
    deliver(&queue, "a").await;
    let delivery = take(&queue).await;
    queue
        .decide(&delivery, &verdict)
        .await
        .expect_err("the second decision of one trigger");
    for table in [
        "SELECT count(*) FROM events",
        "SELECT count(*) FROM event_keys",
        "SELECT count(*) FROM jobs",
        "SELECT count(*) FROM lanes",
    ] {
        assert_eq!(number(&queue, table).await, 0, "{table}");
    }
    queue
        .decide(&delivery, &DeliveryVerdict::default())
        .await
        .expect("it is still to be decided");
}
