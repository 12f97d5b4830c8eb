//! Every sentence of this crate that a person or the agent reads.

use std::fmt;

use crate::DoorEvent;

/// An event, as one line of the job's log.
pub(crate) fn event(event: &DoorEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        DoorEvent::ControlOpened => f.write_str("the runner opened its control connection"),
        DoorEvent::ControlClosed => f.write_str("the control connection ended"),
        DoorEvent::ControlSilent { seconds } => write!(f, "the runner has said nothing for {seconds} s"),
        DoorEvent::ConnectionRefused { socket, pid, why } => {
            let socket = match socket {
                crate::Socket::Control => "control",
                crate::Socket::Model => "model",
            };
            match pid {
                Some(pid) => write!(
                    f,
                    "a connection to the {socket} socket from process {pid} was refused: {why}"
                ),
                None => write!(f, "a connection to the {socket} socket was refused: {why}"),
            }
        }
        DoorEvent::RequestRefused { why, place } if place.is_empty() => write!(f, "a model request was refused: {why}"),
        DoorEvent::RequestRefused { why, place } => write!(f, "a model request was refused: {why} ({place})"),
        DoorEvent::RefusalsUnlisted => f.write_str("further refused model requests are counted, not listed"),
        DoorEvent::RequestSent { reserved, tools, .. } => write!(
            f,
            "model request {}: at most {} input and {} output tokens reserved, {} tools offered",
            reserved.request,
            reserved.input_tokens,
            reserved.output_tokens,
            tools.len()
        ),
        DoorEvent::RequestEnded { settlement, end, .. } => {
            write!(
                f,
                "model request ended ({end}): {} tokens charged",
                settlement.usage.total()
            )
        }
        DoorEvent::Breach { tool } => write!(
            f,
            "a model request offered the excluded tool `{tool}`; nothing was sent"
        ),
        DoorEvent::CapReached { cap } => write!(f, "a model request would pass the cap `{}`", cap.word()),
        DoorEvent::HostFailed { asked } => write!(f, "the worker could not answer `{asked}`; nothing was sent"),
    }
}
