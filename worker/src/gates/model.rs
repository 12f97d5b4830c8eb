//! Gate 6: the model is known, has its key on this host, and a price where a dollar cap applies.

use gateway::{
    ModelGrant,
    providers::{Catalog, GrantRefusal},
};
use queue::Reason;

use super::{Answer, No, Plan, yes};
use crate::texts::job as texts;

/// Gate 6.
pub(super) async fn granted(catalog: &Catalog, plan: &Plan) -> Answer<ModelGrant> {
    let Some(provider) = &plan.provider else {
        return Err(No::refused(Reason::ProviderUnconfigured, texts::NO_PROVIDER));
    };
    let Some(model) = &plan.model else {
        return Err(No::refused(Reason::ModelUnknown, texts::NO_MODEL));
    };
    match catalog.grant(provider, model, plan.limits.cost_micros.is_some()) {
        Ok(grant) => {
            let detail = format!("{provider}/{model}");
            yes(grant, detail)
        }
        Err(refusal) => {
            let reason = match &refusal {
                GrantRefusal::ProviderUnconfigured { .. } => Reason::ProviderUnconfigured,
                GrantRefusal::ModelUnknown { .. } => Reason::ModelUnknown,
                GrantRefusal::ModelUnpriced { .. } => Reason::ModelUnpriced,
            };
            Err(No::refused(reason, refusal.to_string()))
        }
    }
}
