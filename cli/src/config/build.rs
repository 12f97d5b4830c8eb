//! From typed values to the [`Config`]: the defaults stand here, and what must fit together is checked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use url::Url;

use super::read::{Value, Values};
use super::secret::SecretPlace;
use super::{Config, Fault, ForgeConfig, Limits, Origin, ProviderConfig, ReceiverConfig, Shown, WorkerConfig, keys};
use crate::environment::Environment;

/// The defaults. What is not here has none.
const DEFAULTS: &[(&str, &str)] = &[
    ("data_dir", ".pi-dispatch"),
    ("database.url_env", "DATABASE_URL"),
    ("receiver.listen", "127.0.0.1:8460"),
    ("receiver.max_body", "25 MiB"),
    ("admin.listen", "127.0.0.1:8461"),
    ("worker.slots", "3"),
    ("worker.triggers", "triggers.json"),
    ("worker.image", "pi-job:2.0.0"),
    ("worker.docker", "unix:///var/run/docker.sock"),
    ("worker.job_uid", "10001"),
    ("worker.memory", "1 GiB"),
    ("worker.cpus", "1"),
    ("worker.pids", "256"),
    ("worker.workspace", "1 GiB"),
    ("worker.free_disk", "2 GiB"),
    ("limits.run.turns", "60"),
    ("limits.run.tokens", "2000000"),
    ("limits.run.cost_usd", "5"),
    ("limits.run.minutes", "30"),
    ("limits.day.tokens", "20000000"),
    ("limits.day.cost_usd", "50"),
];

/// Builds the configuration; what is wrong is added to `faults`.
pub(super) fn build(
    values: Values,
    folder: &Path,
    file: Option<PathBuf>,
    environment: &Environment,
    faults: &mut Vec<Fault>,
) -> Option<Config> {
    let mut builder = Builder {
        values,
        folder,
        faults,
        shown: Vec::new(),
    };
    let url_env = builder.text("database.url_env")?;
    let database_url = environment.get(&url_env).map(secrecy::SecretString::from);
    let config = Config {
        file,
        data_dir: builder.path("data_dir")?,
        public_url: builder.address("public_url"),
        database_url,
        receiver: ReceiverConfig {
            listen: builder.parsed("receiver.listen", "an address and a port, such as 127.0.0.1:8460")?,
            max_body: builder.size("receiver.max_body")?,
        },
        admin_listen: builder.parsed::<SocketAddr>("admin.listen", "an address and a port, such as 127.0.0.1:8461")?,
        worker: builder.worker()?,
        forges: builder.forges(),
        limits: builder.limits()?,
        providers: builder.providers(),
        shown: Vec::new(),
    };
    Some(Config {
        shown: builder.shown,
        ..config
    })
}

struct Builder<'a> {
    values: Values,
    folder: &'a Path,
    faults: &'a mut Vec<Fault>,
    shown: Vec<Shown>,
}

