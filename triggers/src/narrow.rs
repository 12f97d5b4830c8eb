//! Gate 1: what a job may do is its trigger as it stands now, narrowed by what the job's row carries.

use crate::language::{Mode, Outputs, Run};

/// The intersection of both: `now` says what to do, and whatever either takes away is taken away.
///
/// Exclusions are united (those of `now` first, each list in its own order), of each cap the smaller counts, of the
/// outputs the fewer; `packages: false` and `observe` stick. Nothing that `carried` says can add.
pub fn narrow(now: &Run, carried: &Run) -> Run {
    let mut exclude_tools = now.exclude_tools.clone();
    exclude_tools.extend(
        carried
            .exclude_tools
            .iter()
            .filter(|tool| !now.exclude_tools.contains(tool)),
    );

    Run {
        exclude_tools,
        packages: now.packages.or(carried.packages),
        max_turns: smaller(now.max_turns, carried.max_turns),
        max_tokens: smaller(now.max_tokens, carried.max_tokens),
        max_cost_usd: smaller(now.max_cost_usd, carried.max_cost_usd),
        timeout_minutes: smaller(now.timeout_minutes, carried.timeout_minutes),
        outputs: fewer(now.outputs, carried.outputs),
        mode: if now.mode == Mode::Observe {
            Mode::Observe
        } else {
            carried.mode
        },
        ..now.clone()
    }
}

fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// An absent list is the default, not "without bounds": so both are compared with it in place.
fn fewer(a: Option<Outputs>, b: Option<Outputs>) -> Option<Outputs> {
    if a.is_none() && b.is_none() {
        return None;
    }
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    Some(Outputs {
        comment: a.comment.min(b.comment),
    })
}
