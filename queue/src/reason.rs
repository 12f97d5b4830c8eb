//! Why something did not happen, ended, or waits: one word each, with its meaning and its fix.
//!
//! This is the only list. `docs/reasons.md` is generated from it (`cargo run -p queue --example reasons`) and a test compares
//! them. The words are what rows hold and what a person looks up; a word that was published is never given another meaning.

use serde::{Deserialize, Serialize};

/// What a reason speaks about: the heading under which it stands in `docs/reasons.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// A delivery or an event that made no job.
    Nothing,
    /// A trigger that did not match an event.
    NoMatch,
    /// A delivery, a job or an output that waits.
    Waiting,
    /// A gate that refused.
    Gate,
    /// A job that was stopped by a limit or a person.
    Stopped,
    /// A job that failed.
    Failed,
    /// A job that ended as it should, or never began.
    Ended,
    /// An output that did not reach the forge as it was meant.
    Output,
}

impl About {
    /// All headings, in the order of the page.
    pub const ALL: [Self; 8] = [
        Self::Nothing,
        Self::NoMatch,
        Self::Waiting,
        Self::Gate,
        Self::Stopped,
        Self::Failed,
        Self::Ended,
        Self::Output,
    ];

    /// The heading and the sentence below it.
    const fn heading(self) -> (&'static str, &'static str) {
        match self {
            Self::Nothing => (
                "A delivery that started nothing",
                "Shown at the delivery. Nothing is posted on the forge.",
            ),
            Self::NoMatch => (
                "A trigger that did not fire",
                "Shown at the delivery, one per trigger. Nothing is posted on the forge.",
            ),
            Self::Waiting => (
                "Something that waits",
                "A delivery, a job or an output. It goes on by itself when the cause is gone.",
            ),
            Self::Gate => (
                "A job that a gate refused",
                "Nothing was spent. Answered once on the forge, with the fix.",
            ),
            Self::Stopped => (
                "A job that was stopped",
                "What it had done is kept and published, with the reason.",
            ),
            Self::Failed => (
                "A job that failed",
                "Said on the forge. It is not repeated by itself once money may have been spent.",
            ),
            Self::Ended => (
                "A job that ended",
                "Every job ends with one reason; these are the ones without a fault.",
            ),
            Self::Output => ("An answer that did not reach the forge", "The text stays in the run."),
        }
    }
}

/// The page `docs/reasons.md`.
#[must_use]
pub fn reasons_page() -> String {
    let mut page = String::from(
        "# Reasons\n\n\
         Whatever did not happen, was stopped or waits has one of these words: at the delivery, in the run, on the forge and in the log. \
         This page is made by `cargo run -p queue --example reasons`; a test compares it with the code.\n",
    );
    for about in About::ALL {
        let (heading, below) = about.heading();
        page.push_str(&format!(
            "\n## {heading}\n\n{below}\n\n| word | what it means | what helps |\n|---|---|---|\n"
        ));
        for reason in Reason::ALL.iter().filter(|reason| reason.about() == about) {
            page.push_str(&format!(
                "| `{}` | {} | {} |\n",
                reason.word(),
                reason.meaning(),
                reason.fix()
            ));
        }
    }
    page
}

macro_rules! reasons {
    ($($about:ident { $($variant:ident = $word:literal, $meaning:literal, $fix:literal;)+ })+) => {
        /// One word for why. See the module's documentation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
        #[sqlx(type_name = "text")]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[doc = $meaning] #[serde(rename = $word)] #[sqlx(rename = $word)] $variant,)+)+
        }

        impl Reason {
            /// All of them, by what they speak about.
            pub const ALL: &'static [Self] = &[$($(Self::$variant,)+)+];

            /// The word, in kebab case.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $($(Self::$variant => $word,)+)+ }
            }

            /// What it means, one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $($(Self::$variant => $meaning,)+)+ }
            }

            /// What a person can do about it, one sentence.
            #[must_use]
            pub const fn fix(self) -> &'static str {
                match self { $($(Self::$variant => $fix,)+)+ }
            }

            /// What it speaks about.
            #[must_use]
            pub const fn about(self) -> About {
                match self { $($(Self::$variant => About::$about,)+)+ }
            }

            /// The reason of a word, exact.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($($word => Some(Self::$variant),)+)+ _ => None }
            }
        }
    };
}

