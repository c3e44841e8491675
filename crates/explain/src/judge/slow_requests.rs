//! What the slowest requests did, where no finding says why they were slow: most threads of a server wait for
//! something to do, and where these spent their time says nothing of its requests.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Finding, MessageTime, RequestFunction, RequestTime, SegmentKind, SlowRequests, Syscall,
};

use super::on_cpu::labels;
use crate::case::Case;
use crate::case::lost::{Class, class};

/// Fewer samples show little.
const SAMPLES: u64 = 50;

/// Of the port whose slowest requests took longest together; `None` of messages that programs trace, and where
/// there is a finding.
pub(super) fn slow_requests(case: &Case, findings: &[Finding]) -> Option<SlowRequests> {
    if case.scope().is_some() || findings.iter().any(|finding| !finding.minor) {
        return None;
    }
    let total = |slowest: &&crate::case::slowest::Slowest| -> u64 {
        slowest.requests.iter().map(|one| one.message.total_ns()).sum()
    };
    let of_port = case.slowest().iter().max_by_key(total)?;
    let total_ns = total(&of_port);
    let messages = &case.run.messages;
    let is_request = |program| messages.is_from_sockets(program);
    if total_ns == 0 || !of_port.requests.iter().all(|one| is_request(one.message.program)) {
        return None;
    }
    let mut times = BTreeMap::<_, (u64, u64)>::new();
    for part in of_port.requests.iter().flat_map(|one| &one.parts) {
        let in_queue = part.segment.kind == SegmentKind::ToLogic;
        for MessageTime { account, call, ns, by_timer, .. } in &part.time {
            let (sum, timed): &mut (u64, u64) =
                times.entry((in_queue, *account, *call)).or_default();
            *sum = sum.saturating_add(*ns);
            *timed = timed.saturating_add(if *by_timer { *ns } else { 0 });
        }
    }
    let share = |ns| ns as f64 / total_ns as f64;
    type Kind = (bool, Option<Account>, Option<Syscall>);
    let time = |((in_queue, account, call), (ns, timed)): (Kind, (u64, u64))| RequestTime {
        in_queue,
        account,
        call: call.map(|call| call.to_string()),
        share: share(ns),
        by_timer: timed > ns / 2,
    };
    let mut times: Vec<RequestTime> = times.into_iter().map(time).collect();
    times.sort_by(|a, b| b.share.total_cmp(&a.share));
    let of = of_port.requests.len() as u64;
    let is_work = |time: &RequestTime| time.account.is_none_or(|a| class(a) == Class::Work);
    let tids = of_port.requests.iter().map(|one| one.message.tid).collect();
    let first = times.first().filter(|time| !time.in_queue && is_work(time));
    let on_cpu = first.and_then(|_| function(case, &tids));
    Some(SlowRequests { at: of_port.at.clone(), of, mean_ns: total_ns / of.max(1), times, on_cpu })
}

/// The innermost function, with what it calls, of most of the CPU time of these threads.
fn function(case: &Case, tids: &BTreeSet<u32>) -> Option<RequestFunction> {
    let paths = case.run.sums.paths.iter();
    let paths: Vec<_> = paths.filter(|path| path.sampled && tids.contains(&path.tid)).collect();
    let samples: u64 = paths.iter().fold(0, |sum, path| path.count.saturating_add(sum));
    let all: u64 = paths.iter().fold(0, |sum, path| path.ns.saturating_add(sum));
    // Time in it, and how far it is from the function that ran, in all that time.
    let mut functions = BTreeMap::<String, (u64, f64)>::new();
    for path in &paths {
        let mut seen = BTreeSet::new();
        let frames = labels(case.run, path.kernel).chain(labels(case.run, path.user));
        for (depth, name) in frames.enumerate().filter(|(_, name)| seen.insert(name.clone())) {
            let (ns, depths) = functions.entry(name).or_default();
            *ns = ns.saturating_add(path.ns);
            *depths += depth as f64 * path.ns as f64;
        }
    }
    let most = functions.into_iter().filter(|(_, (ns, _))| *ns > all / 2);
    let depth = |(_, (ns, depths)): &(String, (u64, f64))| depths / (*ns).max(1) as f64;
    let (name, (ns, _)) = most.min_by(|one, other| depth(one).total_cmp(&depth(other)))?;
    (samples >= SAMPLES).then(|| RequestFunction { name, share: ns as f64 / all.max(1) as f64 })
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, Context};

    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    /// Each request takes 80 ms, of which its thread sleeps in poll for 60, until a time that it has set.
    #[test]
    fn the_largest_part_of_the_slowest_comes_first() {
        let poll = Account::Blocked(Blocked::Poll);
        let mut run = RunBuilder::new().thread(11, 10, &[(USER, SECOND), (poll, 3 * SECOND)]);
        for n in 0..20 {
            let mut wait = interval(11, poll, (100 * n + 10) * MS, 60 * MS, Some(0));
            wait.waker.as_mut().unwrap().context = Context::HardIrq;
            run = run.kept(wait);
        }
        let requests = (0..20).map(|n| request(1, 11, 100 * n, 0, 80)).collect();
        let explanation = crate::explain(&served(run.build(), requests));
        assert!(explanation.findings.is_empty(), "{:?}", explanation.findings);
        let slow = explanation.slow_requests.unwrap();
        assert_eq!((slow.of, slow.mean_ns), (20, 80 * MS));
        let first = &slow.times[0];
        assert_eq!((first.in_queue, first.account, first.by_timer), (false, Some(poll), true));
        assert!((first.share - 0.75).abs() < 0.01, "{slow:?}");
    }

    #[test]
    fn of_requests_that_compute_the_innermost_function_with_most_of_it_is_told() {
        let mut run = RunBuilder::new()
            .thread(11, 10, &[(USER, 3 * SECOND)])
            .sampled_path(10, USER, &["compare", "scan", "execute", "main"], 300)
            .sampled_path(10, USER, &["next_row", "scan", "execute", "main"], 300)
            .sampled_path(10, USER, &["parse", "execute", "main"], 200)
            .build();
        run.sums.paths.iter_mut().for_each(|path| path.tid = 11);
        let requests = (0..20).map(|n| request(1, 11, 100 * n, 0, 80)).collect();
        let slow = crate::explain(&served(run, requests)).slow_requests.unwrap();
        let function = slow.on_cpu.unwrap();
        assert_eq!(function.name, "scan");
        assert!((function.share - 0.75).abs() < 0.01, "{function:?}");
    }

    #[test]
    fn a_run_without_requests_has_none() {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        assert_eq!(crate::explain(&run).slow_requests, None);
    }
}
