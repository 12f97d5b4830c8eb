//! Turns, tokens and money by pi's count, and the last answer.

use contract::{JobLimits, ReportedUsage, StopReason};

use crate::rpc::Answer;

/// What was counted so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers of the model; a failed request is none.
    pub(crate) turns: u32,
    /// Their sum.
    pub(crate) usage: ReportedUsage,
    /// The last answer.
    pub(crate) last: Option<Answer>,
}

impl Tally {
    /// Counts an answer.
    pub(crate) fn answered(&mut self, answer: Answer) {
        if answer.stop != "error" && answer.stop != "aborted" {
            self.turns = self.turns.saturating_add(1);
        }
        self.usage = self.usage.plus(&answer.usage);
        self.last = Some(answer);
    }

    /// The cap that stands in the way of another request. Asked after a turn, so that the tools which the last answer
    /// called have run, and only when the model wants to go on: who is done is not stopped.
    pub(crate) fn cap(&self, limits: &JobLimits) -> Option<StopReason> {
        let goes_on = self.last.as_ref().is_some_and(|answer| answer.stop == "toolUse");
        if !goes_on {
            return None;
        }
        if self.turns >= limits.turns {
            return Some(StopReason::TurnCap);
        }
        if self.usage.tokens() >= limits.tokens {
            return Some(StopReason::TokenCap);
        }
        limits
            .cost_micros
            .filter(|most| self.usage.cost_usd >= *most)
            .map(|_| StopReason::CostCap)
    }
}

#[cfg(test)]
mod tests {
    use contract::Micros;

    use super::*;

    fn answer(stop: &str) -> Answer {
        let usage = ReportedUsage {
            input: 90,
            output: 10,
            cost_usd: Micros(500),
            ..ReportedUsage::default()
        };
        Answer {
            stop: stop.into(),
            text: String::new(),
            usage,
            error: None,
        }
    }

    fn cap_after(stops: &[&str], limits: &JobLimits) -> Option<StopReason> {
        let mut tally = Tally::default();
        stops.iter().for_each(|stop| tally.answered(answer(stop)));
        tally.cap(limits)
    }

    #[test]
    fn a_cap_stops_who_wants_to_go_on_and_not_who_is_done() {
        let limits = JobLimits {
            turns: 2,
            ..JobLimits::default()
        };
        assert_eq!(cap_after(&["toolUse"], &limits), None);
        assert_eq!(cap_after(&["toolUse", "toolUse"], &limits), Some(StopReason::TurnCap));
        assert_eq!(cap_after(&["toolUse", "stop"], &limits), None);
        assert_eq!(cap_after(&["error", "error", "toolUse"], &limits), None);
    }

    #[test]
    fn tokens_and_money_have_their_own_caps() {
        let tokens = JobLimits {
            tokens: 200,
            ..JobLimits::default()
        };
        assert_eq!(cap_after(&["toolUse", "toolUse"], &tokens), Some(StopReason::TokenCap));
        let money = JobLimits {
            cost_micros: Some(Micros(1_000)),
            ..JobLimits::default()
        };
        assert_eq!(cap_after(&["toolUse", "toolUse"], &money), Some(StopReason::CostCap));
        let free = JobLimits {
            cost_micros: None,
            ..JobLimits::default()
        };
        assert_eq!(cap_after(&["toolUse", "toolUse"], &free), None);
    }
}
