//! From configuration to running parts: each service is handed only what is its own.
//!
//! The receiver gets the hooks' secrets, the worker the forges' tokens and the providers' keys, the panel nothing of that.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use forges::{Api, ApiSettings};
use gateway::providers::{Catalog, ProviderConfig};
use queue::{Connect, Queue};
use receiver::HookDoor;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use worker::Bench;
use worker::container::Engine;
use worker::settings::{DayLimits, Deps, ForgeSetup, Limits, RunLimits, Settings};
use worker::trusted_path;

use crate::Context;
use crate::config::Config;
use crate::private_postgres::PrivatePostgres;

/// An open database. A private one that nobody else uses any more is stopped by [`Database::close`].
pub struct Database {
    /// The queue on it.
    pub queue: Queue,
    private: Option<PrivatePostgres>,
}

impl Database {
    /// Connects; starts the private PostgreSQL when no URL is configured and it does not run.
    pub async fn open(config: &Config, service: &str) -> anyhow::Result<Self> {
        let (url, private) = match &config.database_url {
            Some(url) => (url.clone(), None),
            None => {
                anyhow::ensure!(
                    config.file.is_some() || config.data_dir.exists(),
                    "there is no pi-dispatch.toml here and no DATABASE_URL is set: go to the folder of the configuration, \
                     name it with --config, or begin with `pi-dispatch up`"
                );
                make_data_dir(&config.data_dir)?;
                let private = PrivatePostgres::ensure(&config.data_dir)?;
                (SecretString::from(private.url.as_str()), Some(private))
            }
        };
        let queue = Queue::connect(&Connect::new(url.expose_secret(), service))
            .await
            .with_context(|| format!("PostgreSQL cannot be reached ({})", place_of(config)))?;
        Ok(Self { queue, private })
    }

    /// The same, and refuses a schema that is not this program's.
    pub async fn open_current(config: &Config, service: &str) -> anyhow::Result<Self> {
        let database = Self::open(config, service).await?;
        database
            .queue
            .check_schema()
            .await
            .context("this database does not fit; an older or empty one is mended by `pi-dispatch migrate`, a newer one needs the newer program")?;
        Ok(database)
    }

    /// Hangs up; the last user of the private PostgreSQL stops it.
    pub async fn close(self) -> anyhow::Result<()> {
        self.queue.pool().close().await;
        self.private.map_or(Ok(()), |private| Ok(private.leave()?))
    }
}

/// Where the database is, without the password that the URL may hold.
fn place_of(config: &Config) -> String {
    let Some(url) = &config.database_url else {
        return format!("the private one of {}", config.data_dir.display());
    };
    match url::Url::parse(url.expose_secret()) {
        Ok(url) => format!(
            "{}{}{} of the configured database URL",
            url.host_str().unwrap_or("a socket"),
            url.port().map_or(String::new(), |port| format!(":{port}")),
            url.path()
        ),
        Err(_) => "the configured database URL is not one".to_owned(),
    }
}

/// Says at once when an address of ours is taken, before anything is started.
pub fn addresses_are_free(config: &Config) -> anyhow::Result<()> {
    for (key, address) in [
        ("receiver.listen", config.receiver.listen),
        ("admin.listen", config.admin_listen),
    ] {
        std::net::TcpListener::bind(address)
            .with_context(|| format!("{key} = \"{address}\" cannot be listened on (does pi-dispatch run already?)"))?;
    }
    Ok(())
}

/// The folder of what is ours. Others may walk through it (the private PostgreSQL has its own user), not list it.
pub fn make_data_dir(folder: &Path) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(folder)
        .with_context(|| format!("the data folder {} cannot be made", folder.display()))
}

/// The receiver's part.
pub fn hooks(config: &Config, context: &Context) -> anyhow::Result<Vec<HookDoor>> {
    config
        .forges
        .iter()
        .map(|forge| {
            let secrets = forge
                .webhook_secrets
                .iter()
                .map(|place| place.open(&context.environment, config.worker.job_uid))
                .collect::<Result<_, _>>()
                .with_context(|| format!("webhook secret of the forge `{}`", forge.name))?;
            Ok(HookDoor {
                name: forge.name.clone(),
                kind: forge.kind,
                secrets,
            })
        })
        .collect()
}

/// The worker's part.
pub fn worker(config: &Config, context: &Context, queue: Queue) -> anyhow::Result<Deps> {
    if let Some(overlay) = &config.worker.overlay {
        trust_overlay(overlay, config.worker.job_uid)?;
    }
    let (catalog, keys) = catalog(config, context)?;
    let mut withhold = keys;
    for forge in &config.forges {
        for place in forge
            .token
            .iter()
            .chain(&forge.permission_token)
            .chain(&forge.webhook_secrets)
        {
            // A secret that cannot be opened is told below, where it is needed.
            withhold.extend(place.open(&context.environment, config.worker.job_uid).ok());
        }
    }
    let forges = config
        .forges
        .iter()
        .map(|forge| forge_setup(forge, config, context, &withhold))
        .collect::<Result<_, _>>()?;
    let docker = docker(&config.worker.docker)?;
    Ok(Deps {
        queue,
        forges,
        settings: settings(config),
        catalog: Arc::new(catalog),
        docker,
    })
}

/// Refuses an overlay of which anything could be written by others or by the jobs' user. Links are not followed: the
/// reader of skills refuses them.
fn trust_overlay(folder: &Path, jobs_user: u32) -> anyhow::Result<()> {
    let failed = || format!("worker.overlay {}", folder.display());
    let mut ahead = vec![folder.to_path_buf()];
    while let Some(path) = ahead.pop() {
        trusted_path::check(&path, jobs_user).with_context(failed)?;
        if path == folder || path.symlink_metadata().with_context(failed)?.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(failed)? {
                let entry = entry.with_context(failed)?;
                if !entry.file_type().with_context(failed)?.is_symlink() {
                    ahead.push(entry.path());
                }
            }
        }
    }
    Ok(())
}

