//! What the slowest requests did, where no finding says why they were slow: most threads of a server wait for
//! something to do, and where these spent their time says nothing of its requests.

use std::collections::BTreeMap;

use model::{Account, Finding, MessageTime, RequestTime, SegmentKind, SlowRequests, Syscall};

use crate::case::Case;

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
    Some(SlowRequests { at: of_port.at.clone(), of, mean_ns: total_ns / of.max(1), times })
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
    fn a_run_without_requests_has_none() {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        assert_eq!(crate::explain(&run).slow_requests, None);
    }
}
