//! Every key of `pi-dispatch.toml`: its place, its type, what it means.
//!
//! One table serves four readers: the check for unknown keys, the environment (`PI_DISPATCH_WORKER_SLOTS`), the page that
//! `pi-dispatch config` prints, and `docs/configuration.md`. A key that is not here does not exist.

/// What a key may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number, not below zero.
    Whole,
    /// Money as decimal text, e.g. `"5"` or `"0.25"`: US dollars.
    Money,
    /// A list of texts.
    Texts,
    /// A list of whole numbers.
    Wholes,
    /// `{ file = "…" }`, `{ env = "…" }` or `{ command = ["…"] }`: where a secret is, never the secret itself.
    Secret,
    /// A list of those.
    Secrets,
    /// A list of models: read whole, see `gateway::providers`.
    Models,
}

impl Kind {
    /// The kind in words, for error messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text in quotes",
            Self::Whole => "a whole number, 0 or more",
            Self::Money => "an amount in US dollars as text, such as \"5\" or \"0.25\"",
            Self::Texts => "a list of texts",
            Self::Wholes => "a list of whole numbers",
            Self::Secret => "where the secret is: { file = \"…\" }, { env = \"…\" } or { command = [\"…\"] }",
            Self::Secrets => "a list of places of secrets: [{ file = \"…\" }]",
            Self::Models => "a list of models: [{ id = \"…\", context_window = 131072, max_tokens = 16384 }]",
        }
    }
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted place; `[]` stands for each entry of a list, `*` for a name of your own.
    pub path: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What it means, in one line.
    pub help: &'static str,
}

const fn key(path: &'static str, kind: Kind, help: &'static str) -> Key {
    Key { path, kind, help }
}

/// The table.
pub const KEYS: &[Key] = &[
    key("data_dir", Kind::Text, "where pi-dispatch keeps what is its own"),
    key("public_url", Kind::Text, "address of the panel, for links in comments"),
    key(
        "database.url_env",
        Kind::Text,
        "name of the variable that holds the PostgreSQL URL",
    ),
    key("receiver.listen", Kind::Text, "address and port of the hooks"),
    key("receiver.max_body", Kind::Text, "largest delivery, e.g. \"25 MiB\""),
    key("admin.listen", Kind::Text, "address and port of the panel"),
    key(
        "worker.name",
        Kind::Text,
        "name of this worker; the host's name when absent",
    ),
    key("worker.slots", Kind::Whole, "jobs that run at the same time"),
    key("worker.triggers", Kind::Text, "the triggers file"),
    key("worker.image", Kind::Text, "job image for triggers that name none"),
    key(
        "worker.overlay",
        Kind::Text,
        "folder with skills, persona.md and models.json of the operator",
    ),
    key("worker.provider", Kind::Text, "provider for triggers that name none"),
    key("worker.model", Kind::Text, "model for triggers that name none"),
    key("worker.docker", Kind::Text, "Docker's socket"),
    key(
        "worker.job_uid",
        Kind::Whole,
        "user id of a job inside its container; never the worker's own",
    ),
    key("worker.memory", Kind::Text, "memory of a job, e.g. \"1 GiB\""),
    key("worker.cpus", Kind::Text, "processors of a job, e.g. \"1\" or \"1.5\""),
    key("worker.pids", Kind::Whole, "processes of a job"),
    key(
        "worker.workspace",
        Kind::Text,
        "largest workspace of a job, e.g. \"1 GiB\"",
    ),
    key(
        "worker.free_disk",
        Kind::Text,
        "no job is claimed while less than this is free",
    ),
    key("worker.runtime", Kind::Text, "another OCI runtime, e.g. \"runsc\""),
    key(
        "forges[].name",
        Kind::Text,
        "name of the instance; its hook is /hooks/NAME",
    ),
    key("forges[].kind", Kind::Text, "forgejo or gitea"),
    key("forges[].url", Kind::Text, "base address of the forge"),
    key(
        "forges[].repositories",
        Kind::Texts,
        "globs on owner/name that it serves; [\"*\"] for all",
    ),
    key(
        "forges[].account_id",
        Kind::Whole,
        "numeric id of our own account; asked for when the token may read it",
    ),
    key("forges[].token", Kind::Secret, "token of our own account"),
    key(
        "forges[].permission_token",
        Kind::Secret,
        "read-only token of a repository admin, to ask who may write",
    ),
    key(
        "forges[].allow_users",
        Kind::Wholes,
        "numeric ids that may start jobs without being looked up",
    ),
    key("forges[].push_to", Kind::Text, "fork or repository"),
    key(
        "forges[].webhook_secrets",
        Kind::Secrets,
        "secrets of the hook; several while one is replaced",
    ),
    key("limits.run.turns", Kind::Whole, "turns of one run"),
    key("limits.run.tokens", Kind::Whole, "tokens of one run"),
    key("limits.run.cost_usd", Kind::Money, "cost of one run"),
    key("limits.run.minutes", Kind::Whole, "minutes of one run"),
    key("limits.day.tokens", Kind::Whole, "tokens of all runs of a UTC day"),
    key("limits.day.cost_usd", Kind::Money, "cost of all runs of a UTC day"),
    key(
        "providers.*.key",
        Kind::Secret,
        "the provider's key; it never enters a container",
    ),
    key(
        "providers.*.api",
        Kind::Text,
        "openai-completions or anthropic-messages",
    ),
    key(
        "providers.*.base_url",
        Kind::Text,
        "address of the endpoint; http only to this machine",
    ),
    key(
        "providers.*.models",
        Kind::Models,
        "models of an endpoint that pi does not know",
    ),
];

/// The key at a concrete place such as `forges.0.url` or `providers.local.api`.
pub fn find(place: &[String]) -> Option<&'static Key> {
    KEYS.iter().find(|key| matches(key.path, place))
}

/// Whether some key lies below this place: then it is a table, not a value.
pub fn is_table(place: &[String]) -> bool {
    KEYS.iter().any(|key| {
        let parts = parts(key.path);
        parts.len() > place.len() && parts.iter().zip(place).all(|(want, have)| fits(want, have))
    })
}

/// The names that may stand right below this place.
pub fn names_below(place: &[String]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = KEYS
        .iter()
        .filter_map(|key| {
            let parts = parts(key.path);
            let below = parts.len() > place.len() && parts.iter().zip(place).all(|(want, have)| fits(want, have));
            below
                .then(|| parts[place.len()])
                .filter(|name| *name != "*" && *name != "[]")
        })
        .collect();
    names.dedup();
    names
}

/// `forges[].url` as `forges`, `[]`, `url`.
fn parts(path: &'static str) -> Vec<&'static str> {
    path.split('.')
        .flat_map(|part| match part.strip_suffix("[]") {
            Some(list) => vec![list, "[]"],
            None => vec![part],
        })
        .collect()
}

fn fits(want: &str, have: &str) -> bool {
    match want {
        "*" => true,
        "[]" => have.parse::<usize>().is_ok(),
        name => name == have,
    }
}

fn matches(path: &'static str, place: &[String]) -> bool {
    let parts = parts(path);
    parts.len() == place.len() && parts.iter().zip(place).all(|(want, have)| fits(want, have))
}
