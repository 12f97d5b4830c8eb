//! What a running job and its gates say.

use contract::{Capability, labels};

use crate::repo::{Flow, FlowSource};

/// Lines over the rate.
pub(crate) fn lines_dropped(count: u32) -> String {
    format!("{count} lines were printed faster than they are kept, and dropped")
}

/// Lines that are no events.
pub(crate) fn unreadable_lines(count: u64) -> String {
    format!("{count} lines of the runner's output are not of the contract; they are shown and believed by nobody")
}

/// The agent proposed more than it may.
pub(crate) fn proposals_full(at_most: u32) -> String {
    match at_most {
        0 => "this job may not propose a comment; its last message is kept with the run".to_owned(),
        1 => "one comment was proposed already, and this job may propose only one".to_owned(),
        more => format!("{more} comments were proposed already, and this job may propose no more"),
    }
}

/// A proposal that could not be written down.
pub(crate) const NOT_KEPT: &str = "the worker could not keep it";

/// Nobody named a provider.
pub(crate) const NO_PROVIDER: &str = "neither the trigger nor the worker's configuration names a provider";
/// Nobody named a model.
pub(crate) const NO_MODEL: &str = "neither the trigger nor the worker's configuration names a model";
/// No exclusions.
pub(crate) const FULL_SET: &str = "full pinned tool set";
/// A pull request moved on.
pub(crate) const HEAD_MOVED: &str = "the pull request has another head than the one that was confirmed";

/// The image is not here.
pub(crate) fn image_missing(name: &str) -> String {
    format!("the image `{name}` is not on this host, and images are never pulled")
}

/// The image cannot do what is needed.
pub(crate) fn lacks(capability: Capability) -> String {
    format!(
        "the image's label `{}` does not name `{}`",
        labels::CAPABILITIES,
        capability.token()
    )
}

/// The trigger is gone.
pub(crate) fn trigger_removed(id: &str) -> String {
    format!("the triggers file in force has no trigger `{id}`")
}

/// The trigger is there.
pub(crate) fn trigger_found(id: &str, line: u32) -> String {
    format!("trigger `{id}`, line {line}")
}

/// Somebody paused.
pub(crate) fn paused_by(who: &str) -> String {
    format!("paused by {who}")
}

/// A forge that left the configuration.
pub(crate) fn no_such_forge(name: &str) -> String {
    format!("this worker's configuration has no forge `{name}`")
}

/// No skill of that name.
pub(crate) fn flow_not_found(flow: &str) -> String {
    format!("neither the default branch nor the overlay has the skill `{flow}`")
}

/// What the job works on.
pub(crate) fn ground(commit: &str, flow: &Flow) -> String {
    let from = match flow.source {
        FlowSource::Repository => "the default branch",
        FlowSource::Overlay => "the overlay",
    };
    let shadows = if flow.shadows_overlay {
        ", which shadows the overlay's"
    } else {
        ""
    };
    let enforces = if flow.says_allowed_tools {
        "; its `allowed-tools` enforces nothing"
    } else {
        ""
    };
    format!("commit {commit}; skill `{}` of {from}{shadows}{enforces}", flow.name)
}

/// The container is as asked.
pub(crate) fn container_made(image_id: &str) -> String {
    format!("made from {image_id} and found as asked")
}

/// A worker came back to its job.
pub(crate) const ADOPTED: &str = "the worker was started again and goes on with this run";
/// Names of a job by hand, where a forge's and a repository's would stand.
pub(crate) const BY_HAND: &str = "by-hand";
/// Who asks for a job by hand.
pub(crate) const OPERATOR: &str = "operator";
/// What stands where a skill's text would.
pub(crate) const FLOW_BY_HAND: &str =
    "This job was started by hand, without a repository on a forge. Do what the message asks, in the workspace.";

/// Somebody stopped the run.
pub(crate) fn stopped_by(who: &str) -> String {
    format!("stopped by {who}")
}

/// An image's variable that would end up in the container.
pub(crate) fn sets_variable(name: &str) -> String {
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .take(64)
        .collect();
    format!("it sets the variable `{name}`, and a job's environment is the worker's alone")
}
