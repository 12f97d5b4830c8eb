//! What a worker shows of itself: that it lives, its slots, the images of its host, what troubles it.

use std::collections::{BTreeMap, BTreeSet};

use queue::{ImageSeen, JobData, NewWorker, WorkerName};

use crate::{disk, job::House};

/// Labels of ours begin so; others are nobody's business.
const OUR_LABELS: &str = "dev.pi-dispatch.";

/// What the worker says now.
pub(crate) async fn row(house: &House, busy: usize) -> NewWorker {
    let settings = &house.bench.settings;
    let (images, docker_trouble) = images(house).await;
    let trouble = docker_trouble.or_else(|| disk_trouble(house));
    NewWorker {
        worker: WorkerName(settings.worker.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        slots: i32::from(settings.slots),
        busy: i32::try_from(busy).unwrap_or(i32::MAX),
        data_version: JobData::VERSION,
        images,
        trouble,
    }
}

/// The images that the triggers in force and the configuration name, by name.
#[must_use]
pub(crate) fn image_names(house: &House) -> BTreeSet<String> {
    let in_force = house.triggers.current();
    let named = in_force
        .file
        .triggers()
        .iter()
        .filter_map(|trigger| trigger.run.image.clone());
    named.chain([house.bench.settings.image.clone()]).collect()
}

async fn images(house: &House) -> (BTreeMap<String, ImageSeen>, Option<String>) {
    let mut seen = BTreeMap::new();
    for name in image_names(house) {
        match house.bench.engine.image(&name).await {
            Ok(Some(image)) => {
                let labels = image
                    .labels
                    .into_iter()
                    .filter(|(label, _)| label.starts_with(OUR_LABELS))
                    .collect();
                seen.insert(name, ImageSeen { id: image.id, labels });
            }
            Ok(None) => {}
            Err(fault) => return (seen, Some(fault.to_string())),
        }
    }
    (seen, None)
}

fn disk_trouble(house: &House) -> Option<String> {
    has_room(house).err()
}

/// Whether the host has room for another job; in words when it has not.
pub(crate) fn has_room(house: &House) -> Result<(), String> {
    let settings = &house.bench.settings;
    let floor = settings.container.free_floor;
    match disk::free(&settings.data_dir) {
        Ok(free) if free >= floor => Ok(()),
        Ok(free) => Err(format!(
            "{} MiB are free under the data folder, {} MiB must be",
            free >> 20,
            floor >> 20
        )),
        Err(fault) => Err(format!("the data folder cannot be looked at: {fault}")),
    }
}
