//! The JSON of a forge's objects, field for field as Forgejo writes them, in the API's answers and in deliveries.

use super::git;
use super::world::{Access, Comment, Issue, Label, LabelChange, Pull, Reaction, Repo, User, World};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

/// `2026-11-30T21:13:10Z`.
pub(crate) fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub(crate) fn user(world: &World, id: i64) -> Value {
    let Some(user) = world.users.get(&id) else {
        return Value::Null;
    };
    let User {
        login,
        full_name,
        site_admin,
        created,
        owners,
        ..
    } = user;
    let email = if owners.is_some() {
        String::new()
    } else {
        format!("{login}@noreply.example.org")
    };
    json!({
        "id": id, "login": login, "login_name": "", "source_id": 0, "full_name": full_name, "email": email,
        "avatar_url": format!("{}/avatars/{id:032x}", world.base), "html_url": format!("{}/{login}", world.base),
        "language": "", "is_admin": site_admin, "last_login": "0001-01-01T00:00:00Z", "created": stamp(*created),
        "restricted": false, "active": false, "prohibit_login": false, "location": "", "pronouns": "", "website": "",
        "description": "", "visibility": "public", "followers_count": 0, "following_count": 0,
        "starred_repos_count": 0, "username": login,
    })
}

pub(crate) fn repo(world: &World, repo: &Repo, viewer: Option<i64>) -> Value {
    let (full, access) = (world.full_name(repo), world.access(repo, viewer));
    let open = |pulls: bool| {
        repo.issues
            .values()
            .filter(|issue| issue.closed.is_none() && issue.pull.is_some() == pulls)
            .count()
    };
    let mut value = json!({
        "id": repo.id, "owner": user(world, repo.owner), "name": repo.name, "full_name": full,
        "description": repo.description, "empty": false, "private": repo.private, "fork": false, "template": false,
        "parent": null, "mirror": false, "size": 25, "language": "",
        "languages_url": format!("{}/api/v1/repos/{full}/languages", world.base),
        "html_url": format!("{}/{full}", world.base), "url": format!("{}/api/v1/repos/{full}", world.base), "link": "",
        "ssh_url": format!("ssh://git2@git.example.org/{full}.git"),
        "clone_url": format!("{}/{full}.git", world.base), "original_url": "", "website": "", "stars_count": 0,
        "forks_count": 0, "watchers_count": 2, "open_issues_count": open(false), "open_pr_counter": open(true),
        "release_counter": 0, "default_branch": repo.default_branch, "archived": repo.archived,
        "created_at": stamp(repo.created), "updated_at": stamp(repo.created), "archived_at": "1970-01-01T00:00:00Z",
    });
    let more = json!({
        "permissions": {
            "admin": access >= Access::Admin, "push": access >= Access::Write, "pull": access >= Access::Read,
        },
        "has_issues": true,
        "internal_tracker": {
            "enable_time_tracker": true, "allow_only_contributors_to_track_time": true,
            "enable_issue_dependencies": true,
        },
        "has_wiki": true, "wiki_branch": "main", "globally_editable_wiki": false, "has_pull_requests": true,
        "has_projects": true, "has_releases": true, "has_packages": true, "has_actions": false,
        "ignore_whitespace_conflicts": false, "allow_merge_commits": true, "allow_rebase": true,
        "allow_rebase_explicit": true, "allow_squash_merge": true, "allow_fast_forward_only_merge": true,
        "allow_rebase_update": true, "default_delete_branch_after_merge": false, "default_merge_style": "merge",
        "default_allow_maintainer_edit": false, "default_update_style": "merge", "avatar_url": "", "internal": false,
        "mirror_interval": "", "object_format_name": "sha1", "mirror_updated": "0001-01-01T00:00:00Z",
        "repo_transfer": null, "topics": [],
    });
    join(&mut value, more);
    value
}

