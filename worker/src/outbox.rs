//! The outbox: what goes to a forge goes there once.
//!
//! A POST cannot be repeated without a thought, so the row with its unguessable marker was committed before. A row that
//! was taken before may have reached the forge: then its subject is searched for our account *and* that marker before
//! anything is posted again. Edits and reactions can be repeated and are.
//!
//! What the forge says for good (404, 403, 410, 423, a refused text) ends the row with its reason; everything else waits
//! with backoff, at most a day. Rows hold rebuilt text (see [`crate::report`]); here only the marker is added.
//!
//! Fails with [`StoreError`] when PostgreSQL does; the row's lease then brings it back.

use std::time::Duration;

use chrono::TimeDelta;
use forges::{
    ApiError, Comment, RepoRef,
    text::{assemble, find_marker, marker},
};
use queue::{Output, OutputKind, Queue, Reason, StoreError, WorkerName};

use crate::{
    backoff,
    decide::{Forge, Forges, reaction_target},
};

/// How long a row is ours: longer than a search and a post may take together.
const LEASE: Duration = Duration::from_secs(3 * 60);
/// The search begins that long before the row was made: the forge's clock may be behind PostgreSQL's.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::hours(24);

/// Posts what the outbox holds. Cheap to clone: run several at once.
#[derive(Clone)]
pub struct Poster {
    queue: Queue,
    forges: Forges,
    worker: WorkerName,
}

/// What the forge has now.
struct Posted {
    remote_id: Option<i64>,
    url: Option<String>,
}

/// Why a row was not posted.
enum NotPosted {
    /// The forge, or the road to it.
    Api(ApiError),
    /// The row names nothing that could be written to.
    NoTarget,
}

impl From<ApiError> for NotPosted {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl Poster {
    /// A poster over the forges of this worker.
    #[must_use]
    pub fn new(queue: Queue, forges: Forges, worker: WorkerName) -> Self {
        Self { queue, forges, worker }
    }

    /// Takes one row and posts, delays or ends it. False when none was due.
    ///
    /// # Errors
    /// [`StoreError`] when PostgreSQL could not be asked; the row comes back by itself.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let Some(output) = self.queue.take_output(&self.worker, LEASE).await? else {
            return Ok(false);
        };
        let done = match self.forges.get(&output.forge) {
            Some(forge) => match post(forge, &output).await {
                Ok(posted) => self.record(&output, posted).await,
                Err(why) => self.settle(&output, why).await,
            },
            None => self.delay(&output, Reason::ForgeNotConfigured, "", None).await,
        };
        match done {
            Err(StoreError::TakenOver { .. }) => {
                tracing::warn!(output.id = %output.id, "an output took longer than its lease; another worker has it");
                Ok(true)
            }
            done => done.map(|()| true),
        }
    }

    async fn record(&self, output: &Output, posted: Posted) -> Result<(), StoreError> {
        self.queue
            .output_posted(output, posted.remote_id, posted.url.as_deref())
            .await?;
        tracing::info!(
            output.id = %output.id, output.kind = %output.kind, forge = %output.forge, job.id = output.job.map(|job| job.0),
            remote.id = posted.remote_id, "posted an output"
        );
        Ok(())
    }

    /// What a failure means for the row: the end, or another try.
    async fn settle(&self, output: &Output, why: NotPosted) -> Result<(), StoreError> {
        let error = match why {
            NotPosted::NoTarget => {
                return self
                    .end(output, Reason::InternalFault, "the row names no subject")
                    .await;
            }
            NotPosted::Api(error) => error,
        };
        let detail = error.to_string();
        match &error {
            ApiError::NotFound => self.end(output, Reason::SubjectGone, &detail).await,
            ApiError::Forbidden | ApiError::Archived => self.end(output, Reason::SubjectLocked, &detail).await,
            ApiError::Invalid(_) | ApiError::BadName => self.end(output, Reason::TextRefused, &detail).await,
            ApiError::Unauthorized => self.delay(output, Reason::ForgeTokenRefused, &detail, None).await,
            ApiError::Moved(_) | ApiError::Busy { .. } | ApiError::Unavailable { .. } | ApiError::Garbled(_) => {
                self.delay(output, Reason::ForgeUnavailable, &detail, error.retry_after())
                    .await
            }
        }
    }

    async fn end(&self, output: &Output, reason: Reason, detail: &str) -> Result<(), StoreError> {
        tracing::error!(output.id = %output.id, output.kind = %output.kind, forge = %output.forge, reason = reason.word(), detail, "an output cannot be posted");
        self.queue.fail_output(output, reason, detail).await
    }

    async fn delay(
        &self,
        output: &Output,
        reason: Reason,
        detail: &str,
        at_least: Option<Duration>,
    ) -> Result<(), StoreError> {
        if output.age >= backoff::PATIENCE {
            return self.end(output, Reason::OutputPatienceEnded, detail).await;
        }
        let tries = u32::try_from(output.tries).unwrap_or(1);
        let wait = backoff::wait(tries).max(at_least.unwrap_or_default());
        tracing::warn!(
            output.id = %output.id, output.kind = %output.kind, forge = %output.forge, reason = reason.word(), detail,
            wait_s = wait.as_secs(), "an output waits"
        );
        self.queue.delay_output(output, reason, detail, wait).await
    }
}

async fn post(forge: &Forge, output: &Output) -> Result<Posted, NotPosted> {
    let api = &forge.setup.api;
    let repo = RepoRef {
        id: output.repository.id,
        owner: output.repository.owner.clone(),
        name: output.repository.name.clone(),
    };
    match output.kind {
        OutputKind::Reaction => {
            let target = reaction_target(output.comment, output.subject).ok_or(NotPosted::NoTarget)?;
            api.react(&repo, target, &output.body).await?;
            Ok(Posted {
                remote_id: None,
                url: None,
            })
        }
        OutputKind::Comment | OutputKind::Refusal | OutputKind::Status => {
            let subject = output.subject.ok_or(NotPosted::NoTarget)?;
            let text = assemble(&output.body, "", &marker(&output.marker.to_string()));
            let comment = match output.remote_id {
                Some(id) => api.edit_comment(&repo, id, &text).await?,
                None => match search(forge, &repo, subject, output).await? {
                    // It arrived before we could write that down; a status may have another text by now.
                    Some(there) if there.text.trim() == text.trim() => there,
                    Some(there) => api.edit_comment(&repo, there.id, &text).await?,
                    None => api.post_comment(&repo, subject, &text).await?,
                },
            };
            Ok(Posted {
                remote_id: Some(comment.id),
                url: Some(comment.url),
            })
        }
    }
}

/// Our comment with the row's marker, when an earlier try may have left one.
async fn search(forge: &Forge, repo: &RepoRef, subject: i64, output: &Output) -> Result<Option<Comment>, ApiError> {
    if output.tries <= 1 {
        return Ok(None);
    }
    let account = forge.account().await?;
    let marker = output.marker.to_string();
    let since = output.created_at.checked_sub_signed(CLOCKS_DIFFER);
    let comments = forge.setup.api.comments_of(repo, subject, since).await?;
    Ok(comments
        .into_iter()
        .find(|comment| comment.author.id == account && find_marker(&comment.text) == Some(marker.as_str())))
}
