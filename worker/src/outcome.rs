//! What became of a run: one decision from everything that is known when its container has ended.
//!
//! Pure. The host's own knowledge comes first (why we stopped it, whether a model request was let through); what the
//! runner said decides only what the host cannot know, and never in the job's favour.

use contract::{ExitCode, FaultReason, Phase, ResultOutcome, RunnerEvent, StopReason, Tool};
use queue::{Outcome, Reason};

use crate::{container::Exit, stop::StopCause};

/// What the container's log has told, as far as the outcome needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// The prompt was sent: from there on it may have cost.
    pub started: bool,
    /// The exclusions as the live session had them before the prompt.
    pub at_start: Proof,
    /// The exclusions as the live session had them after the last turn.
    pub at_end: Proof,
    /// Why the runner gave up.
    pub fault: Option<FaultReason>,
    /// The runner's last line.
    pub result: Option<Reported>,
}

/// What a `tools_excluded` line proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Proof {
    /// There was none.
    #[default]
    Missing,
    /// It says exactly what was asked.
    Holds,
    /// It says something else.
    Differs,
}

/// The runner's `result` line.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// How it ended, in the runner's eyes.
    pub outcome: ResultOutcome,
    /// Answers of the model.
    pub turns: u32,
    /// The last assistant message.
    pub reply: String,
    /// Why it ended early.
    pub reason: Option<String>,
}

/// What the live session must have had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The excluded tools in their order.
    pub excluded: Vec<Tool>,
    /// The proposing tools.
    pub proposals: Vec<String>,
}

impl Told {
    /// Notes one event.
    pub fn note(&mut self, event: &RunnerEvent, expected: &Expected) {
        match event {
            RunnerEvent::Started {} => self.started = true,
            RunnerEvent::ToolsExcluded {
                excluded,
                active,
                registered,
                phase,
                ..
            } => {
                let proof = if expected.equals(excluded, active, registered) {
                    Proof::Holds
                } else {
                    Proof::Differs
                };
                let slot = match phase {
                    Phase::Start => &mut self.at_start,
                    Phase::End => &mut self.at_end,
                };
                // A difference once seen is not talked away by a later line.
                if *slot != Proof::Differs {
                    *slot = proof;
                }
            }
            RunnerEvent::Fault { reason, .. } => self.fault = Some(*reason),
            RunnerEvent::Result {
                outcome,
                turns,
                reply,
                reason,
                ..
            } => {
                self.result = Some(Reported {
                    outcome: *outcome,
                    turns: *turns,
                    reply: reply.clone(),
                    reason: reason.clone(),
                });
            }
            RunnerEvent::Runner { .. }
            | RunnerEvent::Readback { .. }
            | RunnerEvent::Turn { .. }
            | RunnerEvent::Model { .. }
            | RunnerEvent::ToolStart { .. }
            | RunnerEvent::ToolEnd { .. }
            | RunnerEvent::Retry { .. }
            | RunnerEvent::Proposal { .. }
            | RunnerEvent::Warning { .. }
            | RunnerEvent::Stopping { .. }
            | RunnerEvent::Unknown => {}
        }
    }

    /// The job was let loose although the proof at its start is not there or says something else.
    #[must_use]
    pub fn unproven(&self, expected: &Expected) -> bool {
        !expected.excluded.is_empty()
            && (self.at_start == Proof::Differs || (self.started && self.at_start == Proof::Missing))
    }
}

impl Expected {
    fn equals(&self, excluded: &[Tool], active: &[String], registered: &[String]) -> bool {
        let proposals = || self.proposals.iter().map(String::as_str);
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names
        };
        excluded == self.excluded
            && sorted(active) == contract::expected_active(&self.excluded, proposals())
            && sorted(registered) == contract::expected_registered(&self.excluded, proposals())
    }
}

/// All that is known.
#[derive(Debug)]
pub struct Ended<'a> {
    /// How the container ended.
    pub exit: Exit,
    /// Why we ended it, when we did.
    pub cause: Option<StopCause>,
    /// What its log told.
    pub told: &'a Told,
    /// What its session had to have.
    pub expected: &'a Expected,
    /// A model request of this attempt was let through: by the committed rows, not by anybody's word.
    pub forwarded: bool,
    /// Another attempt is allowed.
    pub attempts_left: bool,
}

/// What the job's row will say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is over.
    Finish {
        /// How.
        outcome: Outcome,
        /// Why.
        reason: Reason,
        /// What was seen.
        detail: Option<String>,
    },
    /// Infrastructure failed and nothing was spent: another attempt.
    Again {
        /// Why.
        reason: Reason,
        /// What was seen.
        detail: Option<String>,
    },
}

