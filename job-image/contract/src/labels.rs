//! Labels of the job image and of job containers.
//!
//! Docker merges an image's labels into its containers, so an image that carries one of the container labels is
//! refused: it could make a foreign container look like ours.

/// On the image: the capabilities it has, exact tokens joined by commas (see [`crate::Capability`]).
pub const CAPABILITIES: &str = "dev.pi-dispatch.capabilities";
/// On the image: the version of pi in it.
pub const PI_VERSION: &str = "dev.pi-dispatch.pi-version";
/// On the image: the version of the contract its runner speaks ([`crate::CONTRACT_VERSION`]).
pub const CONTRACT: &str = "dev.pi-dispatch.contract";
/// On the image: hash of everything it was built from; a build that would make the same image is skipped.
pub const RECIPE: &str = "dev.pi-dispatch.recipe";

/// On a container: the deployment it belongs to.
pub const DEPLOYMENT: &str = "dev.pi-dispatch.deployment";
/// On a container: the worker that made it.
pub const WORKER: &str = "dev.pi-dispatch.worker";
/// On a container: the job's number.
pub const JOB: &str = "dev.pi-dispatch.job";
/// On a container: the attempt's number.
pub const ATTEMPT: &str = "dev.pi-dispatch.attempt";

/// The labels that the worker sets itself; no image may carry one.
pub const OF_CONTAINERS: [&str; 4] = [DEPLOYMENT, WORKER, JOB, ATTEMPT];
