//! Is the container that Docker made the one that was asked for?
//!
//! The comparison is closed on both sides: a field that was asked for must come back equal, and a field that was not
//! asked for must come back empty or with the one value that the engine always puts there ([`ENGINE_FILLS`]).

use bollard::models::{ContainerConfig, ContainerInspectResponse, HostConfig, MountPoint};
use serde_json::{Map, Value, json};

use super::Ask;
use contract::paths;

/// Fields of the host configuration that the engine fills by itself, with the values that leave the box as locked as
/// it was asked for. `CgroupnsMode` depends on the host's cgroup version and opens nothing either way.
const ENGINE_FILLS: [(&str, &[&str]); 6] = [
    ("CgroupnsMode", &["host", "private"]),
    ("Runtime", &["runc", "io.containerd.runc.v2"]),
    ("VolumeDriver", &["", "local"]),
    ("UsernsMode", &[""]),
    ("Isolation", &["", "default"]),
    ("Cgroup", &[""]),
];

/// Every difference in words that may stand in a log: field names and values of ours and of the image, nothing of a
/// job. Empty when the container may start.
#[must_use]
pub fn differences(ask: &Ask, made: &ContainerInspectResponse) -> Vec<String> {
    let mut found = Vec::new();
    if made.image.as_deref() != Some(ask.image.id.as_str()) {
        found.push(format!("image is {:?}, not the inspected {}", made.image, ask.image.id));
    }
    match &made.host_config {
        Some(host) => compare_host(ask, host, &mut found),
        None => found.push("the engine shows no host configuration".to_owned()),
    }
    match &made.config {
        Some(config) => compare_config(ask, config, &mut found),
        None => found.push("the engine shows no configuration".to_owned()),
    }
    compare_mounts(ask, made.mounts.as_deref().unwrap_or_default(), &mut found);
    found
}

fn compare_host(ask: &Ask, host: &HostConfig, found: &mut Vec<String>) {
    let (Value::Object(asked), Value::Object(mut made)) = (as_json(&ask.host()), as_json(host)) else {
        found.push("the host configuration cannot be compared".to_owned());
        return;
    };
    // Lists whose order carries no meaning, and paths that the engine hides and protects for every container.
    for (field, must_hold) in [("MaskedPaths", "/proc/kcore"), ("ReadonlyPaths", "/proc/sys")] {
        let holds = made
            .remove(field)
            .is_some_and(|list| list.as_array().is_some_and(|l| l.contains(&json!(must_hold))));
        if !holds {
            found.push(format!("{field} does not hold {must_hold}"));
        }
    }
    // A size that matters only where shared memory exists, and the terminal that there is not.
    made.remove("ShmSize");
    made.remove("ConsoleSize");
    compare_maps("HostConfig", &asked, &made, found);
}

fn compare_maps(place: &str, asked: &Map<String, Value>, made: &Map<String, Value>, found: &mut Vec<String>) {
    for (field, wanted) in asked {
        let got = made.get(field).unwrap_or(&Value::Null);
        if !alike(wanted, got) {
            found.push(format!("{place}.{field} is {got}, asked was {wanted}"));
        }
    }
    for (field, got) in made {
        if !asked.contains_key(field) && !is_empty(got) && !engine_fills(field, got) {
            found.push(format!("{place}.{field} is {got}, nothing was asked"));
        }
    }
}

fn engine_fills(field: &str, got: &Value) -> bool {
    ENGINE_FILLS
        .iter()
        .any(|(name, values)| *name == field && got.as_str().is_some_and(|got| values.contains(&got)))
}

/// Equal, where an empty list or object counts as absent and lists count as sets.
fn alike(wanted: &Value, got: &Value) -> bool {
    if is_empty(wanted) && is_empty(got) {
        return true;
    }
    match (wanted, got) {
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.len() == got.len()
                && wanted.iter().all(|one| got.iter().any(|other| alike(one, other)))
                && got.iter().all(|one| wanted.iter().any(|other| alike(other, one)))
        }
        (Value::Object(wanted), Value::Object(got)) => {
            wanted
                .iter()
                .all(|(key, one)| alike(one, got.get(key).unwrap_or(&Value::Null)))
                && got
                    .iter()
                    .all(|(key, other)| wanted.contains_key(key) || is_empty(other))
        }
        (wanted, got) => wanted == got,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
    }
}