/// Decides.
#[must_use]
pub fn decide(ended: &Ended<'_>) -> Verdict {
    let finish = |outcome, reason, detail: Option<String>| Verdict::Finish {
        outcome,
        reason,
        detail,
    };

    if let Some(cause) = &ended.cause {
        // Unproven exclusions are no stop like the others: nothing of that run is published.
        let outcome = match cause.reason {
            StopReason::ToolsNotProven => Outcome::Failed,
            StopReason::WorkerStopping => return infrastructure(ended, Reason::WorkerLost, cause.detail.clone()),
            _ => Outcome::Stopped,
        };
        return finish(outcome, reason_of(cause.reason), cause.detail.clone());
    }
    if ended.told.unproven(ended.expected) {
        return finish(Outcome::Failed, Reason::ToolsNotProven, None);
    }
    let fault = ended.told.fault;
    let word = fault.map(|fault| fault.word().to_owned());
    match ExitCode::from_code(ended.exit.code) {
        Some(ExitCode::Done) => done(ended),
        Some(ExitCode::Policy) => finish(Outcome::Refused, reason_of_fault(fault), word),
        // A child that was killed for memory is the agent's business; the runner or pi itself is the job's end.
        Some(ExitCode::Infrastructure) if ended.exit.out_of_memory && fault == Some(FaultReason::PiEnded) => {
            finish(Outcome::Stopped, Reason::MemoryCap, None)
        }
        None if ended.exit.out_of_memory => finish(Outcome::Stopped, Reason::MemoryCap, None),
        Some(ExitCode::Infrastructure) => infrastructure(ended, reason_of_fault(fault), word),
        None => infrastructure(
            ended,
            Reason::RunnerVanished,
            Some(format!("exit code {}", ended.exit.code)),
        ),
    }
}

/// Exit 0: the run came to an end that its `result` line names.
fn done(ended: &Ended<'_>) -> Verdict {
    let finish = |outcome, reason, detail| Verdict::Finish {
        outcome,
        reason,
        detail,
    };
    if !ended.expected.excluded.is_empty() && (ended.told.at_start, ended.told.at_end) != (Proof::Holds, Proof::Holds) {
        return finish(Outcome::Failed, Reason::ToolsNotProven, None);
    }
    let Some(result) = &ended.told.result else {
        return infrastructure(ended, Reason::RunnerVanished, Some("no result line".to_owned()));
    };
    let stop = result.reason.as_deref().and_then(StopReason::from_word);
    match (result.outcome, stop) {
        (ResultOutcome::Completed, _) => finish(Outcome::Completed, Reason::Done, None),
        (ResultOutcome::Stopped, Some(StopReason::GatewayGone | StopReason::Terminated) | None) => {
            infrastructure(ended, Reason::RunnerFailed, result.reason.clone())
        }
        (ResultOutcome::Stopped, Some(stop)) => finish(Outcome::Stopped, reason_of(stop), None),
        (ResultOutcome::Failed, _) => infrastructure(ended, Reason::ProviderFailed, result.reason.clone()),
    }
}

/// Tried again only while nothing was spent: a row is committed before the first byte leaves.
fn infrastructure(ended: &Ended<'_>, reason: Reason, detail: Option<String>) -> Verdict {
    if !ended.forwarded && ended.attempts_left {
        Verdict::Again { reason, detail }
    } else {
        Verdict::Finish {
            outcome: Outcome::Failed,
            reason,
            detail,
        }
    }
}

/// The word of the job's row for a reason to stop.
fn reason_of(stop: StopReason) -> Reason {
    match stop {
        StopReason::TurnCap => Reason::TurnsCap,
        StopReason::TokenCap => Reason::TokensCap,
        StopReason::CostCap => Reason::CostCap,
        StopReason::DayTokenCap => Reason::DayTokensCap,
        StopReason::DayCostCap => Reason::DayCostCap,
        StopReason::RequestCap => Reason::RequestsCap,
        StopReason::TimeCap => Reason::TotalTimeout,
        StopReason::IdleCap => Reason::IdleTimeout,
        StopReason::SetupCap => Reason::SetupTimeout,
        StopReason::DiskCap => Reason::DiskCap,
        StopReason::LogCap => Reason::LogCap,
        StopReason::ExcludeToolsBreached => Reason::ExcludeToolsBreached,
        StopReason::ToolsNotProven => Reason::ToolsNotProven,
        StopReason::StoppedByPerson => Reason::PersonStopped,
        StopReason::WorkerStopping | StopReason::Terminated | StopReason::GatewayGone => Reason::WorkerLost,
    }
}

