//! The hand that plays the forge, second half: issues, pull requests, comments, labels; and what each of them sends.
//!
//! The API's handlers and the pages go through the same methods of the world, so that a comment makes the same
//! delivery whoever wrote it, our own account included.

use super::world::{Comment, Issue, LabelChange, Pull, Reaction, World};
use super::{StubForge, git, shapes};
use crate::clock;
use std::time::Duration;

impl StubForge {
    /// Somebody opens an issue; gives its number.
    pub fn issue(&self, path: &str, author: &str, title: &str, body: &str) -> i64 {
        self.act(|world| {
            let (repo, author) = (world.at(path).id, world.known(author));
            world.open(repo, author, title, body, None)
        })
    }

    /// Somebody opens a pull request from a branch of the same repository to its default branch; gives its number.
    pub fn pull_request(&self, path: &str, author: &str, head: &str, title: &str, body: &str) -> i64 {
        self.act(|world| {
            let author = world.known(author);
            let repo = world.at(path);
            let (id, base) = (repo.id, repo.default_branch.clone());
            assert!(
                git::commit_of(&repo.dir, &format!("refs/heads/{head}")).is_some(),
                "there is no branch {head}"
            );
            world.open(
                id,
                author,
                title,
                body,
                Some(Pull {
                    head: head.to_owned(),
                    base,
                    merged: false,
                }),
            )
        })
    }

    /// Somebody closes an issue or a pull request, or opens it again.
    pub fn set_closed(&self, path: &str, number: i64, who: &str, closed: bool) {
        self.act(|world| {
            let (repo, who) = (world.at(path).id, world.known(who));
            world.set_closed(repo, number, who, closed);
        });
    }

    /// Removes an issue with its comments: 404 from now on.
    pub fn delete_issue(&self, path: &str, number: i64) {
        self.act(|world| {
            let repo = world.at(path);
            repo.issues.remove(&number);
            let id = repo.id;
            world
                .comments
                .retain(|_, comment| (comment.repo, comment.number) != (id, number));
        });
    }

    /// Somebody writes a comment; gives its id. Whether they may is not asked: see the API for that.
    pub fn comment(&self, path: &str, number: i64, author: &str, body: &str) -> i64 {
        self.act(|world| {
            let (repo, author) = (world.at(path).id, world.known(author));
            assert!(world.issue(repo, number).is_some(), "there is no {path}#{number}");
            world.add_comment(repo, number, author, body)
        })
    }

    /// Somebody (not always the author) edits a comment.
    pub fn edit_comment(&self, comment: i64, who: &str, body: &str) {
        self.act(|world| {
            let who = world.known(who);
            world.change_comment(comment, who, body);
        });
    }

    /// Somebody deletes a comment: 404 from now on.
    pub fn delete_comment(&self, comment: i64, who: &str) {
        self.act(|world| {
            let who = world.known(who);
            world.remove_comment(comment, who);
        });
    }

    /// Changes a comment's text without a delivery: what it looks like when the forge and a delivery disagree.
    pub fn rewrite_comment_quietly(&self, comment: i64, body: &str) {
        self.act(|world| {
            let comment = world
                .comments
                .get_mut(&comment)
                .unwrap_or_else(|| panic!("there is no comment {comment}"));
            body.clone_into(&mut comment.body);
        });
    }

    /// Makes a comment older without a delivery: a forge's times are whole seconds, and tests do not wait for one.
    pub fn backdate_comment(&self, comment: i64, by: Duration) {
        self.act(|world| {
            let comment = world
                .comments
                .get_mut(&comment)
                .unwrap_or_else(|| panic!("there is no comment {comment}"));
            comment.created -= by;
            comment.updated -= by;
        });
    }

    /// Somebody puts labels on an issue; unknown names are ignored, and a delivery goes out all the same.
    pub fn add_labels(&self, path: &str, number: i64, who: &str, names: &[&str]) {
        self.act(|world| {
            let who = world.known(who);
            let repo = world.at(path);
            let ids: Vec<i64> = repo
                .labels
                .iter()
                .filter_map(|label| names.contains(&label.name.as_str()).then_some(label.id))
                .collect();
            let repo = repo.id;
            world.change_labels(repo, number, who, &ids, true);
        });
    }

    /// The comments under an issue or a pull request, oldest first.
    pub fn comments(&self, path: &str, number: i64) -> Vec<Comment> {
        self.act(|world| {
            let repo = world.at(path).id;
            world.comments_of(repo, Some(number)).cloned().collect()
        })
    }

    /// The comments of one author under an issue or a pull request, oldest first.
    pub fn comments_by(&self, path: &str, number: i64, author: &str) -> Vec<Comment> {
        let author = self.shared.world().known(author);
        let all = self.comments(path, number);
        all.into_iter().filter(|comment| comment.author == author).collect()
    }

    /// Waits until `author` has written at least `count` comments there, and gives them; panics when they do not come.
    pub async fn wait_for_comments_by(
        &self,
        path: &str,
        number: i64,
        author: &str,
        count: usize,
        patience: Duration,
    ) -> Vec<Comment> {
        let enough = |forge: &Self| Some(forge.comments_by(path, number, author)).filter(|all| all.len() >= count);
        match self.until(patience, enough).await {
            Some(comments) => comments,
            None => panic!("{author} did not write {count} comment(s) under {path}#{number} within {patience:?}"),
        }
    }

    /// The reactions to a comment, as `(login, word)`.
    pub fn reactions(&self, comment: i64) -> Vec<(String, String)> {
        let world = self.shared.world();
        let reactions = world
            .comments
            .get(&comment)
            .map(|comment| &*comment.reactions)
            .unwrap_or_default();
        reactions
            .iter()
            .map(|one| (world.login(one.user).to_owned(), one.content.clone()))
            .collect()
    }
}

