//! One attempt of one job, from top to bottom.
//!
//! Check the inputs; open the door; start pi; prove the session; send the prompt; stop at a cap; read back again; end
//! pi; say the result. Nothing is spent before the proof.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use contract::{
    CONTRACT_VERSION, ExitCode, FaultReason, JobLimits, Phase, ReportedUsage, ResultOutcome, RunnerEvent, StopReason,
    ToGateway, Tool, limits, paths,
};
use rustix::process::Signal;

use crate::control::Control;
use crate::events::{mailbox, take_signals};
use crate::expect::{self, Expected};
use crate::fault::Fault;
use crate::inputs::Inputs;
use crate::out::{Out, cut, excerpt};
use crate::pi::Pi;
use crate::rpc::{Look, READ_BACK_COMMAND, command};
use crate::session::Session;
use crate::{look, relay, spill};

/// How long pi has to settle after an abort.
const ABORT: Duration = Duration::from_secs(10);
/// How long the read-back at the end may take.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// How long pi has to end after its input was closed, and again after SIGTERM.
const LEAVE: Duration = Duration::from_secs(5);
/// How long the gateway's door may take to open.
const DOOR: Duration = Duration::from_secs(30);

/// Runs the attempt and gives the exit code.
pub(crate) fn run(excluded: Option<OsString>) -> ExitCode {
    let mut out = Out::new(io::stdout());
    match attempt(excluded, &mut out) {
        Ok(code) => code,
        Err(fault) => {
            out.say(RunnerEvent::Fault {
                reason: fault.reason,
                detail: excerpt(&fault.detail),
            });
            fault.reason.exit()
        }
    }
}

fn attempt(excluded: Option<OsString>, out: &mut Out<impl Write>) -> Result<ExitCode, Fault> {
    let clocks = Clocks(Instant::now());
    let inputs = Inputs::read(excluded)?;
    let job = &inputs.job;
    let (post, mailbox) = mailbox();

    let hello = ToGateway::Hello {
        job: job.job,
        attempt: job.attempt,
        contract: CONTRACT_VERSION,
    };
    let control = Control::open(hello, clocks.setup(&job.limits).min(clocks.0 + DOOR), post.clone())?;
    let pi = inputs.builtin.pi.clone();
    out.say(RunnerEvent::Runner {
        job: job.job,
        attempt: job.attempt,
        contract: CONTRACT_VERSION,
        pi,
    });
    relay::listen(contract::MODEL_PORT, paths::MODEL_SOCKET)?;
    take_signals(post.clone())?;

    let pi = Pi::start(&inputs.start(), &inputs.models, post)?;
    let expected = Expected::of(&inputs);
    let mut session = Session::new(job, &expected, out, pi, control, mailbox);
    let proven = prove(&mut session, &inputs, clocks.setup(&job.limits));
    match session.stop {
        Some(reason) => session.out.say(RunnerEvent::Stopping { reason }),
        None if proven.is_ok() => {
            converse(&mut session, &inputs.message, &clocks);
            look_again(&mut session);
        }
        None => {}
    }
    end_pi(&mut session);
    proven?;
    Ok(say_result(&mut session))
}

/// The moments that must not be passed.
struct Clocks(Instant);

impl Clocks {
    fn setup(&self, limits: &JobLimits) -> Instant {
        self.0 + Duration::from_secs(limits.setup_seconds.min(limits.total_seconds))
    }

    fn total(&self, limits: &JobLimits) -> Instant {
        self.0 + Duration::from_secs(limits.total_seconds)
    }
}

/// Reads the session back and compares it with what the job asked for.
fn prove<W: Write>(session: &mut Session<'_, W>, inputs: &Inputs, until: Instant) -> Result<(), Fault> {
    session.pi.send(&command::get_state("state")).map_err(unproven)?;
    session.pi.send(&command::get_commands("commands")).map_err(unproven)?;
    let both = |session: &Session<'_, W>| over(session) || session.responses.len() >= 2;
    session.wait(until, both);
    if session.stop.is_some() {
        return Ok(());
    }
    let (Some(state), Some(commands)) = (session.response("state"), session.response("commands")) else {
        return Err(silence(session));
    };
    expect::commands(&commands.data)?;
    let look = take_look(session, until)?;
    let Some(look) = look else {
        return if session.stop.is_some() {
            Ok(())
        } else {
            Err(silence(session))
        };
    };
    let proof = say_look(session, &look, Phase::Start);
    expect::state(&state.data, &inputs.job, &inputs.price)?;
    if let Some(remark) = expect::thinking(&state.data, &inputs.job) {
        session.out.warn("thinking-differs", &remark);
    }
    proof?;
    session.expected.session(&look)
}

