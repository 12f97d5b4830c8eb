//! Gates 4 and 5: the image is here, can do what is needed, and sets nothing that only the worker may set.

use std::time::Duration;

use contract::{Capability, labels};
use queue::{Queue, Reason};

use super::{Answer, No, Plan, yes};
use crate::{
    container::{ENVIRONMENT, Engine, EngineError, SeenImage},
    texts::job as texts,
};

/// A worker that was seen within this time lives.
const LIVES: Duration = Duration::from_secs(60);
/// How long a job that another host can run is left to the others.
const ELSEWHERE: Duration = Duration::from_secs(20);
/// How long a job waits when Docker is away.
const AWAY: Duration = Duration::from_secs(15);

/// Gate 4. The id that is found is what will run; nothing is ever pulled.
pub(super) async fn here(engine: &Engine, queue: Option<&Queue>, name: &str) -> Answer<SeenImage> {
    match engine.image(name).await {
        Ok(Some(seen)) => {
            let detail = format!("{name} is {}", seen.id);
            yes(seen, detail)
        }
        Ok(None) => {
            // When PostgreSQL cannot say who else has it, the next attempt asks again.
            let elsewhere = match queue {
                Some(queue) => queue.image_somewhere(name, LIVES).await.unwrap_or(true),
                None => false,
            };
            if elsewhere {
                Err(No::waits(Reason::ImageElsewhere, texts::image_missing(name), ELSEWHERE))
            } else {
                Err(No::refused(Reason::JobImageMissing, texts::image_missing(name)))
            }
        }
        Err(EngineError::Refused { .. }) => Err(No::refused(Reason::JobImageMissing, texts::image_missing(name))),
        Err(fault) => Err(No::waits(Reason::DockerUnavailable, fault.to_string(), AWAY)),
    }
}

/// Gate 5.
pub(super) async fn able(image: &SeenImage, plan: &Plan) -> Answer<()> {
    let label = image.labels.get(labels::CAPABILITIES).map_or("", String::as_str);
    if !plan.excluded.is_empty() && !Capability::ExcludeTools.is_in(label) {
        return Err(No::refused(
            Reason::JobImageExcludeToolsUnsupported,
            texts::lacks(Capability::ExcludeTools),
        ));
    }
    if plan.outputs.comment > 0 && !Capability::Proposals.is_in(label) {
        return Err(No::refused(
            Reason::JobImageCapabilityUnsupported,
            texts::lacks(Capability::Proposals),
        ));
    }
    let unsafe_parts = unsafe_parts(image);
    if !unsafe_parts.is_empty() {
        return Err(No::refused(Reason::JobImageUnsafe, unsafe_parts.join("; ")));
    }
    yes(
        (),
        if label.is_empty() {
            "no capability is needed".to_owned()
        } else {
            format!("the image has {label}")
        },
    )
}

/// What an image may not set, because Docker merges it into the container. Names only: values are the image's own text.
fn unsafe_parts(image: &SeenImage) -> Vec<String> {
    let mut found: Vec<String> = image
        .volumes
        .iter()
        .map(|_| "it declares a VOLUME".to_owned())
        .collect();
    found.dedup();
    for entry in &image.env {
        let name = entry.split('=').next().unwrap_or_default();
        // NODE_OPTIONS and LD_* would run code before the runner does; whatever else it sets, the environment is the
        // worker's, and Docker cannot take a variable of an image away.
        if !ENVIRONMENT.iter().any(|(ours, _)| *ours == name) {
            found.push(texts::sets_variable(name));
        }
    }
    found.extend(
        labels::OF_CONTAINERS
            .iter()
            .filter(|label| image.labels.contains_key(**label))
            .map(|label| format!("it carries the label {label}, which only the worker sets")),
    );
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use contract::{JobLimits, Tool};
    use triggers::{Mode, Outputs};

    use super::*;

    fn image(capabilities: Option<&str>) -> SeenImage {
        let labels = capabilities.map(|value| (labels::CAPABILITIES.to_owned(), value.to_owned()));
        SeenImage {
            id: "sha256:1".into(),
            labels: HashMap::from_iter(labels),
            ..SeenImage::default()
        }
    }

    fn plan(excluded: &[Tool]) -> Plan {
        Plan {
            image: "i".into(),
            excluded: excluded.to_vec(),
            provider: None,
            model: None,
            thinking: contract::Thinking::Off,
            limits: JobLimits::default(),
            outputs: Outputs::default(),
            mode: Mode::Run,
            task: None,
            instructions: None,
            flow: "triage".into(),
        }
    }

    async fn reason(image: &SeenImage, plan: &Plan) -> Option<Reason> {
        match able(image, plan).await {
            Ok(_) => None,
            Err(No::Refused { reason, .. }) => Some(reason),
            Err(No::Waits { .. }) => panic!("an image is what it is"),
        }
    }

    #[tokio::test]
    async fn a_capability_counts_only_as_an_exact_token() {
        for (label, refused) in [
            (None, true),
            (Some(""), true),
            (Some("proposals"), true),
            (Some("proposals,excludetools"), true),
            (Some("proposals,excludeTools2"), true),
            (Some("proposals, excludeTools"), true),
            (Some("proposals,excludeTools"), false),
            (Some("excludeTools,proposals"), false),
        ] {
            let expected = refused.then_some(Reason::JobImageExcludeToolsUnsupported);
            assert_eq!(reason(&image(label), &plan(&[Tool::Bash])).await, expected, "{label:?}");
        }
    }

    #[tokio::test]
    async fn a_job_without_exclusions_needs_no_such_capability() {
        assert_eq!(reason(&image(Some("proposals")), &plan(&[])).await, None);
        assert_eq!(
            reason(&image(None), &plan(&[])).await,
            Some(Reason::JobImageCapabilityUnsupported)
        );
    }

    #[tokio::test]
    async fn an_image_that_sets_what_docker_would_merge_is_unsafe() {
        let sound = image(Some("excludeTools,proposals"));
        let mut volume = sound.clone();
        volume.volumes = vec!["/data".into()];
        let mut options = sound.clone();
        options.env = vec!["PATH=/bin".into(), "NODE_OPTIONS=--require=/x.js".into()];
        let mut loader = sound.clone();
        loader.env = vec!["LD_PRELOAD=/x.so".into()];
        let mut exclusions = sound.clone();
        exclusions.env = vec!["PI_EXCLUDE_TOOLS=bash".into()];
        let mut other = sound.clone();
        other.env = vec!["PYTHONSTARTUP=/x.py".into()];
        let mut label = sound.clone();
        label.labels.insert(labels::JOB.into(), "7".into());

        let mut path = sound.clone();
        path.env = vec!["PATH=/opt/bin:/bin".into()];

        assert_eq!(reason(&sound, &plan(&[])).await, None);
        assert_eq!(reason(&path, &plan(&[])).await, None, "ours wins");
        for forbidden in [volume, options, loader, exclusions, other, label] {
            assert_eq!(
                reason(&forbidden, &plan(&[])).await,
                Some(Reason::JobImageUnsafe),
                "{forbidden:?}"
            );
        }
    }
}
