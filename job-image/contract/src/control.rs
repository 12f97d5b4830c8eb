//! What runner and gateway say to each other over the control socket: one JSON object a line, each at most
//! [`crate::limits::CONTROL_LINE`] bytes.
//!
//! The runner speaks first ([`ToGateway::Hello`]) and waits for [`ToRunner::Welcome`]. After a worker's restart it
//! connects anew and says hello again; a proposal whose answer it did not get, it sends again under the same id.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StopReason;

/// A line from the runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToGateway {
    /// The first line of every connection.
    Hello {
        /// The job of `job.json`.
        job: i64,
        /// Its attempt.
        attempt: i32,
        /// [`crate::CONTRACT_VERSION`] of the runner.
        contract: u32,
    },
    /// Still there; every [`crate::limits::HEARTBEAT_SECONDS`].
    Heartbeat {},
    /// The agent proposes something.
    Propose {
        /// Made by the runner, unique in the attempt: the same proposal sent twice has the same id.
        id: String,
        /// The tool's name.
        tool: String,
        /// What the model wrote.
        arguments: Value,
    },
}

/// A line from the gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToRunner {
    /// The answer to `hello`.
    Welcome {},
    /// End the run: abort, wait a little, kill.
    Stop {
        /// Why.
        reason: StopReason,
    },
    /// The answer to `propose`.
    Proposal {
        /// The proposal's id.
        id: String,
        /// What became of it.
        #[serde(flatten)]
        verdict: ProposalVerdict,
    },
}

/// What the worker says to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum ProposalVerdict {
    /// Kept; it is carried out after the run.
    Accepted,
    /// Not kept. The agent reads why, and may propose again.
    Refused {
        /// A sentence for the agent.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_lines_of_the_control_socket_read_like_this() {
        let said = [
            serde_json::to_value(ToGateway::Hello {
                job: 7,
                attempt: 1,
                contract: 1,
            }),
            serde_json::to_value(ToGateway::Heartbeat {}),
            serde_json::to_value(ToGateway::Propose {
                id: "p1".into(),
                tool: "forge_comment".into(),
                arguments: json!({ "body": "hello" }),
            }),
            serde_json::to_value(ToRunner::Welcome {}),
            serde_json::to_value(ToRunner::Stop {
                reason: StopReason::StoppedByPerson,
            }),
            serde_json::to_value(ToRunner::Proposal {
                id: "p1".into(),
                verdict: ProposalVerdict::Accepted,
            }),
            serde_json::to_value(ToRunner::Proposal {
                id: "p2".into(),
                verdict: ProposalVerdict::Refused {
                    reason: "one comment only".into(),
                },
            }),
        ]
        .map(Result::unwrap);
        let expected = [
            json!({"type":"hello","job":7,"attempt":1,"contract":1}),
            json!({"type":"heartbeat"}),
            json!({"type":"propose","id":"p1","tool":"forge_comment","arguments":{"body":"hello"}}),
            json!({"type":"welcome"}),
            json!({"type":"stop","reason":"stopped-by-person"}),
            json!({"type":"proposal","id":"p1","verdict":"accepted"}),
            json!({"type":"proposal","id":"p2","verdict":"refused","reason":"one comment only"}),
        ];
        assert_eq!(said, expected);
        for line in &expected[3..] {
            serde_json::from_value::<ToRunner>(line.clone()).unwrap();
        }
    }
}
