//! Asking and telling a forge, against a stub that answers and refuses as Forgejo does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::time::Duration;

use forges::{
    Api, ApiError, ApiSettings, ForgeKind, Permission, PermissionLevel, ReactionTarget, RepoRef, SetupError,
    SubjectState,
};
use secrecy::{ExposeSecret, SecretString};
use testkit::forge::{Access, Fault, File, ISSUE_TITLE, Scope, StubForge};

const REPO: &str = "lab/widgets";

fn settings(url: &str, token: &str) -> ApiSettings {
    ApiSettings {
        kind: ForgeKind::Forgejo,
        url: url.to_owned(),
        token: SecretString::from(token),
        permission_token: None,
        plain_http: false,
    }
}

/// The lab, and ourselves in it.
async fn lab() -> (StubForge, Api, RepoRef) {
    let forge = StubForge::lab();
    let api = Api::new(settings(&forge.url(), &forge.token("pi-bot", &Scope::BOT))).unwrap();
    let repo = api.repository_by_name("lab", "widgets").await.unwrap().repo;
    (forge, api, repo)
}

#[tokio::test]
async fn who_we_are_and_whom_we_speak_to_is_asked() {
    let (forge, api, _) = lab().await;
    let me = api.whoami().await.unwrap();
    assert_eq!((me.id, me.login.as_str()), (7, "pi-bot"));
    assert!(!api.version().await.unwrap().is_empty());

    let narrow = forge.token("pi-bot", &[Scope::WriteRepository, Scope::WriteIssue]);
    let api = Api::new(settings(&forge.url(), &narrow)).unwrap();
    assert_eq!(
        api.whoami().await.unwrap_err(),
        ApiError::Forbidden,
        "the token may not read users"
    );
    let api = Api::new(settings(&forge.url(), "wrong")).unwrap();
    assert_eq!(api.whoami().await.unwrap_err(), ApiError::Unauthorized);
}

