use crate::{Mystery, solve};

#[test]
fn event_loop_blocked() {
    // Of a turn the time counts from the first arrival on, and of requests those that are kept.
    solve(&Mystery {
        cause: "event-loop-blocked",
        follow: false,
        part: 0.6..1.15,
        ruled_out: &["cpu-runqueue"],
    });
}