impl Builder<'_> {
    fn fault(&mut self, place: &str, message: impl Into<String>) {
        let path: Vec<String> = place.split('.').map(str::to_owned).collect();
        let origin = self
            .values
            .get(&path)
            .map_or(Origin::Default, |(_, origin)| origin.clone());
        self.faults.push(Fault {
            origin,
            place: place.to_owned(),
            message: message.into(),
        });
    }

    /// The value at a place, remembered for `pi-dispatch config`.
    fn value(&mut self, place: &str) -> Option<Value> {
        let path: Vec<String> = place.split('.').map(str::to_owned).collect();
        let default = || DEFAULTS.iter().find(|(name, _)| *name == place).map(|(_, text)| *text);
        let (value, origin) = match self.values.get(&path) {
            Some((value, origin)) => (value.clone(), origin.clone()),
            None => {
                let text = default()?;
                let value = match keys::find(&path)?.kind {
                    keys::Kind::Whole => Value::Whole(text.parse().ok()?),
                    _ => Value::Text(text.to_owned()),
                };
                (value, Origin::Default)
            }
        };
        self.shown.push(Shown::new(place, words(&value), &origin));
        Some(value)
    }

    fn text(&mut self, place: &str) -> Option<String> {
        match self.value(place)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn texts(&mut self, place: &str) -> Vec<String> {
        match self.value(place) {
            Some(Value::Texts(texts)) => texts,
            _ => Vec::new(),
        }
    }

    fn whole(&mut self, place: &str) -> Option<i64> {
        match self.value(place)? {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    /// A whole number from `least` up to what a `u32` holds.
    fn count(&mut self, place: &str, least: i64) -> Option<u32> {
        let number = self.whole(place)?;
        match u32::try_from(number) {
            Ok(count) if number >= least => Some(count),
            _ => {
                self.fault(place, format!("found {number}; allowed is {least} to {}", u32::MAX));
                None
            }
        }
    }

    fn path(&mut self, place: &str) -> Option<PathBuf> {
        self.text(place).map(|text| self.folder.join(text))
    }

    fn parsed<T: std::str::FromStr>(&mut self, place: &str, allowed: &str) -> Option<T> {
        let text = self.text(place)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.fault(place, format!("found \"{text}\"; allowed is {allowed}"));
        }
        parsed
    }

    fn address(&mut self, place: &str) -> Option<Url> {
        let text = self.text(place)?;
        match Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            _ => {
                self.fault(place, "it is not an http or https address");
                None
            }
        }
    }

    fn size(&mut self, place: &str) -> Option<u64> {
        let text = self.text(place)?;
        let size = parse_size(&text);
        if size.is_none() {
            self.fault(
                place,
                format!("found \"{text}\"; allowed is a size such as \"25 MiB\" or \"2 GiB\""),
            );
        }
        size
    }

    fn money(&mut self, place: &str) -> Option<i64> {
        // The kind `Money` was checked when it was read.
        self.text(place)
            .and_then(|text| contract::Micros::parse_usd(&text).ok())
            .map(|micros| micros.0)
    }

    fn secret(&mut self, place: &str) -> Option<SecretPlace> {
        match self.value(place)? {
            Value::Secret(secret) => Some(absolute(secret, self.folder)),
            _ => None,
        }
    }

    fn worker(&mut self) -> Option<WorkerConfig> {
        let millicpus = self.text("worker.cpus").and_then(|text| {
            let cpus = text.parse::<f64>().ok().filter(|cpus| *cpus >= 0.1 && *cpus <= 1024.0);
            if cpus.is_none() {
                self.fault("worker.cpus", format!("found \"{text}\"; allowed is 0.1 to 1024"));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0.1 to 1024, checked above"
            )]
            cpus.map(|cpus| (cpus * 1000.0) as u32)
        })?;
        let name = self.text("worker.name");
        if let Some(name) = &name
            && (name.is_empty()
                || name.len() > 64
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)))
        {
            self.fault("worker.name", "allowed are 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        Some(WorkerConfig {
            name,
            slots: self.count("worker.slots", 1)?,
            triggers: self.path("worker.triggers")?,
            image: self.text("worker.image")?,
            overlay: self.path("worker.overlay"),
            provider: self.text("worker.provider"),
            model: self.text("worker.model"),
            docker: self.text("worker.docker")?,
            job_uid: self.count("worker.job_uid", 1)?,
            memory: self.size("worker.memory")?,
            millicpus,
            pids: self.count("worker.pids", 32)?,
            workspace: self.size("worker.workspace")?,
            free_disk: self.size("worker.free_disk")?,
            runtime: self.text("worker.runtime"),
        })
    }

    fn limits(&mut self) -> Option<Limits> {
        Some(Limits {
            run_turns: self.count("limits.run.turns", 1)?,
            run_tokens: self.whole("limits.run.tokens")?.unsigned_abs(),
            run_cost_micros: self.money("limits.run.cost_usd")?,
            run_minutes: self.count("limits.run.minutes", 1)?,
            day_tokens: self.whole("limits.day.tokens").map(i64::unsigned_abs),
            day_cost_micros: self.money("limits.day.cost_usd"),
        })
    }

    /// How many entries the list has, or which names the table has.
    fn entries(&self, table: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for place in self.values.keys().filter(|place| place[0] == table) {
            if !names.contains(&place[1]) {
                names.push(place[1].clone());
            }
        }
        names.sort_by_key(|name| name.parse::<usize>().unwrap_or(0));
        names
    }

    fn forges(&mut self) -> Vec<ForgeConfig> {
        let mut forges: Vec<ForgeConfig> = Vec::new();
        for index in self.entries("forges") {
            if let Some(forge) = self.forge(&format!("forges.{index}")) {
                if forges.iter().any(|other| other.name == forge.name) {
                    self.fault(
                        &format!("forges.{index}.name"),
                        format!("two forges are named \"{}\"", forge.name),
                    );
                }
                forges.push(forge);
            }
        }
        forges
    }

    fn required(&mut self, place: &str, has: bool, why: &str) -> bool {
        if !has {
            self.fault(place, format!("it is missing; {why}"));
        }
        has
    }

    fn forge(&mut self, at: &str) -> Option<ForgeConfig> {
        let place = |name: &str| format!("{at}.{name}");
        let name = self.text(&place("name"));
        let kind = self.text(&place("kind"));
        let url = self.address(&place("url"));
        let repositories = self.texts(&place("repositories"));
        let mut complete = self.required(&place("name"), name.is_some(), "the hook is /hooks/NAME");
        complete &= self.required(&place("kind"), kind.is_some(), "allowed is forgejo or gitea");
        complete &= self.required(&place("url"), url.is_some(), "the base address of the forge");
        complete &= self.required(
            &place("repositories"),
            !repositories.is_empty(),
            "name the repositories, or [\"*\"] for all",
        );
        let name = name.filter(|name| {
            let fine = !name.is_empty()
                && name.len() <= 40
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if !fine {
                self.fault(&place("name"), "allowed are 1 to 40 lower-case letters, digits and `-`");
            }
            fine
        });
        let kind = kind.and_then(|kind| match kind.as_str() {
            "forgejo" => Some(forges::ForgeKind::Forgejo),
            "gitea" => Some(forges::ForgeKind::Gitea),
            other => {
                self.fault(
                    &place("kind"),
                    format!("found \"{other}\"; allowed is forgejo or gitea (others come later)"),
                );
                None
            }
        });
        if let Some(push_to) = self.text(&place("push_to"))
            && !["fork", "repository"].contains(&push_to.as_str())
        {
            self.fault(
                &place("push_to"),
                format!("found \"{push_to}\"; allowed is fork or repository"),
            );
        }
        let account_id = self.whole(&place("account_id"));
        let token = self.secret(&place("token"));
        let permission_token = self.secret(&place("permission_token"));
        let allow_users = match self.value(&place("allow_users")) {
            Some(Value::Wholes(ids)) => ids,
            _ => Vec::new(),
        };
        let webhook_secrets = match self.value(&place("webhook_secrets")) {
            Some(Value::Secrets(secrets)) => secrets
                .into_iter()
                .map(|secret| absolute(secret, self.folder))
                .collect(),
            _ => Vec::new(),
        };
        if !complete {
            return None;
        }
        Some(ForgeConfig {
            name: name?,
            kind: kind?,
            url: url?,
            repositories,
            account_id,
            token,
            permission_token,
            allow_users,
            webhook_secrets,
        })
    }

    fn providers(&mut self) -> std::collections::BTreeMap<String, ProviderConfig> {
        self.entries("providers")
            .into_iter()
            .map(|name| {
                let place = |key: &str| format!("providers.{name}.{key}");
                let models = match self.value(&place("models")) {
                    Some(Value::Models(models)) => models,
                    _ => Vec::new(),
                };
                let provider = ProviderConfig {
                    key: self.secret(&place("key")),
                    api: self.text(&place("api")),
                    base_url: self.address(&place("base_url")),
                    models,
                };
                (name.clone(), provider)
            })
            .collect()
    }
}

fn absolute(secret: SecretPlace, folder: &Path) -> SecretPlace {
    match secret {
        SecretPlace::File(path) => SecretPlace::File(folder.join(path)),
        other @ (SecretPlace::Variable(_) | SecretPlace::Command(_)) => other,
    }
}

/// `"25 MiB"` in bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit).filter(|size| *size > 0)
}

fn words(value: &Value) -> String {
    let join = |texts: Vec<String>| format!("[{}]", texts.join(", "));
    match value {
        Value::Text(text) => text.clone(),
        Value::Whole(number) => number.to_string(),
        Value::Texts(texts) => join(texts.clone()),
        Value::Wholes(numbers) => join(numbers.iter().map(i64::to_string).collect()),
        Value::Secret(secret) => format!("(secret in {})", secret.words()),
        Value::Secrets(secrets) => join(
            secrets
                .iter()
                .map(|secret| format!("(secret in {})", secret.words()))
                .collect(),
        ),
        Value::Models(models) => join(
            models
                .iter()
                .map(|m| m["id"].as_str().unwrap_or("?").to_owned())
                .collect(),
        ),
    }
}