/// Sends the prompt and waits until the agent is done, or something ends the run.
fn converse<W: Write>(session: &mut Session<'_, W>, message: &str, clocks: &Clocks) {
    session.out.say(RunnerEvent::Started {});
    session.last_sign = Instant::now();
    if let Err(fault) = session.pi.send(&command::prompt("prompt", message)) {
        session.breach = Some(fault);
        return;
    }
    let total = clocks.total(&session.job.limits);
    let idle = Duration::from_secs(session.job.limits.idle_seconds);
    while !session.settled && !over(session) {
        let until = total.min(session.last_sign + idle);
        if !session.step(until) {
            session.stop = Some(if Instant::now() >= total {
                StopReason::TimeCap
            } else {
                StopReason::IdleCap
            });
        }
        if let Some(response) = session.response("prompt")
            && (!response.success || response.data["disposition"] != "started")
        {
            let detail = response
                .error
                .unwrap_or_else(|| format!("pi did not start: {}", response.data));
            session.breach = Some(Fault::new(FaultReason::PiUnusable, detail));
            return;
        }
    }
    if let Some(reason) = session.stop {
        session.out.say(RunnerEvent::Stopping { reason });
        if session.pi.send(&command::abort()).is_ok() {
            session.wait(Instant::now() + ABORT, |session| session.settled || session.silent);
        }
    }
}

/// The read-back after the last turn. A session that ended by itself and cannot be read back proves nothing.
fn look_again<W: Write>(session: &mut Session<'_, W>) {
    if session.silent || !session.settled {
        return;
    }
    // What ended the run must not keep us from looking.
    let (stop, breach) = (session.stop.take(), session.breach.take());
    let look = take_look(session, Instant::now() + LAST_LOOK);
    let last = match look {
        Ok(Some(look)) => say_look(session, &look, Phase::End).and_then(|()| session.expected.session(&look)),
        Ok(None) | Err(_) if stop.is_some() => {
            session.out.warn(
                "end-read-back-missing",
                "the session could not be read back after it was stopped",
            );
            Ok(())
        }
        Ok(None) | Err(_) => Err(Fault::new(
            FaultReason::ToolsNotProven,
            "the session could not be read back at its end",
        )),
    };
    session.stop = stop.or(session.stop);
    session.breach = breach.or(last.err());
}

/// Asks the bridge for a look, under a nonce that nobody could have guessed; `None` when it did not come in time.
fn take_look<W: Write>(session: &mut Session<'_, W>, until: Instant) -> Result<Option<Look>, Fault> {
    let nonce = look::nonce()?;
    session.look = None;
    session
        .pi
        .send(&command::prompt("read-back", &format!("/{READ_BACK_COMMAND} {nonce}")))
        .map_err(unproven)?;
    let shown = |session: &Session<'_, W>| {
        session
            .look
            .as_ref()
            .is_some_and(|look| look.nonce.as_deref() == Some(&nonce))
    };
    session.wait(until, |session| shown(session) || over(session));
    let look = session.look.take();
    Ok(look.filter(|look| look.nonce.as_deref() == Some(&nonce)))
}

/// Shows what was seen, compares the tools, and says `tools_excluded` only when they are as they must be.
fn say_look<W: Write>(session: &mut Session<'_, W>, look: &Look, phase: Phase) -> Result<(), Fault> {
    session.out.say(RunnerEvent::Readback {
        phase,
        seen: expect::read_back(look),
    });
    session.expected.tools(look)?;
    let excluded = session.job.exclude_tools.clone();
    if excluded.is_empty() {
        return Ok(());
    }
    let mut registered: Vec<String> = look.registered.iter().map(|tool| tool.name.clone()).collect();
    registered.sort();
    let from_inside = phase == Phase::End && !excluded.contains(&Tool::Bash);
    let active = look.active.clone();
    session.out.say(RunnerEvent::ToolsExcluded {
        excluded,
        active,
        registered,
        phase,
        from_inside,
    });
    Ok(())
}

