//! What a claim takes of the slowest requests of a run.
//!
//! Of an account that is the claim's the part is taken that the claim has of it, in whichever request
//! a thread had that account while it had the request, or while the request waited for it.

use model::{Account, MessageTime, RequestCost, part_of};

use super::hurt::Parts;
use crate::case::Case;
use crate::case::requests::cost;
use crate::cause::Claim;

/// Fewer slow requests show nothing.
pub(crate) const FEWEST: u64 = 10;

/// `None` where too few are known, or a part of a run is asked about.
pub(super) fn of(case: &Case, claim: &Claim) -> Option<RequestCost> {
    if case.scope().is_some() || claim.late.is_some() {
        return None;
    }
    let cost = claim.requests.unwrap_or_else(|| by_accounts(case, claim));
    (cost.of >= FEWEST).then_some(cost)
}

fn by_accounts(case: &Case, claim: &Claim) -> RequestCost {
    let parts = Parts::new(case, claim);
    cost(case, |one| {
        let times = one.parts.iter().flat_map(|part| &part.time);
        times.map(|time| parts.taken_of(time)).fold(0, u64::saturating_add)
    })
}

impl Parts {
    fn taken_of(&self, time: &MessageTime) -> u64 {
        let is_its = |(account, ..): &&(Account, u64, u64)| Some(*account) == time.account;
        let taken = self.taken.iter().find(is_its);
        taken.map_or(0, |(_, claimed, all)| part_of(time.ns, *claimed, *all))
    }
}
