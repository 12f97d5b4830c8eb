//! Proposals on their way: asked by the bridge, sent to the worker, not yet answered.

use std::collections::BTreeMap;

use contract::{ProposalVerdict, ToGateway};
use serde_json::{Value, json};

use crate::rpc::Asked;

/// The proposals of an attempt.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    made: u32,
    open: BTreeMap<String, Open>,
}

/// One that was not answered yet.
#[derive(Debug)]
pub(crate) struct Open {
    /// pi's id of the bridge's question.
    pub(crate) request: String,
    /// The tool.
    pub(crate) tool: String,
    /// What was sent, to send it again under the same id after a worker's restart.
    message: ToGateway,
}

impl Proposals {
    /// Keeps a proposal and gives what is to be sent.
    pub(crate) fn ask(&mut self, request: String, asked: Asked) -> ToGateway {
        self.made += 1;
        let id = format!("p{}", self.made);
        let Asked { tool, arguments } = asked;
        let message = ToGateway::Propose {
            id: id.clone(),
            tool: tool.clone(),
            arguments,
        };
        self.open.insert(
            id,
            Open {
                request,
                tool,
                message: message.clone(),
            },
        );
        message
    }

    /// Takes the proposal that was answered; `None` when it was answered before.
    pub(crate) fn answered(&mut self, id: &str) -> Option<Open> {
        self.open.remove(id)
    }

    /// What must be sent again on a new connection.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &ToGateway> {
        self.open.values().map(|open| &open.message)
    }
}

/// What the bridge is told.
pub(crate) fn answer(id: &str, verdict: &ProposalVerdict) -> Value {
    match verdict {
        ProposalVerdict::Accepted => json!({ "accepted": true, "id": id }),
        ProposalVerdict::Refused { reason } => json!({ "accepted": false, "reason": reason }),
    }
}

/// What the bridge is told about a proposal that is not even sent.
pub(crate) fn refusal(reason: &str) -> Value {
    json!({ "accepted": false, "reason": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_sent_again_under_its_id_until_it_is_answered_once() {
        let mut proposals = Proposals::default();
        let asked = Asked {
            tool: "forge_comment".into(),
            arguments: json!({ "body": "x" }),
        };
        let first = proposals.ask("q1".into(), asked.clone());
        let second = proposals.ask("q2".into(), asked);
        assert_eq!(proposals.unanswered().collect::<Vec<_>>(), [&first, &second]);

        assert_eq!(proposals.answered("p1").unwrap().request, "q1");
        assert!(proposals.answered("p1").is_none());
        assert_eq!(proposals.unanswered().collect::<Vec<_>>(), [&second]);
    }
}
