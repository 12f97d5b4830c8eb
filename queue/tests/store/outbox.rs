//! Law 2 at the forge's side: each answer once, and a death in between is seen by who comes after.

use std::time::Duration;

use queue::{Channel, Finish, Heard, OutputKind, OutputStatus, Reason, StoreError};

use crate::leases::completed;
use crate::world::{LONG, change, claim, fresh, job, number, output, worker};

#[tokio::test]
async fn a_job_has_one_answer_per_ordinal_one_refusal_and_one_status() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    for kind in [OutputKind::Comment, OutputKind::Refusal, OutputKind::Status] {
        let first = queue.put_output(&claim, &output(kind, "one")).await.unwrap();
        assert_eq!(
            queue.put_output(&claim, &output(kind, "two")).await.unwrap(),
            first,
            "{kind}"
        );
    }
    let mut second = output(OutputKind::Comment, "another");
    second.ordinal = 1;
    queue.put_output(&claim, &second).await.unwrap();
    assert_eq!(
        number(&queue, "SELECT count(*) FROM outputs WHERE kind <> 'reaction'").await,
        4
    );
    assert_eq!(
        number(&queue, "SELECT count(*) FROM outputs WHERE body = 'two'").await,
        0
    );

    let mut finish = completed();
    finish.outputs = vec![output(OutputKind::Comment, "three")];
    queue
        .finish(&claim, &finish)
        .await
        .expect("the answer that is there stands");
    assert_eq!(
        number(&queue, "SELECT count(*) FROM outputs WHERE kind = 'comment'").await,
        2
    );
}

#[tokio::test]
async fn an_output_is_taken_by_one_and_comes_back_when_that_one_dies() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let dead = queue
        .take_output(&worker("a"), LONG)
        .await
        .unwrap()
        .expect("the reaction");
    assert_eq!(
        (dead.kind, dead.tries, dead.comment),
        (OutputKind::Reaction, 1, Some(41))
    );
    assert!(queue.take_output(&worker("b"), LONG).await.unwrap().is_none());

    change(&queue, "UPDATE outputs SET lease_until = now() - interval '1 second'").await;
    let next = queue
        .take_output(&worker("b"), LONG)
        .await
        .unwrap()
        .expect("it came back");
    assert_eq!(
        (next.id, next.marker, next.tries),
        (dead.id, dead.marker, 2),
        "an earlier try may have arrived"
    );

    for refused in [
        queue.output_posted(&dead, Some(1), None).await,
        queue.delay_output(&dead, Reason::ForgeUnavailable, "", LONG).await,
        queue.fail_output(&dead, Reason::SubjectGone, "").await,
    ] {
        assert!(
            matches!(refused, Err(StoreError::TakenOver { what: "output", .. })),
            "got {refused:?}"
        );
    }
    queue.output_posted(&next, None, None).await.unwrap();
    assert!(queue.take_output(&worker("b"), LONG).await.unwrap().is_none());
}

#[tokio::test]
async fn what_we_posted_is_known_as_ours_for_ever() {
    let queue = fresh().await;
    job(&queue, 1, 7, 41).await;
    let claim = claim(&queue, "w").await;
    change(&queue, "UPDATE outputs SET not_before = now() + interval '1 hour'").await;
    let finish = Finish {
        outputs: vec![output(OutputKind::Comment, "the answer")],
        ..completed()
    };
    queue.finish(&claim, &finish).await.unwrap();
    let posting = queue.take_output(&worker("w"), LONG).await.unwrap().unwrap();
    assert!(!queue.is_own_post("lab", 900).await.unwrap());
    queue
        .output_posted(&posting, Some(900), Some("https://forge.example.org/900"))
        .await
        .unwrap();
    assert!(queue.is_own_post("lab", 900).await.unwrap());
    assert!(!queue.is_own_post("other", 900).await.unwrap());

    change(&queue, "UPDATE jobs SET finished_at = now() - interval '90 days'").await;
    change(
        &queue,
        "UPDATE outputs SET state = 'failed', reason = 'subject-gone' WHERE state = 'pending'",
    )
    .await;
    assert_eq!(queue.prune(LONG).await.unwrap().jobs, 1);
    assert!(queue.is_own_post("lab", 900).await.unwrap());
}

