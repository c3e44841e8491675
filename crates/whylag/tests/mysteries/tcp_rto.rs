use std::collections::BTreeSet;

use model::TimeoutKind;

use crate::{Case, EXACT, Mystery, solve};

#[test]
fn tcp_rto() {
    let faulty = solve(&Mystery {
        cause: "tcp-rto",
        follow: false,
        part: EXACT,
        ruled_out: &["nagle-delack", "a slow server", "fast retransmission"],
    });
    if let Some(faulty) = faulty {
        timeouts_are_recorded_with_what_the_timer_was_set_to(&faulty);
    }
}

/// What the kernel told of its timers, by socket.
fn timeouts_are_recorded_with_what_the_timer_was_set_to(case: &Case) {
    let seconds = || case.run.sockets.queues.iter();
    let timeouts: Vec<_> = seconds().flat_map(|s| &s.resent.timeouts).collect();
    let is_timer = |kind| kind == TimeoutKind::Retransmission;
    let timers: Vec<_> = timeouts.iter().filter(|timeout| is_timer(timeout.kind)).collect();
    // One outage of 50 ms, and one of 300 ms: longer than the timer is set to at first.
    assert!(timers.len() >= 2, "{timeouts:?}");
    // It is set by the round trips so far, which a busy machine makes longer.
    let set_to: BTreeSet<u64> = timers.iter().map(|timeout| timeout.after_ns).collect();
    let is_first = |ns: &&u64| (200_000_000..300_000_000).contains(*ns);
    assert!(set_to.iter().filter(is_first).any(|ns| set_to.contains(&(2 * ns))), "{timers:?}");
    let segments: u64 = seconds().map(|second| second.resent.segments).sum();
    assert!(segments >= timeouts.len() as u64, "{segments} of {timeouts:?}");
}
