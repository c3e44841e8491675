use crate::Case;
use crate::common::disturbance::figures_are_asked_for;

/// The program's threads lose little time by it; what it loses are datagrams.
#[test]
fn udp_rcvbuf_stall() {
    let Some(case) = Case::record("udp-rcvbuf-stall-faulty", false) else { return };
    let missing = case.truth.get("dropped");
    assert!(missing > 100, "the fault did not happen: {}", case.summary());
    let sockets = &case.run.sockets;
    let dropped: u64 = sockets.drops.iter().map(|drops| drops.count).sum();
    // Whatever else runs: also where the socket is found when its queue is full already.
    assert!(dropped >= missing, "{dropped} of {missing}");
    // Of what was dropped before its socket was found only the number is known.
    let has_reason: Vec<_> = sockets.drops.iter().map(|drops| !drops.reason.is_empty()).collect();
    assert!(has_reason.is_sorted() && has_reason.contains(&true), "{:?}", sockets.drops);
    for drops in &sockets.drops {
        assert!(["", "SOCKET_RCVBUFF"].contains(&drops.reason.as_str()), "{drops:?}");
        assert!(drops.filling_ns <= drops.first_ns && drops.first_ns <= drops.last_ns);
    }
    // The counts per second and the bursts are of the same packets.
    assert_eq!(sockets.queues.iter().map(|second| second.drops).sum::<u64>(), dropped);
    let fullest = sockets.queues.iter().max_by_key(|second| second.receive.max).unwrap();
    assert!(fullest.receive.max * 10 > fullest.receive.limit * 9, "{fullest:?}");

    let found = case.findings.iter().find(|finding| finding.cause == "udp-rcvbuf-stall");
    let found = found.unwrap_or_else(|| panic!("{}", case.summary()));
    let trigger = &found.chain.last().unwrap().text;
    assert!(trigger.contains("feed-0") && trigger.contains("running:mmap"), "{trigger}");
    if !figures_are_asked_for() {
        return;
    }
    if case.figures.judge("udp-rcvbuf-stall took as long as the receiver says") {
        // What is dropped after the last datagram that is read is no gap to the receiver.
        assert!(dropped - missing < missing / 2, "{dropped} of {missing}");
        let part = found.lost_ns as f64 / case.truth.get("lost_ns") as f64;
        assert!((0.5..1.3).contains(&part), "{part:.2} of the truth: {}", case.summary());
    }

    let Some(case) = Case::record("udp-rcvbuf-stall-fixed", false) else { return };
    if !case.figures.judge("udp-rcvbuf-stall is gone with its fix") {
        return;
    }
    assert_eq!(case.truth.get("dropped"), 0, "{}", case.summary());
    assert!(case.run.sockets.drops.is_empty(), "{:?}", case.run.sockets.drops);
    assert!(case.findings.iter().all(|f| f.cause != "udp-rcvbuf-stall"), "{}", case.summary());
}
