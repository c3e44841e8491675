//! All judgement of a run: the catalogue is asked, its claims are ranked, and what is worth naming
//! becomes a finding.

mod alike;
mod below;
mod busiest;
mod children;
mod concentration;
pub(crate) mod confidence;
pub(crate) mod divided;
mod finding;
mod frequent_call;
mod held_open;
mod hurt;
mod idle;
#[cfg(test)]
mod needs;
mod never_rests;
pub(crate) mod on_cpu;
mod own;
mod rank;
mod requests;
pub(crate) mod sampled_calls;
mod slow_requests;
#[cfg(test)]
mod tests;
pub(crate) mod timers;
mod unanswered;
mod unexplained;
mod verify;
pub(crate) mod why_not;
mod work_waited_for;
mod working_children;
mod worth;

use std::cmp::Reverse;

use model::{Account, Accounts, Explanation, NotLookedAt, Run};

use self::busiest::put_before_idle;
use self::finding::{finding, share};
use self::own::SetApart;
use self::rank::{Judged, judged, subtract};
pub(crate) use self::requests::FEWEST as FEWEST_REQUESTS;
use self::work_waited_for::{PeersWork, put_behind_causes};
pub(crate) use self::worth::LEAST_OF_REQUESTS;
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::catalogue::ALL;
use crate::causes::requests::many_calls;
use crate::part::run::PartialRun;
use crate::patterns::coincidence::coincidences;
use crate::patterns::rhythm;

/// Fewer dropped packets make a finding, but do not put it before those that took time.
const MANY_DROPS: u64 = 10;

/// From this part of the time of the slowest requests on a finding is ranked by it.
const FELT: f64 = 0.1;
/// Parts of it are compared as whole numbers of so many.
const PARTS: f64 = 1e9;

/// Explains where the threads of `run` lost their time.
///
/// Shares of the findings add up to at most 1; lost time that none explains is in `unexplained`,
/// by account. Findings through which packets were dropped (ten at least) come first, then the others, and last
/// what struck at one time only: 1,000 threads that queue for a CPU while they start do not hide a
/// lock that is in the way all the time. Of each comes first what takes the largest part of the slowest
/// requests of the port where it takes most, where these are known and who sent them is not recorded
/// itself, else the largest share; but what takes half of a thread that is always busy comes before what takes
/// time only of such that mostly wait for work. A wait for a peer comes after the cause that has most of what the peer
/// does.
///
/// A run of timers has no threads: of it the findings explain the lateness of its ticks.
pub fn explain(run: &Run) -> Explanation {
    if let Some(judged) = timers::timers(run) {
        return judged.explanation;
    }
    let run = divided::divided(run);
    let apart = own::set_apart(&run);
    let case = Case::new(&apart.run).asking(ALL);
    of_apart(&case, &apart)
}

/// Explains a part of a run alone. Threads outside it are met only at the far ends of chains.
pub fn explain_part(partial: &PartialRun) -> Explanation {
    let apart = own::set_apart(&partial.run);
    let without = own::part_without(partial, &apart);
    of_apart(&Case::of_part(without.as_ref().unwrap_or(partial)).asking(ALL), &apart)
}

fn of_apart(case: &Case, apart: &SetApart) -> Explanation {
    let own_delay = apart.delay(case.wall_ns, case.lost.total());
    Explanation { own_delay, ..explained(case, &judged(case)) }
}

