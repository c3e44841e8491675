//! Runs the catalogue over a run, and lets no nanosecond be claimed twice.

use std::cmp::Reverse;

use model::Accounts;

use super::worth::shortfall;
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::catalogue::{ALL, is_of_ticks};
use crate::cause::{Cause, Claim, Verdict};

/// What one cause says of a case.
pub(super) struct Judged {
    pub cause: &'static Cause,
    /// No nanosecond is in two claims that are named.
    pub verdict: Verdict,
    /// What it claimed before others were served.
    pub claimed_ns: u64,
    /// Why its claim is too small to be named.
    pub shortfall: Option<String>,
}

impl Judged {
    /// What it claims, if that is enough for a finding.
    pub fn named(&self) -> Option<&Claim> {
        self.verdict.as_ref().ok().filter(|_| self.shortfall.is_none())
    }

    /// What it claims, if that is too little for a finding.
    pub fn below(&self) -> Option<&Claim> {
        self.verdict.as_ref().ok().filter(|_| self.shortfall.is_some())
    }
}

/// What each cause says that explains what was measured: time that threads lost, or late ticks.
pub(super) fn judged(case: &Case) -> Vec<Judged> {
    let examined = |cause: &&'static Cause| {
        let verdict = (cause.examine)(case);
        let claimed_ns = verdict.as_ref().map_or(0, Claim::lost_ns);
        Judged { cause, verdict, claimed_ns, shortfall: None }
    };
    let asked = ALL.iter().filter(|cause| is_of_ticks(cause) == case.timers.is_some());
    let mut judged: Vec<Judged> = asked.map(examined).collect();
    cap(&mut judged, &case.claimable(), &case.idle(), |claim| shortfall(case, claim));
    judged
}

/// Lets no two claims have the same nanosecond. Mechanisms are served first, then symptoms, of each
/// the larger claim first, and none gets more of an account than there is. What is then too small
/// to be named keeps nothing from those behind it.
pub(super) fn cap(
    judged: &mut [Judged],
    claimable: &Accounts,
    idle: &Accounts,
    shortfall: impl Fn(&Claim) -> Option<String>,
) {
    let mut claims: Vec<(bool, &mut Claim, &mut Option<String>)> = judged
        .iter_mut()
        .filter_map(|one| Some((one.cause.symptom, one.verdict.as_mut().ok()?, &mut one.shortfall)))
        .collect();
    claims.sort_by_key(|(symptom, claim, _)| (*symptom, Reverse(claim.lost.total())));
    let (mut left, mut idle_left) = (claimable.clone(), idle.clone());
    for (_, claim, falls_short) in claims {
        let of_idle = |account| claim.takes_idle && class(account) == Class::Idle;
        let left_in = |a| if of_idle(a) { idle_left.get(a) } else { left.get(a) };
        let asked = claim.lost.total();
        claim.lost = claim.lost.iter().map(|(a, ns)| (a, ns.min(left_in(a)))).collect();
        if let Some(of) = &mut claim.requests {
            of.cut(claim.lost.total(), asked);
        }
        *falls_short = shortfall(claim);
        if falls_short.is_some() {
            continue;
        }
        let taken = claim.lost.iter().partition::<Vec<_>, _>(|(a, _)| of_idle(*a));
        idle_left = subtract(&idle_left, &taken.0.into_iter().collect());
        left = subtract(&left, &taken.1.into_iter().collect());
    }
}

pub(super) fn subtract(from: &Accounts, what: &Accounts) -> Accounts {
    from.iter().map(|(account, ns)| (account, ns.saturating_sub(what.get(account)))).collect()
}
