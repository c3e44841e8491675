//! Sends that found no room are counted by socket and second, as the program counted them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Lab;
use common::programs::program;
use common::values::Values;
use model::SocketKind;

#[test]
fn sends_without_room_are_those_that_the_program_counted() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("sends")]);
    let truth = Values::of(recorded.stdout());
    assert!(truth.get("failed") > 0, "other calls fail, too");
    let seconds = &recorded.run.sockets.queues;
    let with_sends: Vec<_> = seconds.iter().filter(|s| s.blocked_sends.count() > 0).collect();
    for second in &with_sends {
        assert_eq!(u64::from(second.socket.fd), truth.get("fd"));
        assert_eq!(second.socket.kind, SocketKind::Unix);
    }
    let sum = |of: fn(&model::BlockedSends) -> u64| {
        with_sends.iter().map(|second| of(&second.blocked_sends)).sum::<u64>()
    };
    assert_eq!(sum(|sends| sends.refused), truth.get("refused"));
    assert_eq!(sum(|sends| sends.waited), truth.get("waited"));
    // Each waited until a reader came, 10 ms later.
    assert!(sum(|sends| sends.waited_ns) >= truth.get("waited") * 5_000_000);
    // A busy machine may divide a burst, or keep the recorder from a look.
    let (bursts, found) = (truth.get("bursts"), sum(|sends| sends.bursts_ns.len() as u64));
    assert!((bursts / 2..=2 * bursts).contains(&found), "{found} of {bursts}");

    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    let told = format!(
        "{} sends found no room on unix (fd {})",
        truth.get("refused") + truth.get("waited"),
        truth.get("fd")
    );
    assert!(shown.contains(&told), "{shown}");
}