fn explained(case: &Case, judged: &[Judged]) -> Explanation {
    let lost = lost_by_claims(case, judged);
    let lost_ns = lost.total();
    let mut unexplained = lost;
    let mut findings = Vec::new();
    let (mut behind, mut takes) = (Vec::new(), Vec::new());
    for one in judged {
        if let Some(claim) = one.named() {
            unexplained = subtract(&unexplained, &claim.lost);
            let mut finding = finding(case, one.cause, claim, lost_ns, judged);
            let peers_work = PeersWork::of(case, claim, judged);
            finding.chain.extend(peers_work.links());
            behind.extend(peers_work.main().map(|cause| (one.cause.id, cause)));
            takes.push((one.cause.id, busiest::takes(case, claim)));
            findings.push((claim.dropped >= MANY_DROPS, finding));
        }
    }
    let by_requests = requests::come_from_outside(case);
    findings.sort_by_key(|(dropped, finding)| {
        let at_once = concentration::is_at_once(case, finding.when.as_ref());
        let felt = finding.requests.as_ref().filter(|cost| by_requests && cost.share() >= FELT);
        let slows = felt.map_or(0, |cost| (cost.share() * PARTS) as u64);
        (!dropped, finding.minor, at_once, Reverse(slows), Reverse(finding.lost_ns))
    });
    let mut findings: Vec<_> = findings.into_iter().map(|(_, finding)| finding).collect();
    put_before_idle(&mut findings, &takes);
    put_behind_causes(&mut findings, &behind);
    let unexplained = unexplained.largest_first();
    let by_share = |(account, ns)| (account, ns, share(ns, case.wall_ns));
    let idle_ns = case.idle_ns.saturating_sub(idle_by_claims(judged));

    Explanation {
        run: case.run.id,
        scope: case.scope().cloned(),
        wall_ns: case.wall_ns,
        unaccounted_ns: case.accounts.get(Account::Unaccounted),
        lost_ns,
        idle_ns,
        accounts: case.accounts.largest_first().into_iter().map(by_share).collect(),
        not_looked_at: not_looked_at(case, judged),
        leading_account: unexplained::leading(case, &unexplained, findings.first()),
        below_bar: below::below_bar(case, judged),
        own_delay: None,
        many_calls: many_calls(case),
        slow_requests: slow_requests::slow_requests(case, &findings),
        never_rests: never_rests::never_rests(case),
        working_children: working_children::working_children(case),
        frequent_call: frequent_call::frequent_call(case),
        unrecorded_children_ns: children::unrecorded_ns(case),
        idle_stacks: idle::stacks(case, idle_ns, &findings),
        held_open: held_open::held_open(case, &findings),
        unanswered: unanswered::unanswered(case, &findings),
        findings,
        unexplained_stacks: unexplained::stacks(case, &unexplained),
        unexplained,
        unseen_tasks: idle::unseen_tasks(case),
        on_cpu: on_cpu::on_cpu(case.run, case.scope()),
        rhythms: rhythm::rhythms(case.run),
        coincidences: coincidences(case.run),
        losses: case.run.losses.by_kind(),
    }
}

/// The causes without a finding whose evidence was not recorded, each under what was missing.
fn not_looked_at(case: &Case, judged: &[Judged]) -> Vec<NotLookedAt> {
    let mut unseen: Vec<NotLookedAt> = Vec::new();
    for one in judged.iter().filter(|one| one.named().is_none()) {
        let Some(because) = case.not_looked_at(one.cause.needs) else { continue };
        let cause = one.cause.id.to_string();
        match unseen.iter_mut().find(|group| group.because == because) {
            Some(group) => group.causes.push(cause),
            None => unseen.push(NotLookedAt { because, causes: vec![cause] }),
        }
    }
    unseen
}

/// Lost time, and the work and waiting that findings say was avoidable.
fn lost_by_claims(case: &Case, judged: &[Judged]) -> Accounts {
    let mut lost = case.lost.clone();
    for claim in judged.iter().filter_map(|one| one.named()) {
        let is_added = |a| match class(a) {
            Class::Work => true,
            Class::Idle => claim.takes_idle,
            _ => false,
        };
        for (account, ns) in claim.lost.iter().filter(|(a, _)| is_added(*a)) {
            lost.add(account, ns);
        }
    }
    lost
}

/// Waiting for work that findings prove was none.
fn idle_by_claims(judged: &[Judged]) -> u64 {
    let named = judged.iter().filter_map(|one| one.named()).filter(|claim| claim.takes_idle);
    named
        .map(|claim| claim.lost.sum_of(|account| class(account) == Class::Idle))
        .fold(0, u64::saturating_add)
}
