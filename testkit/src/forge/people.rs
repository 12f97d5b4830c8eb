//! The hand that plays the forge, first half: people, tokens, repositories, hooks.

use super::git::{self, File};
use super::hooks::{Encoding, Hook, Of};
use super::world::{Access, Found, Label, Repo, Scope, Token, User, World};
use super::{Delivery, Sent, StubForge};
use crate::clock;
use std::collections::BTreeMap;
use std::time::Duration;

impl StubForge {
    /// A new person; gives the id.
    pub fn user(&self, login: &str) -> i64 {
        self.act(|world| world.add_user(None, login, None))
    }

    /// A new person with this id.
    pub fn user_with_id(&self, id: i64, login: &str) {
        self.act(|world| world.add_user(Some(id), login, None));
    }

    /// A new organisation with these owners; gives the id.
    pub fn organisation(&self, id: Option<i64>, name: &str, owners: &[&str]) -> i64 {
        self.act(|world| {
            let owners = owners.iter().map(|owner| world.known(owner)).collect();
            world.add_user(id, name, Some(owners))
        })
    }

    /// Makes somebody an administrator of the whole site.
    pub fn make_site_admin(&self, login: &str) {
        self.act(|world| {
            let id = world.known(login);
            world.users.entry(id).and_modify(|user| user.site_admin = true);
        });
    }

    /// Renames somebody. The old name is 404 from now on, and free for somebody else; the id stays.
    pub fn rename_user(&self, old: &str, new: &str) {
        self.act(|world| {
            let id = world.known(old);
            world.users.entry(id).and_modify(|user| new.clone_into(&mut user.login));
        });
    }

    /// Somebody as the forge knows them now.
    pub fn find_user(&self, login: &str) -> Option<User> {
        self.shared.world().user_named(login).cloned()
    }

    /// A new token of somebody, for these uses.
    pub fn token(&self, login: &str, scopes: &[Scope]) -> String {
        let token = clock::token();
        self.set_token(login, &token, scopes);
        token
    }

    /// Gives somebody this very token.
    pub fn set_token(&self, login: &str, token: &str, scopes: &[Scope]) {
        self.act(|world| {
            let user = world.known(login);
            world.tokens.insert(
                token.to_owned(),
                Token {
                    user,
                    scopes: scopes.to_vec(),
                },
            );
        });
    }

    /// Makes a token worthless: 401 from now on.
    pub fn revoke_token(&self, token: &str) {
        self.act(|world| world.tokens.remove(token));
    }

    /// A new public repository `owner/name` with one commit on `main`; gives the id.
    pub fn repository(&self, path: &str, files: &[File]) -> i64 {
        self.act(|world| {
            let (owner, name) = path
                .split_once('/')
                .unwrap_or_else(|| panic!("`{path}` is not owner/name"));
            let id = world.repos.keys().max().map_or(1, |last| last + 1);
            let dir = world.dir.join(format!("{id}.git"));
            git::init(&dir, "main");
            git::commit(&dir, "main", "main", files, "Begin");
            let repo = Repo {
                id,
                owner: world.known(owner),
                name: name.to_owned(),
                description: String::new(),
                private: false,
                archived: false,
                default_branch: "main".to_owned(),
                collaborators: BTreeMap::new(),
                labels: Vec::new(),
                issues: BTreeMap::new(),
                created: clock::now(),
                dir,
            };
            world.repos.insert(id, repo);
            id
        })
    }

    /// What somebody may do in a repository, from now on. [`Access::None`] takes it away.
    pub fn allow(&self, path: &str, login: &str, access: Access) {
        self.act(|world| {
            let user = world.known(login);
            let people = &mut world.at(path).collaborators;
            if access == Access::None {
                people.remove(&user)
            } else {
                people.insert(user, access)
            };
        });
    }

    /// Hides a repository from strangers.
    pub fn make_private(&self, path: &str) {
        self.act(|world| world.at(path).private = true);
    }

    /// Freezes a repository: it can be read, writing is 423.
    pub fn archive(&self, path: &str) {
        self.act(|world| world.at(path).archived = true);
    }

    /// Renames a repository. Its old path answers with a redirect from now on; its id stays.
    pub fn rename_repository(&self, path: &str, new_name: &str) {
        self.act(|world| {
            let old = path.to_lowercase();
            let repo = world.at(path);
            new_name.clone_into(&mut repo.name);
            let id = repo.id;
            world.moved.insert(old, id);
        });
    }

    /// Removes a repository and everything in it: 404 from now on.
    pub fn delete_repository(&self, path: &str) {
        self.act(|world| {
            let id = world.at(path).id;
            world.repos.remove(&id);
            world.comments.retain(|_, comment| comment.repo != id);
        });
    }

    /// Adds a commit to a branch (made from the default branch when new); gives its id. No delivery is sent.
    pub fn commit(&self, path: &str, branch: &str, files: &[File], message: &str) -> String {
        self.act(|world| {
            let repo = world.at(path);
            git::commit(&repo.dir, branch, &repo.default_branch, files, message)
        })
    }

