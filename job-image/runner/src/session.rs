//! One conversation with pi: what has been heard, and what every event does.
//!
//! All events go through [`Session::take`], in every phase; the phases in [`crate::run`] only wait for what they need.

use std::io::Write;
use std::time::{Duration, Instant};

use contract::{JobFile, ProposalVerdict, RunnerEvent, StopReason, ToGateway, limits};

use crate::control::Control;
use crate::events::{Event, Mailbox};
use crate::expect::Expected;
use crate::fault::Fault;
use crate::out::{Out, excerpt};
use crate::pi::Pi;
use crate::proposals::{self, Proposals};
use crate::rpc::{Asked, FromPi, Look, Response, command};
use crate::tally::Tally;

/// How long a name that a model made may be in a line.
const NAME: usize = 200;

/// The conversation.
pub(crate) struct Session<'a, W: Write> {
    pub(crate) job: &'a JobFile,
    pub(crate) expected: &'a Expected,
    pub(crate) out: &'a mut Out<W>,
    pub(crate) pi: Pi,
    control: Control,
    mailbox: Mailbox,
    proposals: Proposals,
    next_heartbeat: Instant,
    /// When pi last said anything.
    pub(crate) last_sign: Instant,
    /// Turns, tokens, money.
    pub(crate) tally: Tally,
    /// Answers to commands, until somebody takes them.
    pub(crate) responses: Vec<Response>,
    /// The last look that a command asked for.
    pub(crate) look: Option<Look>,
    /// The agent has come to an end.
    pub(crate) settled: bool,
    /// pi closed its output.
    pub(crate) silent: bool,
    /// The run is to end early.
    pub(crate) stop: Option<StopReason>,
    /// Something that makes the whole run worthless.
    pub(crate) breach: Option<Fault>,
}

impl<'a, W: Write> Session<'a, W> {
    pub(crate) fn new(
        job: &'a JobFile,
        expected: &'a Expected,
        out: &'a mut Out<W>,
        pi: Pi,
        control: Control,
        mailbox: Mailbox,
    ) -> Self {
        let now = Instant::now();
        Session {
            job,
            expected,
            out,
            pi,
            control,
            mailbox,
            proposals: Proposals::default(),
            next_heartbeat: now,
            last_sign: now,
            tally: Tally::default(),
            responses: Vec::new(),
            look: None,
            settled: false,
            silent: false,
            stop: None,
            breach: None,
        }
    }

