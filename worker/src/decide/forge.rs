//! The forges that this worker was given, ready to be asked.

use std::{collections::BTreeMap, sync::Arc};

use forges::ApiError;
use tokio::sync::OnceCell;
use triggers::{GlobFault, RepositoryGlobs};

use crate::settings::ForgeSetup;

/// A forge's setup with its globs compiled, and its account as soon as it is known.
pub struct Forge {
    /// What the operator said.
    pub setup: ForgeSetup,
    listed: RepositoryGlobs,
    account: OnceCell<i64>,
}

/// All forges of a worker, by name.
#[derive(Clone)]
pub struct Forges(Arc<BTreeMap<String, Forge>>);

/// A forge's `repositories` hold something that is no glob on `owner/name`.
#[derive(Debug, thiserror::Error)]
#[error("forge `{forge}`: `repositories[{index}]`: {fault}")]
pub struct BadRepositories {
    /// The forge's name.
    pub forge: String,
    /// Which of its globs, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub fault: GlobFault,
}

impl Forges {
    /// Prepares the setups. Calls nobody.
    ///
    /// # Errors
    /// [`BadRepositories`]: the worker does not start.
    pub fn new(setups: Vec<ForgeSetup>) -> Result<Self, BadRepositories> {
        let prepare = |setup: ForgeSetup| {
            let listed = RepositoryGlobs::new(&setup.repositories).map_err(|(index, fault)| BadRepositories {
                forge: setup.name.clone(),
                index,
                fault,
            })?;
            let account = OnceCell::new_with(setup.account_id);
            Ok((setup.name.clone(), Forge { setup, listed, account }))
        };
        Ok(Self(Arc::new(
            setups.into_iter().map(prepare).collect::<Result<_, _>>()?,
        )))
    }

    /// The forge of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Forge> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Forge> {
        self.0.values()
    }
}

impl Forge {
    /// Whether `repositories` names it. `full_name` is `owner/name`.
    #[must_use]
    pub fn lists(&self, full_name: &str) -> bool {
        self.listed.matches(full_name)
    }

    /// The numeric id of our own account: as configured, else asked for once and kept.
    ///
    /// # Errors
    /// [`ApiError`]; `Forbidden` when the token may not read its own account, then it must be configured.
    pub async fn account(&self) -> Result<i64, ApiError> {
        self.account
            .get_or_try_init(async || Ok(self.setup.api.whoami().await?.id))
            .await
            .copied()
    }
}
