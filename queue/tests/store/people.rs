//! Who may sign in, and that nothing of it can be read back.

use std::time::Duration;

use queue::{Role, StoreError, UserId};

use crate::world::{LONG, change, fresh};

const TOKEN: [u8; 32] = [7; 32];

#[tokio::test]
async fn a_session_lasts_as_long_as_it_was_given_and_ends_when_ended() {
    let queue = fresh().await;
    assert!(
        queue
            .put_user("olga", "$argon2id$…", Role::Operator, "cli:root")
            .await
            .unwrap()
    );
    let olga = queue.user("olga").await.unwrap().unwrap();
    queue.start_session(olga.id, &TOKEN, LONG).await.unwrap();
    let session = queue.session(&TOKEN).await.unwrap().unwrap();
    assert_eq!(
        (session.user.name.as_str(), session.user.role),
        ("olga", Role::Operator)
    );
    assert!(queue.session(&[8; 32]).await.unwrap().is_none());

    change(&queue, "UPDATE sessions SET expires_at = now()").await;
    assert!(queue.session(&TOKEN).await.unwrap().is_none());
    assert_eq!(queue.prune(LONG).await.unwrap().sessions, 1);

    queue.start_session(olga.id, &TOKEN, LONG).await.unwrap();
    queue.end_session(&TOKEN).await.unwrap();
    assert!(queue.session(&TOKEN).await.unwrap().is_none());
}

#[tokio::test]
async fn a_new_password_a_new_role_or_a_removal_ends_every_session() {
    let queue = fresh().await;
    queue.put_user("olga", "one", Role::Operator, "cli:root").await.unwrap();
    let olga = queue.user("olga").await.unwrap().unwrap().id;
    queue.start_session(olga, &TOKEN, LONG).await.unwrap();
    assert!(!queue.put_user("olga", "two", Role::Viewer, "cli:root").await.unwrap());
    assert!(queue.session(&TOKEN).await.unwrap().is_none());

    queue.start_session(olga, &TOKEN, LONG).await.unwrap();
    assert!(queue.remove_user("olga", "cli:root").await.unwrap());
    assert!(!queue.remove_user("olga", "cli:root").await.unwrap());
    assert!(queue.session(&TOKEN).await.unwrap().is_none());
    assert!(queue.users().await.unwrap().is_empty());
    let gone = queue.start_session(UserId(99), &TOKEN, Duration::from_secs(1)).await;
    assert!(
        matches!(gone, Err(StoreError::NotFound { what: "user", .. })),
        "got {gone:?}"
    );
}

#[tokio::test]
async fn what_was_done_is_written_down_with_who_did_it() {
    let queue = fresh().await;
    queue.put_user("olga", "one", Role::Operator, "cli:root").await.unwrap();
    queue.pause("olga").await.unwrap();
    queue.resume("olga").await.unwrap();
    let log = queue.audit_log(None, 10).await.unwrap();
    let told: Vec<_> = log.iter().map(|row| (row.who.as_str(), row.action.as_str())).collect();
    assert_eq!(told, [("olga", "resume"), ("olga", "pause"), ("cli:root", "user-add")]);
    assert_eq!(queue.audit_log(Some(log[1].id), 10).await.unwrap().len(), 1);
    assert!(
        !log.iter().any(|row| row.detail.to_string().contains("one")),
        "no password is written down"
    );
}