#[tokio::test]
async fn a_status_is_edited_in_place_and_an_edit_during_the_post_is_not_lost() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    claim(&queue, "w").await;
    change(&queue, "UPDATE outputs SET not_before = now() + interval '1 hour'").await;

    let id = queue
        .put_status(job, &output(OutputKind::Status, "working"))
        .await
        .unwrap();
    let posting = queue.take_output(&worker("w"), LONG).await.unwrap().unwrap();
    assert_eq!(
        queue
            .put_status(job, &output(OutputKind::Status, "still working"))
            .await
            .unwrap(),
        id
    );
    queue.output_posted(&posting, Some(55), None).await.unwrap();

    let editing = queue
        .take_output(&worker("w"), LONG)
        .await
        .unwrap()
        .expect("the text changed meanwhile");
    assert_eq!(
        (editing.id, editing.remote_id, editing.body.as_str()),
        (id, Some(55), "still working")
    );
    queue.output_posted(&editing, Some(55), None).await.unwrap();
    assert!(queue.take_output(&worker("w"), LONG).await.unwrap().is_none());

    queue
        .put_status(job, &output(OutputKind::Status, "still working"))
        .await
        .unwrap();
    assert!(
        queue.take_output(&worker("w"), LONG).await.unwrap().is_none(),
        "the same text is no edit"
    );
    queue
        .put_status(job, &output(OutputKind::Status, "done"))
        .await
        .unwrap();
    assert_eq!(
        queue.take_output(&worker("w"), LONG).await.unwrap().unwrap().body,
        "done"
    );
}

#[tokio::test]
async fn an_output_that_waits_or_failed_says_why() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    let taken = queue.take_output(&worker("w"), LONG).await.unwrap().unwrap();
    queue
        .delay_output(&taken, Reason::ForgeUnavailable, "503", Duration::ZERO)
        .await
        .unwrap();
    let taken = queue.take_output(&worker("w"), LONG).await.unwrap().unwrap();
    queue.fail_output(&taken, Reason::SubjectGone, "404").await.unwrap();
    let told = &queue.job(job).await.unwrap().unwrap().outputs[0];
    assert_eq!(
        (told.status, told.reason, told.detail.as_str()),
        (OutputStatus::Failed, Some(Reason::SubjectGone), "404")
    );
    assert_eq!(queue.overview().await.unwrap().outputs_failed, 1);
}

#[tokio::test]
async fn a_job_that_nobody_has_any_more_still_says_so_once() {
    let queue = fresh().await;
    let job = job(&queue, 1, 7, 41).await;
    let early = queue
        .put_output_of_finished(job, &output(OutputKind::Refusal, "lost"))
        .await;
    assert!(matches!(early, Err(StoreError::WrongState { .. })), "got {early:?}");
    queue.stop(job, "olga").await.unwrap();
    let first = queue
        .put_output_of_finished(job, &output(OutputKind::Refusal, "lost"))
        .await
        .unwrap();
    assert_eq!(
        queue
            .put_output_of_finished(job, &output(OutputKind::Refusal, "again"))
            .await
            .unwrap(),
        first
    );
}

#[tokio::test]
async fn a_burst_is_one_notification_or_two_and_never_none() {
    let queue = fresh().await;
    let mut listener = queue.listen(&[Channel::Deliveries]).await.unwrap();
    for n in 0..20 {
        crate::world::deliver(&queue, &format!("d{n}")).await;
    }
    let heard = tokio::time::timeout(Duration::from_secs(10), listener.heard())
        .await
        .expect("something is heard")
        .unwrap();
    assert_eq!(heard, Heard::Changed(Channel::Deliveries));
}

#[tokio::test]
async fn a_listener_whose_connection_broke_says_so_and_hears_again() {
    let queue = fresh().await;
    let mut listener = queue.listen(&[Channel::Jobs]).await.unwrap();
    change(
        &queue,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%LISTEN%'",
    )
    .await;
    let patience = Duration::from_secs(30);
    let first = tokio::time::timeout(patience, listener.heard())
        .await
        .expect("the break is noticed")
        .unwrap();
    assert_eq!(first, Heard::Reconnected);
    queue.resume("olga").await.unwrap();
    let second = tokio::time::timeout(patience, listener.heard())
        .await
        .expect("it listens again")
        .unwrap();
    assert_eq!(second, Heard::Changed(Channel::Jobs));
}

#[tokio::test]
async fn an_end_that_nobody_said_is_found_until_it_is_said() {
    let queue = fresh().await;
    let lost = job(&queue, 1, 7, 41).await;
    assert_eq!(queue.expire(Duration::ZERO).await.unwrap(), [lost]);
    let done = job(&queue, 1, 8, 42).await;
    let claim = claim(&queue, "w").await;
    queue
        .put_status(done, &output(OutputKind::Status, "working"))
        .await
        .unwrap();
    queue.finish(&claim, &completed()).await.unwrap();

    let found = queue.unanswered(LONG).await.unwrap();
    let both: Vec<_> = found.iter().map(|one| (one.job, one.answer)).collect();
    assert_eq!(
        both,
        [(lost, true), (done, false)],
        "the lost one has no answer, the other's status says that it works"
    );
    assert!(
        queue.unanswered(Duration::ZERO).await.unwrap().is_empty(),
        "of old ones nobody speaks"
    );

    queue
        .put_output_of_finished(lost, &output(OutputKind::Refusal, "it waited too long"))
        .await
        .unwrap();
    queue
        .put_status(done, &output(OutputKind::Status, "over"))
        .await
        .unwrap();
    assert!(queue.unanswered(LONG).await.unwrap().is_empty());
}