pub(crate) fn label(world: &World, repo: &Repo, label: &Label) -> Value {
    let Label { id, name, color } = label;
    json!({
        "id": id, "name": name, "exclusive": name.contains('/'), "is_archived": false, "color": color,
        "description": "", "url": format!("{}/api/v1/repos/{}/labels/{id}", world.base, world.full_name(repo)),
    })
}

pub(crate) fn labels(world: &World, repo: &Repo, ids: &[i64]) -> Value {
    let known = ids
        .iter()
        .filter_map(|id| repo.labels.iter().find(|label| label.id == *id));
    known.map(|one| label(world, repo, one)).collect()
}

pub(crate) fn issue(world: &World, repo: &Repo, issue: &Issue) -> Value {
    let (full, number) = (world.full_name(repo), issue.number);
    let page = if issue.pull.is_some() { "pulls" } else { "issues" };
    let html = format!("{}/{full}/{page}/{number}", world.base);
    let pull = issue
        .pull
        .as_ref()
        .map(|pull| json!({ "merged": pull.merged, "merged_at": null, "draft": false, "html_url": html }));
    json!({
        "id": issue.id, "url": format!("{}/api/v1/repos/{full}/issues/{number}", world.base), "html_url": html,
        "number": number, "user": user(world, issue.author), "original_author": "", "original_author_id": 0,
        "title": issue.title, "body": issue.body, "ref": "", "assets": [],
        "labels": labels(world, repo, &issue.labels), "milestone": null, "assignee": null, "assignees": null,
        "state": state(issue), "is_locked": false, "comments": world.comments_of(repo.id, Some(number)).count(),
        "created_at": stamp(issue.created), "updated_at": stamp(issue.updated), "closed_at": issue.closed.map(stamp),
        "due_date": null, "pull_request": pull,
        "repository": {
            "id": repo.id, "name": repo.name, "owner": world.login(repo.owner), "full_name": full,
        },
        "pin_order": 0,
    })
}

fn state(issue: &Issue) -> &'static str {
    if issue.closed.is_some() { "closed" } else { "open" }
}

pub(crate) fn pull(world: &World, repo: &Repo, of: &Issue, pull: &Pull, viewer: Option<i64>) -> Value {
    let (full, number) = (world.full_name(repo), of.number);
    let html = format!("{}/{full}/pulls/{number}", world.base);
    let side = |branch: &str, sha: Option<String>| {
        json!({
            "label": branch, "ref": branch, "sha": sha, "repo_id": repo.id, "repo": self::repo(world, repo, viewer),
        })
    };
    let base_sha = git::commit_of(&repo.dir, &pull.base);
    json!({
        "id": of.id, "url": html, "number": number, "user": user(world, of.author), "title": of.title, "body": of.body,
        "labels": labels(world, repo, &of.labels), "milestone": null, "assignee": null, "assignees": null,
        "requested_reviewers": [], "requested_reviewers_teams": [], "state": state(of), "draft": false,
        "is_locked": false, "comments": world.comments_of(repo.id, Some(number)).count(), "review_comments": 0,
        "additions": 1, "deletions": 0, "changed_files": 1, "html_url": html, "diff_url": format!("{html}.diff"),
        "patch_url": format!("{html}.patch"), "mergeable": !pull.merged, "merged": pull.merged, "merged_at": null,
        "merge_commit_sha": null, "merged_by": null, "allow_maintainer_edit": false,
        "base": side(&pull.base, base_sha.clone()),
        "head": side(&pull.head, git::commit_of(&repo.dir, &pull.head)), "merge_base": base_sha,
        "due_date": null, "created_at": stamp(of.created), "updated_at": stamp(of.updated),
        "closed_at": of.closed.map(stamp), "pin_order": 0, "flow": 0,
    })
}