/// What a job by hand needs: no forge, no database.
pub fn bench(config: &Config, context: &Context) -> anyhow::Result<Bench> {
    let (catalog, _) = catalog(config, context)?;
    let engine = Engine::new(docker(&config.worker.docker)?);
    Ok(Bench {
        engine,
        catalog: Arc::new(catalog),
        settings: Arc::new(settings(config)),
    })
}

/// The engine behind the configured socket.
pub fn docker(address: &str) -> anyhow::Result<bollard::Docker> {
    bollard::Docker::connect_with_socket(address.trim_start_matches("unix://"), 120, bollard::API_DEFAULT_VERSION)
        .with_context(|| format!("Docker's socket {address}"))
}

/// The models that may be used, and the keys among them (to be withheld from texts).
pub fn catalog(config: &Config, context: &Context) -> anyhow::Result<(Catalog, Vec<SecretString>)> {
    let mut keys = Vec::new();
    let mut providers = BTreeMap::new();
    for (name, provider) in &config.providers {
        let key = match &provider.key {
            Some(place) => {
                let key = place
                    .open(&context.environment, config.worker.job_uid)
                    .with_context(|| format!("key of the provider `{name}`"))?;
                keys.push(key.clone());
                Some(key)
            }
            None => None,
        };
        let models = serde_json::from_value(serde_json::Value::Array(provider.models.clone()))
            .with_context(|| format!("providers.{name}.models"))?;
        let api = match &provider.api {
            Some(api) => Some(
                serde_json::from_value(serde_json::Value::String(api.clone()))
                    .with_context(|| format!("providers.{name}.api"))?,
            ),
            None => None,
        };
        let base_url = provider.base_url.as_ref().map(url::Url::to_string);
        providers.insert(
            name.clone(),
            ProviderConfig {
                api,
                base_url,
                models,
                key,
            },
        );
    }
    Ok((Catalog::new(providers)?, keys))
}

fn forge_setup(
    forge: &crate::config::ForgeConfig,
    config: &Config,
    context: &Context,
    withhold: &[SecretString],
) -> anyhow::Result<ForgeSetup> {
    let open = |place: &Option<crate::config::secret::SecretPlace>, what: &str| {
        place
            .as_ref()
            .map(|place| place.open(&context.environment, config.worker.job_uid))
            .transpose()
            .with_context(|| format!("{what} of the forge `{}`", forge.name))
    };
    let token = open(&forge.token, "token")?.with_context(|| {
        format!(
            "the forge `{}` has no token: without one nothing can be answered there",
            forge.name
        )
    })?;
    let permission_token = open(&forge.permission_token, "permission token")?;
    let url = forge.url.to_string();
    let api = Api::new(ApiSettings {
        kind: forge.kind,
        url,
        token,
        permission_token,
        plain_http: false,
    })
    .with_context(|| format!("the forge `{}`", forge.name))?;
    Ok(ForgeSetup {
        name: forge.name.clone(),
        kind: forge.kind,
        api: Arc::new(api),
        repositories: forge.repositories.clone(),
        account_id: forge.account_id,
        allow_users: forge.allow_users.iter().copied().collect::<BTreeSet<_>>(),
        withhold: withhold.to_vec(),
    })
}

/// The deployment's name in the labels of containers: the data folder's, so that two deployments on one host never touch
/// each other's containers and a restarted one finds its own.
fn deployment(config: &Config) -> String {
    hex::encode(&Sha256::digest(config.data_dir.as_os_str().as_encoded_bytes())[..6])
}

fn settings(config: &Config) -> Settings {
    let name = config.worker.name.clone().unwrap_or_else(host_name);
    let mut settings = Settings::new(name, deployment(config), config.data_dir.join("worker"));
    let socket_dir = settings.data_dir.join("s");
    // The path of a socket may have 107 bytes: `JOB-ATTEMPT/control.sock` needs some 40 of them.
    if socket_dir.as_os_str().len() > 64 {
        settings.socket_dir = std::path::PathBuf::from("/run/pi-dispatch").join(&settings.deployment);
    }
    settings.slots = u16::try_from(config.worker.slots).unwrap_or(u16::MAX);
    settings.triggers.clone_from(&config.worker.triggers);
    settings.image.clone_from(&config.worker.image);
    settings.overlay.clone_from(&config.worker.overlay);
    settings.provider.clone_from(&config.worker.provider);
    settings.model.clone_from(&config.worker.model);
    settings.public_url = config
        .public_url
        .as_ref()
        .map(|url| url.as_str().trim_end_matches('/').to_owned());
    settings.limits = Limits {
        run: RunLimits {
            turns: config.limits.run_turns,
            tokens: config.limits.run_tokens,
            cost: Some(contract::Micros(config.limits.run_cost_micros)),
            total: Duration::from_secs(u64::from(config.limits.run_minutes) * 60),
        },
        day: DayLimits {
            tokens: config.limits.day_tokens,
            cost: config.limits.day_cost_micros.map(contract::Micros),
        },
    };
    let container = &mut settings.container;
    container.uid = config.worker.job_uid;
    container.memory = config.worker.memory;
    container.pids = config.worker.pids;
    container.nano_cpus = u64::from(config.worker.millicpus) * 1_000_000;
    container.workspace_bytes = config.worker.workspace;
    container.free_floor = config.worker.free_disk;
    container.runtime.clone_from(&config.worker.runtime);
    settings
}

/// The host's name, for workers that were given none.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