/// The word for a runner that gave up.
fn reason_of_fault(fault: Option<FaultReason>) -> Reason {
    match fault {
        Some(FaultReason::ExcludeToolsUnknown) => Reason::ExcludeToolsUnknown,
        Some(FaultReason::ToolsNotProven) => Reason::ToolsNotProven,
        Some(FaultReason::ExcludeToolsDiffer | FaultReason::InputInvalid | FaultReason::ImageInvalid) => {
            Reason::JobFileRefused
        }
        Some(FaultReason::ModelDiffers | FaultReason::PromptDiffers | FaultReason::SessionDiffers) => {
            Reason::ReadbackDiffers
        }
        Some(FaultReason::ProviderFailed) => Reason::ProviderFailed,
        Some(
            FaultReason::GatewayUnreachable
            | FaultReason::GatewayGone
            | FaultReason::PiEnded
            | FaultReason::PiUnusable
            | FaultReason::Host,
        )
        | None => Reason::RunnerFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Expected {
        Expected {
            excluded: vec![Tool::Bash],
            proposals: vec!["forge_comment".into()],
        }
    }

    fn line(phase: Phase, active: &[&str], registered: &[&str]) -> RunnerEvent {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        RunnerEvent::ToolsExcluded {
            excluded: vec![Tool::Bash],
            active: owned(active),
            registered: owned(registered),
            phase,
            from_inside: false,
        }
    }

    fn true_line(phase: Phase) -> RunnerEvent {
        line(
            phase,
            &["read", "edit", "write", "forge_comment"],
            &[
                "edit",
                "find",
                "forge_comment",
                "grep",
                "ls",
                "powershell",
                "read",
                "write",
            ],
        )
    }

    fn result(outcome: ResultOutcome, reason: Option<&str>) -> RunnerEvent {
        RunnerEvent::Result {
            outcome,
            turns: 2,
            usage: contract::ReportedUsage::default(),
            reply: "done".into(),
            reply_cut: false,
            reason: reason.map(str::to_owned),
        }
    }

    fn told(events: &[RunnerEvent]) -> Told {
        let mut told = Told::default();
        events.iter().for_each(|event| told.note(event, &expected()));
        told
    }

    struct Case {
        code: i64,
        cause: Option<StopReason>,
        events: Vec<RunnerEvent>,
        forwarded: bool,
    }

    fn of(case: Case) -> (String, String) {
        let verdict = decide(&Ended {
            exit: Exit {
                code: case.code,
                out_of_memory: false,
            },
            cause: case.cause.map(StopCause::from),
            told: &told(&case.events),
            expected: &expected(),
            forwarded: case.forwarded,
            attempts_left: true,
        });
        match verdict {
            Verdict::Finish { outcome, reason, .. } => (outcome.word().to_owned(), reason.word().to_owned()),
            Verdict::Again { reason, .. } => ("again".to_owned(), reason.word().to_owned()),
        }
    }

    fn good() -> Vec<RunnerEvent> {
        vec![
            true_line(Phase::Start),
            RunnerEvent::Started {},
            true_line(Phase::End),
            result(ResultOutcome::Completed, None),
        ]
    }

    fn words(outcome: &str, reason: &str) -> (String, String) {
        (outcome.to_owned(), reason.to_owned())
    }

    #[test]
    fn a_run_that_proved_its_exclusions_at_both_ends_is_completed() {
        let case = Case {
            code: 0,
            cause: None,
            events: good(),
            forwarded: true,
        };
        assert_eq!(of(case), words("completed", "done"));
    }

    #[test]
    fn a_clean_exit_without_both_proofs_fails_closed() {
        for missing in [0, 2] {
            let mut events = good();
            events.remove(missing);
            let case = Case {
                code: 0,
                cause: None,
                events,
                forwarded: true,
            };
            assert_eq!(of(case), words("failed", "tools-not-proven"), "without line {missing}");
        }
    }

    #[test]
    fn a_proof_that_lists_an_excluded_tool_is_none_and_no_later_line_mends_it() {
        let lying = line(
            Phase::End,
            &["read", "bash", "edit", "write", "forge_comment"],
            &[
                "bash",
                "edit",
                "find",
                "forge_comment",
                "grep",
                "ls",
                "powershell",
                "read",
                "write",
            ],
        );
        let mut events = good();
        events.insert(2, lying);
        let case = Case {
            code: 0,
            cause: None,
            events,
            forwarded: true,
        };
        assert_eq!(of(case), words("failed", "tools-not-proven"));
    }

    #[test]
    fn a_tool_that_nobody_passed_is_a_difference_too() {
        let more = line(
            Phase::Start,
            &["read", "edit", "write", "forge_comment", "Bash"],
            &[
                "Bash",
                "edit",
                "find",
                "forge_comment",
                "grep",
                "ls",
                "powershell",
                "read",
                "write",
            ],
        );
        assert!(told(&[more]).unproven(&expected()));
    }

    #[test]
    fn a_prompt_that_was_sent_before_the_proof_is_unproven() {
        assert!(told(&[RunnerEvent::Started {}]).unproven(&expected()));
        assert!(!told(&[true_line(Phase::Start), RunnerEvent::Started {}]).unproven(&expected()));
        assert!(
            !told(&[RunnerEvent::Started {}]).unproven(&Expected::default()),
            "nothing was to be proven"
        );
    }

    #[test]
    fn exit_2_is_a_refusal_and_never_tried_again() {
        let fault = |reason| {
            vec![RunnerEvent::Fault {
                reason,
                detail: String::new(),
            }]
        };
        let case = |events| Case {
            code: 2,
            cause: None,
            events,
            forwarded: false,
        };
        assert_eq!(
            of(case(fault(FaultReason::ExcludeToolsUnknown))),
            words("refused", "exclude-tools-unknown")
        );
        assert_eq!(
            of(case(fault(FaultReason::ToolsNotProven))),
            words("refused", "tools-not-proven")
        );
        assert_eq!(of(case(Vec::new())).0, "refused");
    }

    #[test]
    fn infrastructure_is_tried_again_only_while_nothing_was_forwarded() {
        for code in [1, 137, -1] {
            let case = |forwarded| Case {
                code,
                cause: None,
                events: Vec::new(),
                forwarded,
            };
            assert_eq!(of(case(false)).0, "again", "exit {code}");
            assert_eq!(of(case(true)).0, "failed", "exit {code}");
        }
    }

    #[test]
    fn a_cap_or_a_person_makes_it_stopped_with_that_reason_whatever_the_runner_says() {
        for (cause, reason) in [
            (StopReason::CostCap, "cost-cap"),
            (StopReason::DiskCap, "disk-cap"),
            (StopReason::StoppedByPerson, "stopped-by-person"),
            (StopReason::ExcludeToolsBreached, "exclude-tools-breached"),
        ] {
            let case = Case {
                code: 0,
                cause: Some(cause),
                events: good(),
                forwarded: true,
            };
            assert_eq!(of(case), words("stopped", reason));
        }
    }

    #[test]
    fn a_cap_that_the_runner_reached_first_is_the_same_stop() {
        let mut events = good();
        events.pop();
        events.push(result(ResultOutcome::Stopped, Some("turn-cap")));
        let case = Case {
            code: 0,
            cause: None,
            events,
            forwarded: true,
        };
        assert_eq!(of(case), words("stopped", "turn-cap"));
    }

    #[test]
    fn memory_is_the_cap_only_when_the_runner_or_pi_itself_was_killed_for_it() {
        let reason = |code, fault: Option<FaultReason>| {
            let events: Vec<RunnerEvent> = fault
                .map(|reason| RunnerEvent::Fault {
                    reason,
                    detail: String::new(),
                })
                .into_iter()
                .collect();
            let verdict = decide(&Ended {
                exit: Exit {
                    code,
                    out_of_memory: true,
                },
                cause: None,
                told: &told(&events),
                expected: &expected(),
                forwarded: true,
                attempts_left: true,
            });
            let (Verdict::Finish { reason, .. } | Verdict::Again { reason, .. }) = verdict;
            reason
        };
        assert_eq!(reason(137, None), Reason::MemoryCap);
        assert_eq!(reason(1, Some(FaultReason::PiEnded)), Reason::MemoryCap);
        assert_eq!(reason(1, Some(FaultReason::ProviderFailed)), Reason::ProviderFailed);
    }

    #[test]
    fn a_killed_container_without_a_result_has_vanished() {
        let events = vec![true_line(Phase::Start), RunnerEvent::Started {}];
        let case = Case {
            code: 137,
            cause: None,
            events,
            forwarded: true,
        };
        assert_eq!(of(case), words("failed", "runner-vanished"));
    }
}