impl World {
    pub(crate) fn open(&mut self, repo: i64, author: i64, title: &str, body: &str, pull: Option<Pull>) -> i64 {
        let (id, now) = (self.next_id(), clock::now());
        let Some(at) = self.repos.get_mut(&repo) else { return 0 };
        let number = at.issues.keys().max().map_or(1, |last| last + 1);
        if let Some(head) = pull.as_ref().and_then(|pull| git::commit_of(&at.dir, &pull.head)) {
            git::set_ref(&at.dir, &format!("refs/pull/{number}/head"), &head);
        }
        let issue = Issue {
            id,
            number,
            author,
            title: title.to_owned(),
            body: body.to_owned(),
            closed: None,
            labels: Vec::new(),
            reactions: Vec::new(),
            timeline: Vec::new(),
            pull,
            created: now,
            updated: now,
        };
        at.issues.insert(number, issue);
        self.tell_subject(repo, number, "opened", "", author);
        number
    }

    pub(crate) fn set_closed(&mut self, repo: i64, number: i64, who: i64, closed: bool) {
        let now = clock::now();
        let issue = self.repos.get_mut(&repo).and_then(|repo| repo.issues.get_mut(&number));
        if let Some(issue) = issue.filter(|issue| issue.closed.is_some() != closed) {
            issue.closed = closed.then_some(now);
            issue.updated = now;
            self.tell_subject(repo, number, if closed { "closed" } else { "reopened" }, "", who);
        }
    }

    pub(crate) fn add_comment(&mut self, repo: i64, number: i64, author: i64, body: &str) -> i64 {
        let (id, now) = (self.next_id(), clock::now());
        let body = body.to_owned();
        let comment = Comment {
            id,
            repo,
            number,
            author,
            body,
            reactions: Vec::new(),
            created: now,
            updated: now,
        };
        self.comments.insert(id, comment);
        self.tell_comment(id, "created", None, author);
        id
    }

    pub(crate) fn change_comment(&mut self, id: i64, who: i64, body: &str) {
        let Some(comment) = self.comments.get_mut(&id) else {
            return;
        };
        let from = std::mem::replace(&mut comment.body, body.to_owned());
        comment.updated = clock::now();
        self.tell_comment(id, "edited", Some(&from), who);
    }

    pub(crate) fn remove_comment(&mut self, id: i64, who: i64) {
        self.tell_comment(id, "deleted", None, who);
        self.comments.remove(&id);
    }

    /// Puts a reaction there; once per person and word. It sends no delivery.
    pub(crate) fn react(reactions: &mut Vec<Reaction>, user: i64, content: &str) -> bool {
        let reaction = Reaction {
            user,
            content: content.to_owned(),
        };
        let new = !reactions.contains(&reaction);
        if new {
            reactions.push(reaction);
        }
        new
    }

    /// Adds or takes labels. The delivery goes out also when nothing changed, as Forgejo's does; only the timeline
    /// knows which label it was.
    pub(crate) fn change_labels(&mut self, repo: i64, number: i64, who: i64, ids: &[i64], add: bool) {
        let now = clock::now();
        for &label in ids {
            let id = self.next_id();
            let Some(at) = self.repos.get_mut(&repo) else { return };
            let scope = at
                .labels
                .iter()
                .find(|one| one.id == label)
                .and_then(|one| one.name.rsplit_once('/'));
            let scope = scope.map(|(scope, _)| format!("{scope}/"));
            let siblings: Vec<i64> = at
                .labels
                .iter()
                .filter(|one| one.id != label && scope.as_ref().is_some_and(|scope| one.name.starts_with(scope)))
                .map(|one| one.id)
                .collect();
            let Some(issue) = at.issues.get_mut(&number) else {
                return;
            };
            if issue.labels.contains(&label) == add {
                continue;
            }
            issue
                .labels
                .retain(|have| *have != label && !(add && siblings.contains(have)));
            if add {
                issue.labels.push(label);
            }
            issue.timeline.push(LabelChange {
                id,
                user: who,
                label,
                added: add,
                at: now,
            });
        }
        self.tell_subject(repo, number, "label_updated", "_label", who);
    }

    pub(crate) fn clear_labels(&mut self, repo: i64, number: i64, who: i64) {
        // The delivery carries the labels from before.
        self.tell_subject(repo, number, "label_cleared", "_label", who);
        if let Some(issue) = self.repos.get_mut(&repo).and_then(|repo| repo.issues.get_mut(&number)) {
            issue.labels.clear();
        }
    }

    fn tell_comment(&mut self, id: i64, action: &str, from: Option<&str>, sender: i64) {
        let Some(comment) = self.comments.get(&id) else { return };
        let is_pull = self
            .issue(comment.repo, comment.number)
            .is_some_and(|(_, issue)| issue.pull.is_some());
        let (repo, body) = (comment.repo, shapes::comment_event(self, comment, action, from, sender));
        let event_type = if is_pull {
            "pull_request_comment"
        } else {
            "issue_comment"
        };
        self.tell(repo, "issue_comment", event_type, &body);
    }

    fn tell_subject(&mut self, repo: i64, number: i64, action: &str, more: &str, sender: i64) {
        let (event, body) = shapes::subject_event(self, repo, number, action, sender);
        let event_type = match (event, more) {
            ("issues", "_label") => "issue_label",
            ("pull_request", "_label") => "pull_request_label",
            (event, _) => event,
        };
        self.tell(repo, event, event_type, &body);
    }
}
