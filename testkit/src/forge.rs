//! A stub Forgejo: what it answers, refuses and sends is what a real one does, as far as pi-dispatch can see it.
//!
//! [`StubForge`] is the forge and the hand that plays it: a test makes people and repositories, writes comments as
//! them, breaks things ([`StubForge::fault`], [`StubForge::down`]), and looks at what came of it. Methods without
//! `async` return at once; what they send goes out behind them, one delivery at a time ([`StubForge::delivered`]
//! waits for it). [`StubForge::lab`] is a world to begin with.
//!
//! Below the same address: the API under `/api/v1`, git under `/{owner}/{name}.git`, and pages for a browser.
//!
//! A method that names somebody or something unknown panics: that is a mistake in the test. Source of the behaviour:
//! a running Forgejo 12, as written down beside each quirk.

mod api;
mod git;
mod hooks;
mod lab;
mod page;
mod people;
mod shapes;
mod subjects;
mod trouble;
mod world;

pub use git::File;
pub use hooks::{DELIVER_TIMEOUT, Delivery, Encoding, Sent, sign};
pub use lab::{ISSUE_BODY, ISSUE_TITLE};
pub use trouble::{ApiCall, Fault};
pub use world::{Access, Comment, Reaction, Scope, User};

use crate::server::{self, Server};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use world::World;

/// How a stub forge is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens; port 0 chooses one.
    pub listen: SocketAddr,
    /// Where its git repositories lie; a folder of its own, gone with it, when absent.
    pub dir: Option<PathBuf>,
    /// Ids of issues, comments and hooks begin after this one. A demo that starts again on the same database must not
    /// give an old comment's id to a new one.
    pub last_id: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            dir: None,
            last_id: 0,
        }
    }
}

/// A forge that runs until it is dropped.
pub struct StubForge {
    shared: Arc<Shared>,
    server: Server,
    postman: Option<Runtime>,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) struct Shared {
    world: Mutex<World>,
    /// Counts what happened, so that a test can wait for the next thing instead of sleeping.
    happened: watch::Sender<u64>,
    bell: mpsc::UnboundedSender<()>,
}

impl Shared {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened: wakes whoever waits, and the postman.
    pub(crate) fn changed(&self) {
        self.happened.send_modify(|count| *count += 1);
        let _ = self.bell.send(());
    }
}

impl StubForge {
    /// An empty forge on a port of its own.
    pub fn start() -> Self {
        Self::with(Settings::default())
    }

    /// An empty forge, set up as told.
    pub fn with(settings: Settings) -> Self {
        Self::try_with(settings).unwrap_or_else(|error| panic!("the stub forge cannot start: {error}"))
    }

    /// As [`Self::with`]; fails when the port is taken or the folder cannot be made.
    pub fn try_with(settings: Settings) -> std::io::Result<Self> {
        let (dir, folder) = match settings.dir {
            Some(dir) => (dir, None),
            None => {
                let folder = tempfile::Builder::new().prefix("pd-forge-").tempdir()?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let (happened, (bell, rings)) = (watch::Sender::new(0), mpsc::unbounded_channel());
        let world = World {
            dir,
            last_id: settings.last_id,
            ..World::default()
        };
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            happened,
            bell,
        });
        let server = Server::start(settings.listen, |address| {
            shared.world().base = format!("http://{address}");
            router(&shared)
        })?;
        let postman = server::runtime()?;
        postman.spawn(hooks::postman(Arc::clone(&shared), rings));
        Ok(Self {
            shared,
            server,
            postman: Some(postman),
            _folder: folder,
        })
    }

    /// Where it answers: `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The base of its API: [`Self::url`] and `/api/v1`.
    pub fn api_url(&self) -> String {
        format!("{}/api/v1", self.url())
    }

    /// Goes away: connecting is refused until [`Self::up`]. What is in memory stays.
    pub fn down(&self) {
        self.server.stop();
    }

    /// Comes back on the same port.
    pub fn up(&self) {
        self.server
            .start_again()
            .unwrap_or_else(|error| panic!("the port was taken meanwhile: {error}"));
    }

    /// From now on something goes wrong; the oldest fault that fits a call decides.
    pub fn fault(&self, fault: Fault) {
        self.act(|world| world.faults.push(fault));
    }

    /// Takes every fault back.
    pub fn heal(&self) {
        self.act(|world| world.faults.clear());
    }

    /// Every call of the API and of git so far, oldest first.
    pub fn calls(&self) -> Vec<ApiCall> {
        self.shared.world().calls.clone()
    }

    /// Empties the log of calls.
    pub fn forget_calls(&self) {
        self.act(|world| world.calls.clear());
    }

    /// Waits until `look` finds what it looks for, at most this long.
    pub async fn until<T>(&self, patience: Duration, mut look: impl FnMut(&Self) -> Option<T>) -> Option<T> {
        let mut happened = self.shared.happened.subscribe();
        let search = async {
            loop {
                happened.mark_unchanged();
                if let Some(found) = look(self) {
                    return Some(found);
                }
                happened.changed().await.ok()?;
            }
        };
        tokio::time::timeout(patience, search).await.ok().flatten()
    }

    pub(crate) fn act<T>(&self, action: impl FnOnce(&mut World) -> T) -> T {
        let done = action(&mut self.shared.world());
        self.shared.changed();
        done
    }
}

impl Drop for StubForge {
    fn drop(&mut self) {
        server::end(self.postman.take());
    }
}

/// A random token, in the form that Forgejo gives them.
pub fn new_token() -> String {
    crate::clock::token()
}

fn router(shared: &Arc<Shared>) -> Router {
    let watched = middleware::from_fn_with_state(Arc::clone(shared), trouble::watch);
    Router::new()
        .nest("/api/v1", api::routes().layer(watched.clone()))
        .merge(git::routes().layer(watched))
        .merge(page::routes())
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(Arc::clone(shared))
}