reasons! {
    Nothing {
        TestDelivery = "test-delivery", "The forge's test button was pressed: the hook arrives here and its secret is right.", "Nothing to do.";
        EventNotRead = "event-not-read", "This version reads no events of that kind.", "Choose only the events in the hook that triggers can fire on, or ignore this.";
        ActionNotRead = "action-not-read", "This version reads the kind of event, but not this action of it (a deletion, for instance).", "Nothing to do.";
        BodyUnreadable = "body-unreadable", "The signature is right, but the body does not have the shape that this forge sends.", "Compare the forge's version with the supported ones; keep the delivery for a report.";
        DuplicateOf = "duplicate-of", "The same thing had already arrived in another delivery; it makes each job once.", "Nothing to do.";
        TooOld = "too-old", "The object was already older than `max_event_age` when it arrived.", "Write a new comment, or replay the delivery.";
        OwnPost = "own-post", "We wrote that ourselves.", "Nothing to do.";
        NotTheAuthorsEdit = "not-the-authors-edit", "The text was edited by somebody who is not its author.", "Write a comment of your own.";
        RepositoryNotListed = "repository-not-listed", "The forge's `repositories` does not name the repository.", "Add it to `repositories` of that forge in pi-dispatch.toml.";
        NotConfirmed = "not-confirmed", "What the delivery says was not found so on the forge: id, repository, author or text differ.", "Look at the detail; a comment that was edited in the meantime has to be written again.";
        ObjectGone = "object-gone", "The object that the delivery speaks of is no longer on the forge.", "Write it again.";
        RepositoryGone = "repository-gone", "The repository is no longer on the forge, or our account may not see it.", "Give our account access to the repository.";
        RepositoryArchived = "repository-archived", "The repository is archived: no answer could be posted there.", "Unarchive it, then write a new comment.";
        PermissionTooLow = "permission-too-low", "The one who asked may not write to the repository.", "Somebody with write access has to ask.";
        ActorUnknown = "actor-unknown", "The account that asked is not found under that name and id.", "Somebody with an account on the forge has to ask.";
        RunRequestUnknown = "run-request-unknown", "The trigger, the forge or the repository of a run that a person asked for is not known here.", "Look at the detail, correct the name and ask again.";
        PatienceEnded = "patience-ended", "A look-up that the verdict needs could not be completed within a day.", "Repair what the detail names, then replay the delivery.";
    }
    NoMatch {
        OtherType = "other-type", "The trigger fires on another type of event.", "Nothing to do.";
        OtherKind = "other-kind", "The trigger's `run.kind` is another kind of forge.", "Change the trigger.";
        OtherForge = "other-forge", "The trigger's `forge` names another forge.", "Change the trigger.";
        OtherRepository = "other-repository", "The trigger's `repositories` do not name the repository.", "Change the trigger.";
        RepositoryExcepted = "repository-excepted", "The trigger's `exceptRepositories` leave the repository out.", "Change the trigger.";
        OtherTarget = "other-target", "The trigger's `target` names the other one of issue and pull request.", "Change `on.target`, or write under the other kind of subject.";
        PhraseAbsent = "phrase-absent", "The text does not hold the trigger's phrase.", "Write the phrase at the start of a line or after white space.";
        PhraseInCode = "phrase-in-code", "The phrase stands only in code.", "Write it outside of code.";
        PhraseInQuote = "phrase-in-quote", "The phrase stands only in a quotation.", "Write it outside of the quotation.";
        PhraseInUrl = "phrase-in-url", "The phrase stands only in a link.", "Write it as a word of its own.";
        PhraseInAddress = "phrase-in-address", "The phrase stands only in an e-mail address.", "Write it as a word of its own.";
        PhraseInHtml = "phrase-in-html", "The phrase stands only in HTML, where no reader sees it.", "Write it as plain text.";
        PhraseInWord = "phrase-in-word", "The phrase is only a part of a longer word.", "Write it as a word of its own.";
        PhraseNotNew = "phrase-not-new", "The text was edited, and said the phrase before.", "Write a new comment.";
        ControlWord = "control-word", "The word after the phrase is a control word; it starts nothing, and this version does not act on it yet.", "Use the panel or `pi-dispatch stop`.";
        NoTriggers = "no-triggers", "There is no trigger at all.", "Write one into triggers.json.";
    }
    Waiting {
        ForgeUnavailable = "forge-unavailable", "The forge does not answer, or answers with an error of its own.", "It is tried again by itself.";
        ForgeTokenRefused = "forge-token-refused", "The forge does not accept our token.", "Renew the forge's `token`.";
        ForgeTokenTooWeak = "forge-token-too-weak", "Our token lacks a scope, or our account lacks access.", "Give the token the scopes that the forge's page of the documentation names.";
        PermissionNotAskable = "permission-not-askable", "Our account may not ask the forge who may write: only a repository admin may.", "Set the forge's `permission_token`, list numeric ids in `allow_users`, or make our account an admin of the repository.";
        ForgeNotConfigured = "forge-not-configured", "The worker's configuration has no forge of that name.", "Add the forge to pi-dispatch.toml and restart the worker.";
        DockerUnavailable = "docker-unavailable", "Docker does not answer.", "Start it; the job is tried again by itself.";
        HostFull = "host-full", "The host's free space is under the floor.", "Free some space on the worker's host.";
        Paused = "paused", "An operator paused the deployment.", "Resume it.";
        WorkerStopping = "worker-stopping", "The worker that had it was stopped before a container existed.", "Nothing to do; another worker takes it.";
        WorkerGone = "worker-gone", "The worker that had it went away before anything was spent.", "Nothing to do; it is tried again.";
        ImageElsewhere = "image-elsewhere", "The job's image is missing on that host; another worker has it.", "Nothing to do.";
        TriesAgain = "tries-again", "An infrastructure failure before anything was spent; it is tried again by itself.", "Look at the detail when it repeats.";
        GatewayUnavailable = "gateway-unavailable", "The job's sockets could not be made.", "Look at the worker's log.";
    }
    Gate {
        TriggerRemoved = "trigger-removed", "The trigger is no longer in the triggers file, or an observed one.", "Put it back, then run the job again.";
        ExcludeToolsUnknown = "exclude-tools-unknown", "An excluded tool is not a built-in tool of the pinned pi.", "Correct `run.excludeTools`, or use the image that belongs to this version.";
        JobImageMissing = "job-image-missing", "No live worker has the job's image; images are never pulled.", "Run `pi-dispatch image build`, or load the image on a worker's host.";
        JobImageExcludeToolsUnsupported = "job-image-exclude-tools-unsupported", "The image's label does not name the capability `excludeTools`: its runner would ignore the exclusions.", "Rebuild the image with `pi-dispatch image build`.";
        JobImageCapabilityUnsupported = "job-image-capability-unsupported", "The image's label does not name a capability that the job needs.", "Rebuild the image with `pi-dispatch image build`.";
        JobImageUnsafe = "job-image-unsafe", "The image sets what only the worker may set: a volume, a loader or Node option, one of our labels.", "Remove that from the image.";
        ProviderUnconfigured = "provider-unconfigured", "The model's provider is not configured on the worker's host, or has no key there.", "Add `[providers.NAME]` with its key to pi-dispatch.toml.";
        ModelUnknown = "model-unknown", "The provider has no such model.", "Correct `run.model`, or list the model in `[providers.NAME]`.";
        ModelUnpriced = "model-unpriced", "A limit in dollars applies and the model's price is not known.", "Give the model its `cost` in `[providers.NAME]`.";
        RepositoryUnreadable = "repository-unreadable", "Our account may not read the repository.", "Give our account read access.";
        FlowNotFound = "flow-not-found", "Neither the default branch nor the overlay holds the flow's skill.", "Commit `.pi/skills/FLOW/SKILL.md` to the default branch, or add it to the overlay.";
        HeadMoved = "head-moved", "The pull request's head is no longer the confirmed commit.", "Ask again.";
        OverBudget = "over-budget", "The budget that is left is smaller than what the run may cost.", "Wait for the next day, or raise the limit.";
        ContainerDiffers = "container-differs", "What Docker made is not what was asked; it was not started.", "Look at the detail; check the Docker version.";
        JobTooLarge = "job-too-large", "What the job would be given is larger than its limits: the prompt, the skill or the repository.", "Make the thing that the detail names smaller.";
        DataUnknown = "data-unknown", "The job's data was written by a newer version.", "Update the worker.";
    }
    Stopped {
        TurnsCap = "turn-cap", "The run made as many turns as it may.", "Raise `maxTurns`, or ask for less at once.";
        RequestsCap = "request-cap", "The run sent as many model requests as it may.", "Raise `maxTurns`, or ask for less at once.";
        TokensCap = "token-cap", "The run used as many tokens as it may.", "Raise `maxTokens`.";
        CostCap = "cost-cap", "The run cost as much as it may.", "Raise `maxCostUsd`.";
        DayTokensCap = "day-token-cap", "The deployment used as many tokens as it may on one day.", "Wait for the next UTC day, or raise `limits.day.tokens`.";
        DayCostCap = "day-cost-cap", "The deployment spent as much as it may on one day.", "Wait for the next UTC day, or raise `limits.day.cost_usd`.";
        TotalTimeout = "time-cap", "The run took longer than it may.", "Raise `timeoutMinutes`.";
        IdleTimeout = "idle-cap", "The run said nothing for too long.", "Look at the end of its log.";
        SetupTimeout = "setup-cap", "pi was not ready within the time for set-up; nothing was spent.", "Look at the end of the log; a slow host may need a longer set-up time.";
        DiskCap = "disk-cap", "The run wrote more than it may.", "Look at what it writes.";
        LogCap = "log-cap", "The run printed more than it may.", "Look at what it prints.";
        MemoryCap = "memory-cap", "The run needed more memory than it may have.", "Ask for less at once; a container has 1 GiB of memory and no swap.";
        PersonStopped = "stopped-by-person", "A person stopped it.", "Run it again if that was a mistake.";
        ExcludeToolsBreached = "exclude-tools-breached", "A model request offered a tool that the trigger excludes; the run was stopped at once.", "Treat it as an attack until the log says otherwise.";
    }
    Failed {
        WorkerLost = "worker-lost", "The worker went away after money may have been spent, and did not come back in time.", "Run it again with one click if the answer is still wanted.";
        AttemptsUsedUp = "attempts-used-up", "Each allowed attempt ended in an infrastructure failure.", "Look at the attempts, repair, run it again.";
        ReadbackDiffers = "readback-differs", "The live session is not what was asked for: tools, model or prompt differ; nothing was spent.", "Rebuild the image; look at the detail.";
        ToolsNotProven = "tools-not-proven", "The run excludes tools and did not prove at its start and at its end that they were gone; nothing of it was published.", "Rebuild the image; look at the log.";
        ReadbackSilent = "readback-silent", "The live session did not say what it has; nothing was spent.", "Rebuild the image; look at the log.";
        JobFileRefused = "job-file-refused", "The runner refused what it was given.", "Use the image that belongs to this version.";
        RunnerFailed = "runner-failed", "The runner ended with an infrastructure failure.", "Look at the end of the log.";
        RunnerVanished = "runner-vanished", "The container ended without a result: killed, out of memory, or removed by hand.", "Look at the exit code; a bigger memory limit may help.";
        ProviderFailed = "provider-failed", "The model's provider refused or broke off, and pi's retries did not help.", "Look at the status in the log; check the key and the provider's state.";
        ModelSaidNothing = "model-said-nothing", "The run ended without a proposal and without a last message.", "Run it again, or choose another model.";
        ContainerFailed = "container-failed", "Docker could not make or start the container.", "Look at the detail.";
        InternalFault = "internal-fault", "A fault of pi-dispatch itself.", "Report it with the detail.";
    }
    Ended {
        Done = "done", "The agent came to its end.", "Nothing to do.";
        Observed = "observed", "The trigger's mode is `observe`: everything up to the container was done, nothing was started.", "Set `run.mode` to `run` to have it run.";
        PersonCancelled = "person-cancelled", "A person ended it before it ran.", "Run it again if that was a mistake.";
        QueuedTooLong = "queued-too-long", "It was queued for 24 hours.", "Look at what the workers do; run it again.";
    }
    Output {
        SubjectGone = "subject-gone", "The issue or pull request is no longer there.", "Nothing to do.";
        SubjectLocked = "subject-locked", "The forge does not let us write there: archived, locked, or no access.", "Give our account access, or unlock it.";
        TextRefused = "text-refused", "The forge refused the text.", "Look at the detail.";
        OutputPatienceEnded = "output-patience-ended", "The forge could not be reached within a day.", "The text is kept in the run.";
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl From<contract::StopReason> for Reason {
    fn from(stop: contract::StopReason) -> Self {
        use contract::StopReason;
        match stop {
            StopReason::TurnCap => Self::TurnsCap,
            StopReason::TokenCap => Self::TokensCap,
            StopReason::CostCap => Self::CostCap,
            StopReason::DayTokenCap => Self::DayTokensCap,
            StopReason::DayCostCap => Self::DayCostCap,
            StopReason::RequestCap => Self::RequestsCap,
            StopReason::TimeCap => Self::TotalTimeout,
            StopReason::IdleCap => Self::IdleTimeout,
            StopReason::SetupCap => Self::SetupTimeout,
            StopReason::DiskCap => Self::DiskCap,
            StopReason::LogCap => Self::LogCap,
            StopReason::ExcludeToolsBreached => Self::ExcludeToolsBreached,
            StopReason::ToolsNotProven => Self::ToolsNotProven,
            StopReason::StoppedByPerson => Self::PersonStopped,
            StopReason::WorkerStopping => Self::WorkerStopping,
            StopReason::Terminated | StopReason::GatewayGone => Self::WorkerLost,
        }
    }
}

impl From<triggers::NoMatch> for Reason {
    fn from(no: triggers::NoMatch) -> Self {
        use triggers::NoMatch;
        match no {
            NoMatch::OtherType => Self::OtherType,
            NoMatch::OtherKind => Self::OtherKind,
            NoMatch::OtherForge => Self::OtherForge,
            NoMatch::OtherRepository => Self::OtherRepository,
            NoMatch::RepositoryExcepted => Self::RepositoryExcepted,
            NoMatch::OtherTarget => Self::OtherTarget,
            NoMatch::PhraseAbsent => Self::PhraseAbsent,
            NoMatch::PhraseInCode => Self::PhraseInCode,
            NoMatch::PhraseInQuote => Self::PhraseInQuote,
            NoMatch::PhraseInUrl => Self::PhraseInUrl,
            NoMatch::PhraseInAddress => Self::PhraseInAddress,
            NoMatch::PhraseInHtml => Self::PhraseInHtml,
            NoMatch::PhraseInWord => Self::PhraseInWord,
            NoMatch::PhraseNotNew => Self::PhraseNotNew,
        }
    }
}