pub(crate) fn comment(world: &World, comment: &Comment) -> Value {
    let Some((repo, issue)) = world.issue(comment.repo, comment.number) else {
        return Value::Null;
    };
    let page = if issue.pull.is_some() { "pulls" } else { "issues" };
    let subject = format!("{}/{}/{page}/{}", world.base, world.full_name(repo), comment.number);
    let (pull_url, issue_url) = if issue.pull.is_some() {
        (&*subject, "")
    } else {
        ("", &*subject)
    };
    json!({
        "id": comment.id, "html_url": format!("{subject}#issuecomment-{}", comment.id), "pull_request_url": pull_url,
        "issue_url": issue_url, "user": user(world, comment.author), "original_author": "", "original_author_id": 0,
        "body": comment.body, "assets": [], "created_at": stamp(comment.created), "updated_at": stamp(comment.updated),
    })
}

pub(crate) fn reaction(world: &World, reaction: &Reaction, at: DateTime<Utc>) -> Value {
    json!({ "user": user(world, reaction.user), "content": reaction.content, "created_at": stamp(at) })
}

pub(crate) fn label_change(world: &World, repo: &Repo, change: &LabelChange) -> Value {
    let named = repo
        .labels
        .iter()
        .find(|label| label.id == change.label)
        .map(|one| label(world, repo, one));
    json!({
        "id": change.id, "type": "label", "user": user(world, change.user), "label": named,
        "body": if change.added { "1" } else { "" }, "created_at": stamp(change.at), "updated_at": stamp(change.at),
    })
}

/// The body of a delivery about a comment.
pub(crate) fn comment_event(world: &World, of: &Comment, action: &str, from: Option<&str>, sender: i64) -> Value {
    let Some((repo, issue)) = world.issue(of.repo, of.number) else {
        return Value::Null;
    };
    let mut body = json!({
        "action": action, "issue": self::issue(world, repo, issue), "comment": comment(world, of),
        "repository": self::repo(world, repo, Some(sender)), "sender": user(world, sender),
        "is_pull": issue.pull.is_some(),
    });
    if let Some(pull) = &issue.pull {
        join(
            &mut body,
            json!({ "pull_request": self::pull(world, repo, issue, pull, Some(sender)) }),
        );
    }
    if let Some(from) = from {
        join(&mut body, json!({ "changes": { "body": { "from": from } } }));
    }
    body
}

/// The body of a delivery about an issue or a pull request: its event word, and the JSON.
pub(crate) fn subject_event(world: &World, repo: i64, number: i64, action: &str, sender: i64) -> (&'static str, Value) {
    let Some((repo, issue)) = world.issue(repo, number) else {
        return ("issues", Value::Null);
    };
    let mut body = json!({
        "action": action, "number": number, "repository": self::repo(world, repo, Some(sender)),
        "sender": user(world, sender), "commit_id": "",
    });
    match &issue.pull {
        None => {
            join(&mut body, json!({ "issue": self::issue(world, repo, issue) }));
            ("issues", body)
        }
        Some(pull) => {
            let pull = self::pull(world, repo, issue, pull, Some(sender));
            join(
                &mut body,
                json!({ "pull_request": pull, "requested_reviewer": null, "review": null }),
            );
            ("pull_request", body)
        }
    }
}

/// The body of the "test delivery" button: a push that changes nothing.
pub(crate) fn test_event(world: &World, repo: &Repo, sender: i64) -> Value {
    let sha = git::commit_of(&repo.dir, &repo.default_branch).unwrap_or_default();
    let person = json!({ "name": world.login(sender), "email": "", "username": world.login(sender) });
    let commit = json!({
        "id": sha, "message": "a test delivery", "url": "", "author": person, "committer": person,
        "verification": null, "timestamp": stamp(repo.created), "added": null, "removed": null, "modified": null,
    });
    json!({
        "ref": format!("refs/heads/{}", repo.default_branch), "before": sha, "after": sha, "compare_url": "",
        "commits": [commit], "total_commits": 1, "head_commit": commit,
        "repository": self::repo(world, repo, Some(sender)), "pusher": user(world, sender),
        "sender": user(world, sender),
    })
}

fn join(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