/// Closes pi's input, then asks, then kills.
fn end_pi<W: Write>(session: &mut Session<'_, W>) {
    session.pi.close();
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        if let Some(signal) = signal {
            session.pi.signal(signal);
        }
        if session.wait(Instant::now() + LEAVE, |session| session.pi.ended().is_some()) {
            break;
        }
    }
    if let Err(error) = spill::keep(Path::new(paths::TMP), &Path::new(paths::SESSION).join("spill")) {
        session.out.warn("spill-not-kept", &error.to_string());
    }
}

/// The last line, and the exit code that goes with it.
fn say_result<W: Write>(session: &mut Session<'_, W>) -> ExitCode {
    let (outcome, reason, code) = judge(session);
    let reply = session
        .tally
        .last
        .as_ref()
        .map(|answer| answer.text.as_str())
        .unwrap_or_default();
    let (reply, mut reply_cut) = cut(reply, limits::REPLY);
    reply_cut |= session
        .tally
        .last
        .as_ref()
        .is_some_and(|answer| answer.stop == "length");
    let (turns, usage): (u32, ReportedUsage) = (session.tally.turns, session.tally.usage);
    session.out.say(RunnerEvent::Result {
        outcome,
        turns,
        usage,
        reply,
        reply_cut,
        reason,
    });
    code
}

fn judge<W: Write>(session: &mut Session<'_, W>) -> (ResultOutcome, Option<String>, ExitCode) {
    if let Some(fault) = session.breach.clone().or_else(|| failure(session)) {
        session.out.say(RunnerEvent::Fault {
            reason: fault.reason,
            detail: excerpt(&fault.detail),
        });
        return (
            ResultOutcome::Failed,
            Some(fault.reason.word().to_owned()),
            fault.reason.exit(),
        );
    }
    match session.stop {
        Some(reason) => (
            ResultOutcome::Stopped,
            Some(reason.word().to_owned()),
            stop_code(reason),
        ),
        None => (ResultOutcome::Completed, None, ExitCode::Done),
    }
}

/// What went wrong in a run that nobody stopped.
fn failure<W: Write>(session: &Session<'_, W>) -> Option<Fault> {
    if session.stop.is_some() {
        return None;
    }
    if !session.settled {
        let how = session.pi.ended().unwrap_or("pi closed its output");
        return Some(Fault::new(FaultReason::PiEnded, how));
    }
    let Some(last) = &session.tally.last else {
        return Some(Fault::new(FaultReason::ProviderFailed, "the model gave no answer"));
    };
    match (last.stop.as_str(), last.text.trim().is_empty()) {
        ("stop" | "toolUse", _) | ("length", false) => None,
        ("length", true) => Some(Fault::new(
            FaultReason::ProviderFailed,
            "the answer was cut before its first word",
        )),
        _ => Some(Fault::new(
            FaultReason::ProviderFailed,
            last.error.clone().unwrap_or_else(|| last.stop.clone()),
        )),
    }
}

fn stop_code(reason: StopReason) -> ExitCode {
    match reason {
        StopReason::GatewayGone | StopReason::Terminated | StopReason::WorkerStopping => ExitCode::Infrastructure,
        StopReason::ExcludeToolsBreached | StopReason::ToolsNotProven => ExitCode::Policy,
        StopReason::TurnCap
        | StopReason::TokenCap
        | StopReason::CostCap
        | StopReason::DayTokenCap
        | StopReason::DayCostCap
        | StopReason::RequestCap
        | StopReason::TimeCap
        | StopReason::IdleCap
        | StopReason::SetupCap
        | StopReason::DiskCap
        | StopReason::LogCap
        | StopReason::StoppedByPerson => ExitCode::Done,
    }
}

fn over<W: Write>(session: &Session<'_, W>) -> bool {
    session.silent || session.stop.is_some() || session.breach.is_some()
}

fn silence<W: Write>(session: &Session<'_, W>) -> Fault {
    let how = session.pi.ended().unwrap_or("it did not answer in time");
    Fault::new(
        FaultReason::ToolsNotProven,
        format!("the session could not be read back: {how}"),
    )
}

fn unproven(fault: Fault) -> Fault {
    Fault::new(FaultReason::ToolsNotProven, fault.detail)
}