    /// The commit that a branch stands at.
    pub fn head(&self, path: &str, branch: &str) -> Option<String> {
        git::commit_of(
            &self.act(|world| world.at(path).dir.clone()),
            &format!("refs/heads/{branch}"),
        )
    }

    /// Where git finds a repository: for `git clone`.
    pub fn clone_url(&self, path: &str) -> String {
        format!("{}/{path}.git", self.url())
    }

    /// A label that may be put on the issues of a repository; gives its id.
    pub fn label(&self, path: &str, name: &str) -> i64 {
        self.act(|world| {
            let id = world.next_id();
            let label = Label {
                id,
                name: name.to_owned(),
                color: "ee0701".to_owned(),
            };
            world.at(path).labels.push(label);
            id
        })
    }

    /// A hook of a repository, in JSON; gives its id. An empty secret means none: its deliveries are unsigned.
    pub fn hook(&self, path: &str, url: &str, secret: &str) -> i64 {
        self.hook_of(|world| Of::Repository(world.at(path).id), url, secret)
    }

    /// A hook of an organisation: it hears of all its repositories.
    pub fn organisation_hook(&self, name: &str, url: &str, secret: &str) -> i64 {
        self.hook_of(|world| Of::Owner(world.known(name)), url, secret)
    }

    /// How a hook sends, and with which `Authorization` header.
    pub fn configure_hook(&self, hook: i64, encoding: Encoding, authorization: Option<&str>) {
        self.act(|world| {
            let hook = world
                .hooks
                .get_mut(&hook)
                .unwrap_or_else(|| panic!("there is no hook {hook}"));
            hook.encoding = encoding;
            hook.authorization = authorization.map(str::to_owned);
        });
    }

    /// Removes a hook.
    pub fn remove_hook(&self, hook: i64) {
        self.act(|world| world.hooks.remove(&hook));
    }

    /// Presses the "test delivery" button of a hook: a push whose `before` equals its `after`.
    pub fn test_hook(&self, hook: i64) {
        self.act(|world| world.test_hook(hook));
    }

    /// Presses the "redeliver" button: the same body under a new id, which is given.
    pub fn redeliver(&self, delivery: &str) -> String {
        self.act(|world| world.redeliver(delivery))
            .unwrap_or_else(|| panic!("there is no delivery {delivery}"))
    }

    /// Every delivery so far, those on their way included.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.world().deliveries.clone()
    }

    /// Waits until nothing is on its way any more, and gives all deliveries. Panics after a minute.
    pub async fn delivered(&self) -> Vec<Delivery> {
        let all_out = |forge: &Self| {
            let deliveries = forge.deliveries();
            deliveries
                .iter()
                .all(|delivery| delivery.outcome != Sent::Waiting)
                .then_some(deliveries)
        };
        let Some(deliveries) = self.until(Duration::from_secs(60), all_out).await else {
            panic!("deliveries are still on their way after a minute");
        };
        deliveries
    }

    fn hook_of(&self, of: impl FnOnce(&mut World) -> Of, url: &str, secret: &str) -> i64 {
        self.act(|world| {
            let of = of(world);
            world.add_hook(of, url, secret)
        })
    }
}

impl World {
    fn add_user(&mut self, id: Option<i64>, login: &str, owners: Option<std::collections::BTreeSet<i64>>) -> i64 {
        let id = id.unwrap_or_else(|| self.users.keys().max().map_or(1, |last| last + 1));
        assert!(self.user_named(login).is_none(), "there is a {login} already");
        let full_name = String::new();
        let user = User {
            id,
            login: login.to_owned(),
            full_name,
            owners,
            site_admin: false,
            created: clock::now(),
        };
        self.users.insert(id, user);
        id
    }

    pub(crate) fn add_hook(&mut self, of: Of, url: &str, secret: &str) -> i64 {
        let id = self.next_id();
        let (url, secret) = (url.to_owned(), secret.to_owned());
        let hook = Hook {
            id,
            of,
            url,
            secret,
            encoding: Encoding::Json,
            authorization: None,
            active: true,
        };
        self.hooks.insert(id, hook);
        id
    }

    pub(crate) fn test_hook(&mut self, hook: i64) {
        let of = self.hooks.get(&hook).map(|hook| hook.of);
        let repo = self
            .repos
            .values()
            .find(|repo| of == Some(Of::Repository(repo.id)) || of == Some(Of::Owner(repo.owner)));
        if let Some(body) = repo.map(|repo| super::shapes::test_event(self, repo, repo.owner)) {
            self.tell_one(hook, "push", &body);
        }
    }

    pub(crate) fn known(&self, login: &str) -> i64 {
        self.user_named(login)
            .unwrap_or_else(|| panic!("nobody here is called {login}"))
            .id
    }

    pub(crate) fn at(&mut self, path: &str) -> &mut Repo {
        let (owner, name) = path
            .split_once('/')
            .unwrap_or_else(|| panic!("`{path}` is not owner/name"));
        match self.find(owner, name) {
            Found::Here(id) => self.repos.get_mut(&id),
            Found::Moved(_) | Found::Nowhere => None,
        }
        .unwrap_or_else(|| panic!("there is no repository {path}"))
    }
}
