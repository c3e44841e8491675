//! Requests that nobody of their server worked on until they were answered.
//!
//! A long poll is answered when something else happens, and so is a request that waits for a row which
//! the transaction of another client has locked: nothing that the kernel sees tells them apart. They are
//! in no metric of slow requests, so they are reported beside the findings.

use std::cmp::Reverse;

use model::{Finding, FlowKind, HeldOpen, MessageMetric};

use super::finding::share;
use crate::case::Case;
use crate::causes::ids;

/// From this part of the time of all requests on they are reported whatever is found.
const LARGE: f64 = 0.5;
/// Where nothing is found, from so many in progress at a time on, on average.
const FEWEST: f64 = 0.05;

/// By port and path, those with most time first; none of a part of a run.
pub(super) fn held_open(case: &Case, findings: &[Finding]) -> Vec<HeldOpen> {
    let messages = &case.run.messages;
    let flows = messages.programs.iter().filter(|_| case.scope().is_none()).flat_map(|program| {
        let requests = program.flows.iter().filter(|flow| flow.kind == FlowKind::Request);
        requests.map(move |flow| (program, flow))
    });
    let of_flow = flows.filter_map(|(program, flow)| {
        let of = |metric| messages.histogram(program.program, flow.flow, metric);
        let (held, others) = (of(MessageMetric::Held), of(MessageMetric::Total));
        (held.count() > 0).then(|| HeldOpen {
            tgid: program.tgid,
            comm: case.run.comm(program.tgid).to_owned(),
            at: flow.name.clone(),
            count: held.count(),
            ns: held.sum(),
            max_ns: held.max().unwrap_or(0),
            share: share(held.sum(), held.sum().saturating_add(others.sum())),
            matters: false,
        })
    });
    let mut all: Vec<HeldOpen> = of_flow.collect();
    all.iter_mut().for_each(|held| held.matters = matters(case, findings, held));
    all.sort_by_key(|held| Reverse(held.ns));
    all
}

fn matters(case: &Case, findings: &[Finding], held: &HeldOpen) -> bool {
    let is_found = findings.iter().any(|finding| !finding.minor);
    let enough = held.ns as f64 >= FEWEST * case.run.length_ns() as f64;
    let is_explained = findings.iter().any(|finding| says_why(finding, held));
    enough && !is_explained && (!is_found || held.share >= LARGE)
}

/// They wait for what other requests have, which is found.
fn says_why(finding: &Finding, held: &HeldOpen) -> bool {
    let is_lock =
        [ids::TURN_TAKING, ids::FUTEX_CONVOY].iter().any(|id| finding.cause == id.as_str());
    is_lock && finding.lost_ns >= held.ns / 2
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, ChainEnd, Histogram, MessageMetric, Run, WaitSum};

    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    const POLL: Account = Account::Blocked(Blocked::Poll);
    const FUTEX: Account = Account::Blocked(Blocked::Futex);
    const THROTTLED: Account = Account::Throttled;

    /// Requests of 1 ms, and so many of 100 ms that nobody worked on; beside them threads lose 3 s.
    fn server(quick: u64, held: u64, lost: Option<Account>) -> Run {
        let mut run = RunBuilder::new().thread(11, 10, &[(USER, SECOND), (POLL, 3 * SECOND)]);
        if let Some(account) = lost {
            let lock = WaitSum {
                lock_like: 100,
                ends: [(ChainEnd::Timer, 3 * SECOND)].into(),
                ..wait(20, FUTEX, 0x10, 100, 3 * SECOND)
            };
            run = run.thread(21, 20, &[(account, 3 * SECOND), (USER, SECOND)]).wait(lock);
        }
        let requests = (0..quick).map(|n| request(1, 11, 10 * n, 0, 1)).collect();
        let mut run = served(run.build(), requests);
        let mut second = run.messages.seconds[0].clone();
        second.metric = MessageMetric::Held;
        second.histogram = Histogram::new(model::histogram::PRECISION_KERNEL);
        (0..held).for_each(|_| second.histogram.record(100 * MS));
        run.messages.seconds.push(second);
        run
    }

    #[test]
    fn they_are_counted_by_port_with_their_part_of_all_requests() {
        let found = crate::explain(&server(100, 9, None));
        let [held] = &found.held_open[..] else { panic!("{found:?}") };
        assert_eq!((held.at.as_str(), held.tgid, held.count), ("port 80", 10, 9));
        assert_eq!(held.ns / 9 / MS, 100);
        assert!((held.share - 0.9).abs() < 0.01, "{held:?}");
        assert!(held.matters && found.findings.is_empty());
        assert!(crate::explain(&server(100, 0, None)).held_open.is_empty());
    }

    #[test]
    fn beside_findings_only_a_large_part_is_told_and_none_that_they_explain() {
        let matters = |run: &Run| {
            let found = crate::explain(run);
            (found.findings.len(), found.held_open[0].matters)
        };
        assert_eq!(matters(&server(100, 9, Some(THROTTLED))), (1, true));
        assert_eq!(
            matters(&server(2000, 9, Some(THROTTLED))),
            (1, false),
            "most are answered at once"
        );
        assert_eq!(matters(&server(2000, 9, None)), (0, true));
        assert_eq!(matters(&server(100, 9, Some(FUTEX))), (1, false), "they wait for a lock");
        assert_eq!(matters(&server(100, 1, None)), (0, false), "0.1 s of 4 s");
    }
}
