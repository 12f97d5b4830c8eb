//! Gate 9: the repository can be read, its default branch's commit is here, and the flow is found.
//!
//! Only the forge's own 404 and 403 refuse for good; everything else waits, without using up an attempt.

use std::{path::PathBuf, time::Duration};

use forges::{ApiError, RepoRef};
use queue::{Claim, Reason};
use triggers::Target;

use super::{Answer, No, Plan, yes};
use crate::{
    job::House,
    repo::{Commit, Flow, GitError, Listing, ListingBounds, RepoContext, RepoKey, Want},
    texts::job as texts,
};

/// How long a job waits for a forge that does not answer.
const AWAY: Duration = Duration::from_secs(20);
/// How much of the repository's file names the prompt holds.
const LISTING: ListingBounds = ListingBounds {
    files: 2_000,
    bytes: 64 * 1024,
};

/// What a job works on.
#[derive(Debug)]
pub enum Ground {
    /// A repository of a forge.
    Repository(Box<RepositoryGround>),
    /// What a person gave by hand.
    Hand {
        /// A folder whose copy becomes the workspace.
        workspace: Option<PathBuf>,
        /// The first message.
        prompt: String,
    },
}

/// A repository, read.
#[derive(Debug)]
pub struct RepositoryGround {
    /// What is checked out: the default branch's head, or the confirmed head of a pull request.
    pub checkout: Commit,
    /// The flow's skill, from the default branch or the overlay.
    pub flow: Flow,
    /// What else the default branch says.
    pub context: RepoContext,
    /// The names of the files that are checked out.
    pub listing: Listing,
    /// `owner/name` as it is now.
    pub full_name: String,
}

/// Gate 9.
pub(super) async fn ready(house: &House, claim: &Claim, plan: &Plan) -> Answer<Ground> {
    let data = &claim.data;
    let Some(forge) = house.forges.get(&data.forge) else {
        return Err(No::waits(
            Reason::ForgeUnavailable,
            texts::no_such_forge(&data.forge),
            AWAY,
        ));
    };
    let found = forge
        .setup
        .api
        .repository_by_id(data.repository.id)
        .await
        .map_err(|fault| forge_says(&fault))?;
    let remote = forge.setup.api.git_remote(&found.repo);
    let key = RepoKey {
        forge: data.forge.clone(),
        id: data.repository.id,
    };

    let branch = Want::Branch(found.default_branch.clone());
    let default = house
        .repos
        .fetch(&key, &remote, &branch)
        .await
        .map_err(|fault| git_says(&fault))?;
    let checkout = match data
        .subject
        .as_ref()
        .filter(|subject| subject.kind == Target::PullRequest)
    {
        Some(subject) => {
            let want = Want::PullRequest(subject.number);
            let head = house
                .repos
                .fetch(&key, &remote, &want)
                .await
                .map_err(|fault| git_says(&fault))?;
            if subject.head.as_ref().is_some_and(|confirmed| *confirmed != head.id) {
                return Err(No::refused(Reason::HeadMoved, texts::HEAD_MOVED));
            }
            head
        }
        None => default.clone(),
    };
    let overlay = house.bench.settings.overlay.as_deref();
    let (flow, context, listing) = tokio::try_join!(
        house.repos.flow(&default, &plan.flow, overlay),
        house.repos.context(&default),
        house.repos.listing(&checkout, LISTING),
    )
    .map_err(|fault| git_says(&fault))?;
    let Some(flow) = flow else {
        return Err(No::refused(Reason::FlowNotFound, texts::flow_not_found(&plan.flow)));
    };
    let detail = texts::ground(&default.id, &flow);
    let full_name = full_name(&found.repo);
    yes(
        Ground::Repository(Box::new(RepositoryGround {
            checkout,
            flow,
            context,
            listing,
            full_name,
        })),
        detail,
    )
}

fn full_name(repo: &RepoRef) -> String {
    format!("{}/{}", repo.owner, repo.name)
}

fn forge_says(fault: &ApiError) -> No {
    match fault {
        ApiError::NotFound | ApiError::Forbidden => No::refused(Reason::RepositoryUnreadable, fault.to_string()),
        ApiError::Unauthorized => No::waits(Reason::ForgeTokenRefused, fault.to_string(), AWAY),
        ApiError::Moved(_)
        | ApiError::Archived
        | ApiError::Invalid(_)
        | ApiError::Busy { .. }
        | ApiError::Unavailable { .. }
        | ApiError::Garbled(_)
        | ApiError::BadName => No::waits(
            Reason::ForgeUnavailable,
            fault.to_string(),
            fault.retry_after().unwrap_or(AWAY),
        ),
    }
}

fn git_says(fault: &GitError) -> No {
    match fault {
        GitError::Missing | GitError::Forbidden => No::refused(Reason::RepositoryUnreadable, fault.to_string()),
        GitError::Unauthorized => No::waits(Reason::ForgeTokenRefused, fault.to_string(), AWAY),
        GitError::NoSuchRef => No::refused(Reason::FlowNotFound, fault.to_string()),
        GitError::TooLarge(_) => No::refused(Reason::JobTooLarge, fault.to_string()),
        GitError::Moved
        | GitError::Unreachable(_)
        | GitError::TimedOut(_)
        | GitError::Refused(_)
        | GitError::Failed(_)
        | GitError::Host(_) => No::waits(Reason::ForgeUnavailable, fault.to_string(), AWAY),
    }
}
