//! The book of a job by hand: kept in memory, shown as it is written.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use contract::Micros;
use gateway::Proposal;
use queue::{Caps, GateRow, LogSource, NewReservation, ProposalId, Proposed, Reason, Reserved, Settlement, Spend};
use serde_json::{Value, json};

use crate::logs::{Line, What};

/// Takes each line that a person should see: JSON, one object a line.
pub type Show = Box<dyn Fn(&str) + Send + Sync>;

/// The book.
pub struct Memory {
    show: Show,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    requests: BTreeMap<i64, Money>,
    proposals: Vec<(String, Value)>,
}

/// One model request: what was set aside, until it is replaced by what it was.
enum Money {
    Reserved { tokens: i64, cost: Micros },
    Settled(Settlement),
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl Memory {
    /// An empty book that shows each line through `show`.
    #[must_use]
    pub fn new(show: Show) -> Self {
        Self {
            show,
            kept: Mutex::default(),
        }
    }

    pub(super) fn line(&self, line: &Line) {
        match &line.what {
            // As the runner wrote it.
            What::Event(_) => (self.show)(&line.text),
            What::Unreadable | What::Text | What::Dropped(_) => {
                (self.show)(&json!({ "event": "text", "text": line.text }).to_string());
            }
        }
    }

    pub(super) fn say(&self, source: LogSource, kind: &str, data: &Value) {
        (self.show)(&json!({ "from": source.word(), "event": kind, "data": data }).to_string());
    }

    pub(super) fn gate(&self, row: &GateRow) {
        (self.show)(&json!({ "from": "worker", "event": "gate", "data": row }).to_string());
    }

    pub(super) fn spend(&self) -> Spend {
        self.lock().spend()
    }

    pub(super) fn proposals(&self) -> Vec<(String, Value)> {
        self.lock().proposals.clone()
    }

    pub(super) fn propose(&self, proposal: &Proposal, at_most: u32) -> Proposed {
        let mut kept = self.lock();
        let of_its_sort = kept.proposals.iter().filter(|(tool, _)| *tool == proposal.tool).count();
        if of_its_sort >= at_most as usize {
            return Proposed::Full { at_most };
        }
        kept.proposals.push((proposal.tool.clone(), proposal.arguments.clone()));
        Proposed::Kept(ProposalId(i64::try_from(kept.proposals.len()).unwrap_or(i64::MAX)))
    }

    /// Holds the same caps as the queue, the day's aside: one job has no day.
    pub(super) fn reserve(&self, new: &NewReservation, caps: &Caps) -> Reserved {
        let mut kept = self.lock();
        let spent = kept.spend();
        let over = |spent: i64, more: i64, cap: Option<i64>| cap.is_some_and(|cap| spent.saturating_add(more) > cap);
        if over(spent.requests, 1, caps.run_requests) {
            return Reserved::No {
                cap: Reason::RequestsCap,
            };
        }
        if over(spent.tokens, new.worst_tokens, caps.run_tokens) {
            return Reserved::No { cap: Reason::TokensCap };
        }
        if over(spent.cost.0, new.worst_cost.0, caps.run_cost.map(|cap| cap.0)) {
            return Reserved::No { cap: Reason::CostCap };
        }
        let id = spent.requests + 1;
        kept.requests.insert(
            id,
            Money::Reserved {
                tokens: new.worst_tokens,
                cost: new.worst_cost,
            },
        );
        Reserved::Yes(queue::ReservationId(id))
    }

    pub(super) fn settle(&self, id: i64, settlement: Settlement) {
        if let Some(money) = self.lock().requests.get_mut(&id) {
            *money = Money::Settled(settlement);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn spend(&self) -> Spend {
        let mut sum = Spend::default();
        for money in self.requests.values() {
            sum.requests += 1;
            match money {
                Money::Reserved { tokens, cost } => {
                    sum.tokens = sum.tokens.saturating_add(*tokens);
                    sum.cost += *cost;
                }
                Money::Settled(settled) => {
                    sum.input = sum.input.saturating_add(settled.input);
                    sum.output = sum.output.saturating_add(settled.output);
                    sum.cache_read = sum.cache_read.saturating_add(settled.cache_read);
                    sum.cache_write = sum.cache_write.saturating_add(settled.cache_write);
                    sum.tokens = sum.tokens.saturating_add(settled.tokens);
                    sum.cost += settled.cost;
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tokens: i64, cost: i64) -> NewReservation {
        NewReservation {
            provider: "p".into(),
            model: "m".into(),
            worst_tokens: tokens,
            worst_cost: Micros(cost),
        }
    }

    #[test]
    fn what_is_reserved_counts_until_it_is_replaced_by_what_it_was() {
        let book = Memory::new(Box::new(|_| {}));
        let caps = Caps {
            run_tokens: Some(100),
            ..Caps::default()
        };

        let Reserved::Yes(first) = book.reserve(&request(80, 8), &caps) else {
            panic!("80 of 100")
        };
        assert_eq!(
            book.reserve(&request(80, 8), &caps),
            Reserved::No { cap: Reason::TokensCap }
        );
        book.settle(
            first.0,
            Settlement {
                input: 15,
                output: 5,
                tokens: 20,
                cost: Micros(2),
                ..Settlement::default()
            },
        );

        assert!(matches!(book.reserve(&request(80, 8), &caps), Reserved::Yes(_)));
        assert_eq!(
            (book.spend().requests, book.spend().tokens, book.spend().cost),
            (2, 100, Micros(10))
        );
    }
}
