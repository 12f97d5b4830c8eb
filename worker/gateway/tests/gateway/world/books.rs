//! The worker's side: counts money like a table of reservations would, and keeps every event in its order.

use std::sync::Mutex;

use contract::{Micros, ProposalVerdict};
use futures_util::FutureExt as _;
use gateway::{Answer, Cap, DoorEvent, Host, HostFault, Proposal, Reservation, ReservationId, Reserve, Settlement};

#[derive(Default)]
pub struct Books {
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    cap: Option<Micros>,
    broken: bool,
    reserved: Vec<(Reservation, Option<Settlement>)>,
    proposals: Vec<Proposal>,
    events: Vec<DoorEvent>,
    most_ever: Micros,
}

impl Rows {
    fn charged(&self) -> Micros {
        let cost = |(reserved, settled): &(Reservation, Option<Settlement>)| settled.map_or(reserved.worst, |s| s.cost);
        self.reserved.iter().map(cost).sum()
    }
}

impl Books {
    pub fn set_cap(&self, cap: Micros) {
        self.rows.lock().unwrap().cap = Some(cap);
    }

    pub fn set_broken(&self, broken: bool) {
        self.rows.lock().unwrap().broken = broken;
    }

    /// The most that was ever charged at one moment.
    pub fn most_ever(&self) -> Micros {
        self.rows.lock().unwrap().most_ever
    }

    pub fn reserved(&self) -> Vec<Reservation> {
        self.rows
            .lock()
            .unwrap()
            .reserved
            .iter()
            .map(|(reserved, _)| reserved.clone())
            .collect()
    }

    pub fn proposals(&self) -> Vec<Proposal> {
        self.rows.lock().unwrap().proposals.clone()
    }

    pub fn events(&self) -> Vec<DoorEvent> {
        self.rows.lock().unwrap().events.clone()
    }

    /// Waits until an event like this was noted.
    pub async fn wait_for(&self, what: &str, is_it: impl Fn(&DoorEvent) -> bool) -> DoorEvent {
        for _ in 0..500 {
            if let Some(event) = self.events().into_iter().find(|event| is_it(event)) {
                return event;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no {what} in {:#?}", self.events());
    }

    /// Waits for the end of the first request and says how it ended.
    pub async fn end(&self) -> (String, Settlement) {
        let ended = self
            .wait_for("end", |event| matches!(event, DoorEvent::RequestEnded { .. }))
            .await;
        let DoorEvent::RequestEnded { end, settlement, .. } = ended else {
            unreachable!()
        };
        (end, settlement)
    }

    /// The words of all refused requests.
    pub fn refusals(&self) -> Vec<String> {
        let word = |event| match event {
            DoorEvent::RequestRefused { why, .. } => Some(why),
            _ => None,
        };
        self.events().into_iter().filter_map(word).collect()
    }
}

impl Host for Books {
    fn reserve<'a>(&'a self, wanted: &'a Reservation) -> Answer<'a, Result<Reserve, HostFault>> {
        let mut rows = self.rows.lock().unwrap();
        let answer = if rows.broken {
            Err(HostFault("no database".into()))
        } else if rows.cap.is_some_and(|cap| rows.charged().plus(wanted.worst) > cap) {
            Ok(Reserve::No(Cap::RunCost))
        } else {
            rows.reserved.push((wanted.clone(), None));
            rows.most_ever = rows.most_ever.max(rows.charged());
            Ok(Reserve::Yes(ReservationId(
                i64::try_from(rows.reserved.len() - 1).unwrap(),
            )))
        };
        std::future::ready(answer).boxed()
    }

    fn settle<'a>(&'a self, id: ReservationId, settlement: Settlement) -> Answer<'a, Result<(), HostFault>> {
        let mut rows = self.rows.lock().unwrap();
        rows.reserved[usize::try_from(id.0).unwrap()].1 = Some(settlement);
        rows.most_ever = rows.most_ever.max(rows.charged());
        std::future::ready(Ok(())).boxed()
    }

    fn propose<'a>(&'a self, proposal: &'a Proposal) -> Answer<'a, ProposalVerdict> {
        let mut rows = self.rows.lock().unwrap();
        let verdict = match rows
            .proposals
            .iter()
            .find(|known| known.tool == proposal.tool && known.id != proposal.id)
        {
            Some(_) => ProposalVerdict::Refused {
                reason: "one comment only".into(),
            },
            None => ProposalVerdict::Accepted,
        };
        if verdict == ProposalVerdict::Accepted && !rows.proposals.contains(proposal) {
            rows.proposals.push(proposal.clone());
        }
        std::future::ready(verdict).boxed()
    }

    fn event<'a>(&'a self, event: DoorEvent) -> Answer<'a, ()> {
        self.rows.lock().unwrap().events.push(event);
        std::future::ready(()).boxed()
    }
}
