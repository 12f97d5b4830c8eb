//! Why a run was ended early, and why a runner gave up: kebab-case words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ExitCode;

/// Defines an enum of kebab-case words once: type, text, and the way back.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The word, as rows, lines and pages show it.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// The reason of that word.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|reason| reason.word() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// Why a run was ended before it came to its own end. Said by the runner, by the gateway, or by the worker.
    StopReason {
        /// The job's turns are used up.
        TurnCap = "turn-cap",
        /// The job's tokens are used up.
        TokenCap = "token-cap",
        /// The job's money is used up.
        CostCap = "cost-cap",
        /// The day's tokens are used up.
        DayTokenCap = "day-token-cap",
        /// The day's money is used up.
        DayCostCap = "day-cost-cap",
        /// Too many model requests for one job.
        RequestCap = "request-cap",
        /// The job's time is over.
        TimeCap = "time-cap",
        /// Nothing happened for too long.
        IdleCap = "idle-cap",
        /// It took too long until the first prompt could be sent.
        SetupCap = "setup-cap",
        /// The workspace or the session outgrew its bounds.
        DiskCap = "disk-cap",
        /// The container printed too much.
        LogCap = "log-cap",
        /// A request offered an excluded tool to the model.
        ExcludeToolsBreached = "exclude-tools-breached",
        /// The live session no longer had the tools that it must have.
        ToolsNotProven = "tools-not-proven",
        /// A person stopped it.
        StoppedByPerson = "stopped-by-person",
        /// The worker needs it to end (its lease is about to run out, its host goes down).
        WorkerStopping = "worker-stopping",
        /// The runner was told to end by a signal.
        Terminated = "terminated",
        /// The gateway was gone for [`crate::limits::GATEWAY_GONE_SECONDS`].
        GatewayGone = "gateway-gone",
    }
}

words! {
    /// Why a runner gave up: nothing useful could come of the run.
    FaultReason {
        /// An excluded name that the pi in this image does not know.
        ExcludeToolsUnknown = "exclude-tools-unknown",
        /// `PI_EXCLUDE_TOOLS` and `job.json` do not say the same.
        ExcludeToolsDiffer = "exclude-tools-differ",
        /// An input file is absent, too large, not what it should be, or of another version.
        InputInvalid = "input-invalid",
        /// The image itself is not what the runner was built for.
        ImageInvalid = "image-invalid",
        /// The live session's tools are not the expected ones, or nothing was read back in time.
        ToolsNotProven = "tools-not-proven",
        /// The live session has another model, thinking level or price.
        ModelDiffers = "model-differs",
        /// The live session's system prompt is not the one that the worker wrote.
        PromptDiffers = "prompt-differs",
        /// The live session has a skill, or another working directory.
        SessionDiffers = "session-differs",
        /// The gateway's socket could not be reached or did not welcome the runner.
        GatewayUnreachable = "gateway-unreachable",
        /// The gateway was gone for too long in the middle of the run.
        GatewayGone = "gateway-gone",
        /// pi ended, or said something that is no RPC, before it was done.
        PiEnded = "pi-ended",
        /// pi could not be started at all, or refused the prompt.
        PiUnusable = "pi-unusable",
        /// The model's provider failed after pi's own retries.
        ProviderFailed = "provider-failed",
        /// A system call failed that never fails on a sound host.
        Host = "host-fault",
    }
}

impl FaultReason {
    /// With which code the runner ends.
    pub const fn exit(self) -> ExitCode {
        match self {
            FaultReason::ExcludeToolsUnknown
            | FaultReason::ExcludeToolsDiffer
            | FaultReason::InputInvalid
            | FaultReason::ImageInvalid
            | FaultReason::ToolsNotProven
            | FaultReason::ModelDiffers
            | FaultReason::PromptDiffers
            | FaultReason::SessionDiffers => ExitCode::Policy,
            FaultReason::GatewayUnreachable
            | FaultReason::GatewayGone
            | FaultReason::PiEnded
            | FaultReason::PiUnusable
            | FaultReason::ProviderFailed
            | FaultReason::Host => ExitCode::Infrastructure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reasons_word_is_what_json_says_and_leads_back_to_it() {
        for reason in StopReason::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
            assert_eq!(StopReason::from_word(reason.word()), Some(reason));
        }
        for reason in FaultReason::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
            assert_eq!(FaultReason::from_word(reason.word()), Some(reason));
        }
    }
}