#[tokio::test]
async fn a_comment_is_written_read_edited_and_found() {
    let (forge, api, repo) = lab().await;
    let written = api.post_comment(&repo, 1, "first").await.unwrap();
    assert_eq!(
        (written.author.id, written.text.as_str(), written.number),
        (7, "first", Some(1))
    );

    let read = api.comment(&repo, written.id).await.unwrap();
    assert_eq!(read, written);
    let edited = api.edit_comment(&repo, written.id, "second").await.unwrap();
    assert_eq!((edited.id, edited.text.as_str()), (written.id, "second"));

    let all = api.comments_of(&repo, 1, None).await.unwrap();
    assert_eq!(all.iter().map(|comment| comment.id).collect::<Vec<_>>(), [written.id]);
    let since = api
        .comments_since(&repo, written.created_at - Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(since.len(), 1);
    assert_eq!(forge.comments(REPO, 1)[0].body, "second");
}

#[tokio::test]
async fn all_pages_of_the_comments_of_a_repository_are_read_once() {
    let (forge, api, repo) = lab().await;
    let first = forge.comment(REPO, 1, "mira", "0");
    let since = api.comment(&repo, first).await.unwrap().created_at - Duration::from_secs(60);
    for nth in 1..120 {
        forge.comment(REPO, 1, "mira", &nth.to_string());
    }
    let mut ids: Vec<i64> = api
        .comments_since(&repo, since)
        .await
        .unwrap()
        .iter()
        .map(|comment| comment.id)
        .collect();
    assert_eq!(ids.len(), 120);
    ids.dedup();
    assert_eq!(ids.len(), 120);
}

#[tokio::test]
async fn issues_and_pull_requests_are_read() {
    let (forge, api, repo) = lab().await;
    let issue = api.issue(&repo, 1).await.unwrap();
    assert_eq!(
        (issue.title.as_str(), issue.author.login.as_str()),
        (ISSUE_TITLE, "sol")
    );
    assert_eq!((issue.state, issue.is_pull), (SubjectState::Open, false));

    let head = forge.commit(REPO, "turn", &[File::text("NEW.md", "new")], "add a page");
    let number = forge.pull_request(REPO, "mira", "turn", "Turn right", "so it does");
    let pull = api.pull(&repo, number).await.unwrap();
    assert_eq!((pull.head_sha, pull.head_branch.as_str()), (head.clone(), "turn"));
    assert_eq!(
        (pull.head_repo_id, pull.merged, pull.state),
        (Some(repo.id), false, SubjectState::Open)
    );
    assert!(api.issue(&repo, number).await.unwrap().is_pull);

    let branch = api.branch(&repo, "turn").await.unwrap();
    assert_eq!(branch.commit, head);
    assert_eq!(api.branch(&repo, "no/such").await.unwrap_err(), ApiError::NotFound);
}

#[tokio::test]
async fn a_writer_may_not_ask_for_permissions_and_that_is_said_as_such() {
    let (_forge, api, repo) = lab().await;
    assert_eq!(api.permission(&repo, "mira").await.unwrap(), Permission::CannotAsk);
}

#[tokio::test]
async fn the_permission_token_asks_and_the_answer_names_the_account() {
    let (forge, _, repo) = lab().await;
    let api = Api::new(ApiSettings {
        permission_token: Some(SecretString::from(forge.token("nils", &[Scope::ReadRepository]))),
        ..settings(&forge.url(), &forge.token("pi-bot", &Scope::BOT))
    })
    .unwrap();
    for (login, id, level) in [
        ("olga", 2, PermissionLevel::Owner),
        ("nils", 6, PermissionLevel::Admin),
        ("mira", 3, PermissionLevel::Write),
        ("MIRA", 3, PermissionLevel::Write),
        ("ravi", 4, PermissionLevel::Read),
        ("sol", 5, PermissionLevel::Read),
    ] {
        match api.permission(&repo, login).await.unwrap() {
            Permission::Known { level: known, user } => {
                assert_eq!((known.clone(), user.id), (level.clone(), id), "{login}");
                assert_eq!(
                    known.may_write(),
                    Some(!matches!(level, PermissionLevel::Read)),
                    "{login}"
                );
            }
            other => panic!("{login}: {other:?}"),
        }
    }
    assert_eq!(
        api.permission(&repo, "nobody-here").await.unwrap(),
        Permission::NoSuchUser
    );
    assert_eq!(PermissionLevel::Unknown("maintain".to_owned()).may_write(), None);
}

#[tokio::test]
async fn a_renamed_repository_is_followed_by_its_id_also_when_another_took_its_name() {
    let (forge, api, repo) = lab().await;
    forge.rename_repository(REPO, "gadgets");
    api.post_comment(&repo, 1, "still there").await.unwrap();
    assert_eq!(forge.comments("lab/gadgets", 1).len(), 1);
    assert_eq!(api.repository_by_id(repo.id).await.unwrap().repo.name, "gadgets");
    assert!(matches!(
        api.repository_by_name("lab", "widgets").await.unwrap_err(),
        ApiError::Moved(_)
    ));

    // A fresh client, for which the name is not kept.
    let api = Api::new(settings(&forge.url(), &forge.token("pi-bot", &Scope::BOT))).unwrap();
    forge.repository(REPO, &[]);
    forge.allow(REPO, "pi-bot", Access::Write);
    forge.issue(REPO, "sol", "another repository", "");
    api.post_comment(&repo, 1, "and not there").await.unwrap();
    assert_eq!(forge.comments("lab/gadgets", 1).len(), 2);
    assert_eq!(forge.comments(REPO, 1).len(), 0);
}

#[tokio::test]
async fn a_reaction_is_added_and_a_second_one_is_no_fault() {
    let (forge, api, repo) = lab().await;
    let comment = forge.comment(REPO, 1, "mira", "@pi triage");
    for _ in 0..2 {
        api.react(&repo, ReactionTarget::Comment(comment), "eyes")
            .await
            .unwrap();
    }
    api.react(&repo, ReactionTarget::Subject(1), "eyes").await.unwrap();
    assert_eq!(forge.reactions(comment), [("pi-bot".to_owned(), "eyes".to_owned())]);
    let unknown = api
        .react(&repo, ReactionTarget::Comment(comment), "no-such-word")
        .await
        .unwrap_err();
    assert_eq!(unknown, ApiError::Forbidden);
}

#[tokio::test]
async fn each_refusal_is_told_apart_by_its_status() {
    let (forge, api, repo) = lab().await;
    assert_eq!(api.post_comment(&repo, 99, "x").await.unwrap_err(), ApiError::NotFound);
    assert_eq!(
        api.post_comment(&repo, 1, "").await.unwrap_err(),
        ApiError::Invalid(422)
    );
    assert_eq!(api.comment(&repo, 12345).await.unwrap_err(), ApiError::NotFound);
    forge.archive(REPO);
    assert_eq!(api.post_comment(&repo, 1, "x").await.unwrap_err(), ApiError::Archived);
    forge.delete_repository(REPO);
    assert_eq!(api.repository_by_id(repo.id).await.unwrap_err(), ApiError::NotFound);
}

#[tokio::test]
async fn trouble_on_the_way_is_never_final_and_pages_of_proxies_are_not_taken_for_answers() {
    let (forge, api, repo) = lab().await;
    for (fault, expected) in [
        (Fault::page(502), "502"),
        (Fault::status(500), "500"),
        (Fault::cut(), "the connection broke"),
        (Fault::lose_the_answer(), "the connection broke"),
    ] {
        forge.fault(fault.on("POST", "/comments").times(1));
        match api.post_comment(&repo, 1, "x").await.unwrap_err() {
            error @ ApiError::Unavailable { .. } => {
                assert!(!error.is_final());
                assert!(error.to_string().contains(expected), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    forge.fault(Fault::page(200).at("/comments").times(1));
    assert!(matches!(api.comment(&repo, 1).await.unwrap_err(), ApiError::Garbled(_)));
    forge.fault(Fault::page(404).at("/comments").times(1));
    assert_eq!(api.comment(&repo, 1).await.unwrap_err(), ApiError::NotFound);
    forge.fault(Fault::status(429).at("/comments").times(1));
    assert_eq!(
        api.comment(&repo, 1).await.unwrap_err(),
        ApiError::Busy { retry_after: None }
    );
    forge.fault(Fault::forbidden().at("/comments").times(1));
    let forbidden = api.comment(&repo, 1).await.unwrap_err();
    assert!(
        forbidden == ApiError::Forbidden && !forbidden.is_final(),
        "an operator can mend it"
    );

    forge.down();
    let away = api.version().await.unwrap_err();
    assert!(
        matches!(away, ApiError::Unavailable { .. }) && !away.is_final(),
        "{away:?}"
    );
    forge.up();
    api.version().await.unwrap();
}

#[tokio::test]
async fn names_are_encoded_and_no_name_leaves_its_place_in_the_path() {
    let (forge, api, repo) = lab().await;
    for name in ["..", ".", "a/b", "a\\b", "", "a b", "a\nb"] {
        assert_eq!(
            api.repository_by_name("lab", name).await.unwrap_err(),
            ApiError::BadName,
            "{name:?}"
        );
        assert_eq!(
            api.permission(&repo, name).await.unwrap_err(),
            ApiError::BadName,
            "{name:?}"
        );
    }
    assert_eq!(api.branch(&repo, "a/../../x").await.unwrap_err(), ApiError::BadName);
    forge.forget_calls();
    assert_eq!(api.branch(&repo, "a?b#c%2e").await.unwrap_err(), ApiError::NotFound);
    let path = forge.calls().pop().unwrap().path;
    assert!(
        path.ends_with("/branches/a%3Fb%23c%252e") || path.ends_with("/branches/a%3Fb%23c%2e"),
        "{path}"
    );
}

#[tokio::test]
async fn git_gets_the_configured_address_and_the_token_apart_from_it() {
    let forge = StubForge::lab();
    let api = Api::new(settings(&format!("{}/", forge.url()), "t0ken")).unwrap();
    let remote = api.git_remote(&RepoRef {
        id: 1,
        owner: "lab".to_owned(),
        name: "widgets".to_owned(),
    });
    assert_eq!(remote.url, format!("{}/lab/widgets.git", forge.url()));
    assert_eq!(remote.header.expose_secret(), "Authorization: token t0ken");
    assert!(!format!("{remote:?} {api:?}").contains("t0ken"), "no secret in a log");
}

#[test]
fn an_address_that_shows_the_token_on_the_way_is_refused() {
    for url in [
        "http://forge.example.org",
        "http://10.0.0.7:3000",
        "http://localhost.example.org",
    ] {
        assert!(
            matches!(Api::new(settings(url, "t")), Err(SetupError::PlainHttp)),
            "{url}"
        );
        assert!(
            Api::new(ApiSettings {
                plain_http: true,
                ..settings(url, "t")
            })
            .is_ok(),
            "{url}"
        );
    }
    for url in [
        "http://127.0.0.1:3000",
        "http://localhost:3000",
        "http://[::1]:3000",
        "https://f.example.org/forgejo",
    ] {
        assert!(Api::new(settings(url, "t")).is_ok(), "{url}");
    }
    for url in [
        "",
        "forge.example.org",
        "ftp://f.example.org",
        "https://u:p@f.example.org",
        "https://f.example.org/?x=1",
    ] {
        assert!(
            matches!(Api::new(settings(url, "t")), Err(SetupError::BadUrl(_))),
            "{url}"
        );
    }
    for token in ["", "a b", "a\nb"] {
        assert!(matches!(
            Api::new(settings("https://f.example.org", token)),
            Err(SetupError::BadToken("token"))
        ));
    }
    let below = Api::new(settings("https://f.example.org/forgejo", "t")).unwrap();
    assert_eq!(below.base_url().as_str(), "https://f.example.org/forgejo/");
}