    /// Takes events until `done`, or until `until` has come; whether it was done in time.
    pub(crate) fn wait(&mut self, until: Instant, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return done(self);
            }
        }
    }

    /// Takes one event; false when `until` came first.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        if Instant::now() >= self.next_heartbeat {
            self.control.send(&ToGateway::Heartbeat {});
            self.next_heartbeat = Instant::now() + Duration::from_secs(limits::HEARTBEAT_SECONDS);
        }
        match self.mailbox.next(until.min(self.next_heartbeat)) {
            Some(event) => {
                self.take(event);
                true
            }
            None => Instant::now() < until,
        }
    }

    /// The answer to the command `id`, once.
    pub(crate) fn response(&mut self, id: &str) -> Option<Response> {
        let at = self.responses.iter().position(|response| response.id == id)?;
        Some(self.responses.remove(at))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Pi(said) => {
                self.last_sign = Instant::now();
                self.hear(said);
            }
            Event::PiSilent => self.silent = true,
            Event::PiComplains(text) => self.out.warn("pi-stderr", &text),
            Event::Stop(reason) => self.stop_for(reason),
            Event::Verdict { id, verdict } => self.proposal_answered(&id, &verdict),
            Event::ControlLost => self
                .out
                .warn("gateway-lost", "the control connection is gone; opening it anew"),
            Event::ControlBack => self
                .proposals
                .unanswered()
                .for_each(|message| self.control.send(message)),
            Event::ControlGone => self.stop_for(StopReason::GatewayGone),
            Event::Terminate => self.stop_for(StopReason::Terminated),
            Event::Child => self.pi.reap(),
        }
    }

    /// The first reason stays: what comes after it is its consequence.
    fn stop_for(&mut self, reason: StopReason) {
        self.stop.get_or_insert(reason);
    }

    fn hear(&mut self, said: FromPi) {
        match said {
            FromPi::Response(response) => {
                // A handful is open at any time; more would be pi's answer to something that we did not ask.
                if self.responses.len() < 100 {
                    self.responses.push(response);
                }
            }
            FromPi::Look(look) => self.looked(*look),
            FromPi::Propose { request, asked } => self.proposed(request, asked),
            FromPi::Dialog { request } => self.tell(&command::cancel(&request)),
            FromPi::TurnStart => self.out.say(RunnerEvent::Turn {
                turn: self.tally.turns.saturating_add(1),
            }),
            FromPi::TurnEnd => {
                if let Some(cap) = self.tally.cap(&self.job.limits) {
                    self.stop_for(cap);
                }
            }
            FromPi::Answer(answer) => {
                self.tally.answered(answer.clone());
                self.out.say(RunnerEvent::Model {
                    turn: self.tally.turns,
                    stop: excerpt(&answer.stop),
                    text: excerpt(&answer.text),
                    usage: answer.usage,
                    error: answer.error.as_deref().map(excerpt),
                });
            }
            FromPi::ToolStart { call, tool, arguments } => {
                let arguments = excerpt(&arguments);
                self.out.say(RunnerEvent::ToolStart {
                    call: name(&call),
                    tool: name(&tool),
                    arguments,
                });
            }
            FromPi::ToolEnd {
                call,
                tool,
                failed,
                text,
            } => {
                let text = excerpt(&text);
                self.out.say(RunnerEvent::ToolEnd {
                    call: name(&call),
                    tool: name(&tool),
                    failed,
                    text,
                });
            }
            FromPi::Retry {
                attempt,
                of,
                wait_ms,
                error,
            } => {
                self.out.say(RunnerEvent::Retry {
                    attempt,
                    of,
                    wait_ms,
                    error: excerpt(&error),
                });
            }
            FromPi::Settled => self.settled = true,
            FromPi::Odd(word, detail) => self.out.warn(word, &detail),
            FromPi::Alive => {}
        }
    }

    /// A look at the start of each turn is compared at once: it is what the model will be offered.
    fn looked(&mut self, look: Look) {
        if look.why == "turn"
            && self.breach.is_none()
            && let Err(fault) = self.expected.tools(&look)
        {
            self.breach = Some(fault);
            self.stop_for(StopReason::ToolsNotProven);
        }
        if look.why == "command" {
            self.look = Some(look);
        }
    }

    fn proposed(&mut self, request: String, asked: Result<Asked, String>) {
        let known = asked.and_then(|asked| {
            let known = self.job.proposals.contains(&asked.tool);
            known
                .then_some(asked)
                .ok_or_else(|| "there is no proposing tool of that name".to_owned())
        });
        match known {
            Ok(asked) => {
                let message = self.proposals.ask(request, asked);
                self.control.send(&message);
            }
            Err(reason) => self.tell(&command::answer(&request, &proposals::refusal(&reason))),
        }
    }

    fn proposal_answered(&mut self, id: &str, verdict: &ProposalVerdict) {
        let Some(open) = self.proposals.answered(id) else {
            return;
        };
        let reason = match verdict {
            ProposalVerdict::Accepted => None,
            ProposalVerdict::Refused { reason } => Some(excerpt(reason)),
        };
        self.out.say(RunnerEvent::Proposal {
            id: id.to_owned(),
            tool: name(&open.tool),
            accepted: reason.is_none(),
            reason,
        });
        self.tell(&command::answer(&open.request, &proposals::answer(id, verdict)));
    }

    /// Sends a command that nothing waits for. When pi is gone, its silence is what is noticed.
    fn tell(&mut self, command: &serde_json::Value) {
        if let Err(fault) = self.pi.send(command) {
            self.out.warn("pi-takes-nothing", &fault.detail);
        }
    }
}

fn name(text: &str) -> String {
    crate::out::cut(text, NAME).0
}