fn compare_config(ask: &Ask, config: &ContainerConfig, found: &mut Vec<String>) {
    let asked = ask.body();
    let mut check = |field: &str, wanted: Value, got: Value| {
        if !alike(&wanted, &got) {
            found.push(format!("Config.{field} is {got}, asked was {wanted}"));
        }
    };
    check("User", json!(asked.user), json!(config.user));
    check("Env", json!(asked.env), json!(config.env));
    check("Labels", json!(ask.labels()), json!(config.labels));
    check("WorkingDir", json!(asked.working_dir), json!(config.working_dir));
    check("Healthcheck", json!(asked.healthcheck), json!(config.healthcheck));
    check("StopSignal", json!(asked.stop_signal), json!(config.stop_signal));
    check("Hostname", json!(asked.hostname), json!(config.hostname));
    check("NetworkDisabled", json!(true), json!(config.network_disabled));
    check("Volumes", Value::Null, json!(config.volumes));
    check("ExposedPorts", Value::Null, json!(config.exposed_ports));
    check("OnBuild", Value::Null, json!(config.on_build));
    check("Shell", Value::Null, json!(config.shell));
    check("Tty", json!(false), json!(config.tty));
    check("OpenStdin", json!(false), json!(config.open_stdin));
    // Order carries meaning here.
    if config.entrypoint != asked.entrypoint || config.cmd.as_ref().is_some_and(|cmd| !cmd.is_empty()) {
        found.push(format!(
            "Config.Entrypoint and Cmd are {:?} {:?}",
            config.entrypoint, config.cmd
        ));
    }
}

fn compare_mounts(ask: &Ask, made: &[MountPoint], found: &mut Vec<String>) {
    let folders = &ask.folders;
    let wanted = [
        (paths::JOB, &folders.job, false),
        (paths::WORKSPACE, &folders.workspace, true),
        (paths::SESSION, &folders.session, true),
        (paths::SOCKETS, &folders.sockets, false),
    ];
    for (target, source, writable) in wanted {
        let there = made.iter().any(|mount| {
            mount.destination.as_deref() == Some(target)
                && mount.source.as_deref() == source.to_str()
                && mount.rw == Some(writable)
                && mount.typ.as_deref() == Some("bind")
        });
        if !there {
            found.push(format!("the mount {target} is not as asked"));
        }
    }
    for mount in made {
        let target = mount.destination.as_deref().unwrap_or_default();
        if !wanted.iter().any(|(known, ..)| *known == target) {
            found.push(format!("a mount {target:?} that nobody asked for"));
        }
    }
}

fn as_json(host: &HostConfig) -> Value {
    serde_json::to_value(host).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, path::PathBuf};

    use bollard::models::DeviceMapping;

    use super::*;
    use crate::{
        container::{Folders, Owner, SeenImage},
        settings::ContainerSettings,
    };

    fn ask() -> Ask {
        Ask {
            image: SeenImage {
                id: "sha256:1".into(),
                labels: HashMap::from([("dev.pi-dispatch.capabilities".into(), "excludeTools".into())]),
                ..SeenImage::default()
            },
            owner: Owner {
                deployment: "d".into(),
                worker: "w".into(),
                job: 7,
                attempt: 1,
            },
            excluded: vec!["bash".into()],
            folders: Folders {
                job: PathBuf::from("/d/job"),
                workspace: PathBuf::from("/d/workspace"),
                session: PathBuf::from("/d/session"),
                sockets: PathBuf::from("/d/s"),
            },
            settings: ContainerSettings::default(),
            log_size: 1000,
        }
    }

    /// What an engine that does as it is told would show.
    fn made(ask: &Ask) -> ContainerInspectResponse {
        let body = ask.body();
        let host = HostConfig {
            masked_paths: Some(vec!["/proc/kcore".into()]),
            readonly_paths: Some(vec!["/proc/sys".into()]),
            shm_size: Some(64 << 20),
            runtime: Some("runc".into()),
            ..ask.host()
        };
        let config = ContainerConfig {
            user: body.user,
            env: body.env,
            labels: Some(ask.labels()),
            entrypoint: body.entrypoint,
            working_dir: body.working_dir,
            healthcheck: body.healthcheck,
            stop_signal: body.stop_signal,
            hostname: body.hostname,
            network_disabled: Some(true),
            ..ContainerConfig::default()
        };
        let mount = |source: &str, destination: &str, rw: bool| MountPoint {
            typ: Some("bind".into()),
            source: Some(source.into()),
            destination: Some(destination.into()),
            rw: Some(rw),
            ..MountPoint::default()
        };
        ContainerInspectResponse {
            image: Some(ask.image.id.clone()),
            host_config: Some(host),
            config: Some(config),
            mounts: Some(vec![
                mount("/d/job", paths::JOB, false),
                mount("/d/workspace", paths::WORKSPACE, true),
                mount("/d/session", paths::SESSION, true),
                mount("/d/s", paths::SOCKETS, false),
            ]),
            ..ContainerInspectResponse::default()
        }
    }

    #[test]
    fn what_was_asked_has_no_difference() {
        assert_eq!(differences(&ask(), &made(&ask())), Vec::<String>::new());
    }

    #[test]
    fn each_way_out_of_the_box_is_a_difference() {
        type Change = fn(&mut HostConfig, &mut ContainerConfig, &mut Vec<MountPoint>);
        let changes: [(&str, Change); 22] = [
            ("privileged", |host, _, _| host.privileged = Some(true)),
            ("a capability", |host, _, _| {
                host.cap_add = Some(vec!["SYS_ADMIN".into()])
            }),
            ("capabilities kept", |host, _, _| host.cap_drop = None),
            ("a network", |host, _, _| host.network_mode = Some("bridge".into())),
            ("the host's processes", |host, _, _| host.pid_mode = Some("host".into())),
            ("shared memory", |host, _, _| host.ipc_mode = Some("host".into())),
            ("the host's users", |host, _, _| host.userns_mode = Some("host".into())),
            ("a bind", |host, _, _| host.binds = Some(vec!["/:/host".into()])),
            ("a device", |host, _, _| {
                host.devices = Some(vec![
                    DeviceMapping::default(),
                    DeviceMapping {
                        path_on_host: Some("/dev/kvm".into()),
                        ..DeviceMapping::default()
                    },
                ])
            }),
            ("no seccomp", |host, _, _| {
                host.security_opt = Some(vec!["no-new-privileges".into(), "seccomp=unconfined".into()]);
            }),
            ("new privileges", |host, _, _| host.security_opt = None),
            ("a writable root", |host, _, _| host.readonly_rootfs = Some(false)),
            ("no limit of memory", |host, _, _| host.memory = None),
            ("swap", |host, _, _| host.memory_swap = Some(-1)),
            ("nothing hidden", |host, _, _| host.masked_paths = Some(Vec::new())),
            ("another runtime", |host, _, _| host.runtime = Some("other".into())),
            ("a restart", |host, _, _| host.restart_policy = None),
            ("root", |_, config, _| config.user = Some("0:0".into())),
            ("a variable", |_, config, _| {
                config.env.as_mut().unwrap().push("NODE_OPTIONS=-r/x".into())
            }),
            ("a label", |_, config, _| {
                config
                    .labels
                    .as_mut()
                    .unwrap()
                    .insert("dev.pi-dispatch.job".into(), "8".into());
            }),
            ("a mount", |_, _, mounts| {
                mounts.push(MountPoint {
                    destination: Some("/host".into()),
                    ..MountPoint::default()
                })
            }),
            ("writable inputs", |_, _, mounts| mounts[0].rw = Some(true)),
        ];
        for (name, change) in changes {
            let mut made = made(&ask());
            change(
                made.host_config.as_mut().unwrap(),
                made.config.as_mut().unwrap(),
                made.mounts.as_mut().unwrap(),
            );
            assert_ne!(differences(&ask(), &made), Vec::<String>::new(), "{name} was not seen");
        }
    }

    #[test]
    fn another_image_than_the_one_that_was_looked_at_is_a_difference() {
        let mut made = made(&ask());
        made.image = Some("sha256:2".into());
        assert_eq!(differences(&ask(), &made).len(), 1);
    }
}
