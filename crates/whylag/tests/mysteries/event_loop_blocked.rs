use crate::{Mystery, solve};

#[test]
fn event_loop_blocked() {
    // Turns are known by the requests that are kept, a hundred a second and the slowest hundredth:
    // in the recorded run of tests/fixtures a third of them.
    solve(&Mystery {
        cause: "event-loop-blocked",
        follow: false,
        part: 0.2..1.15,
        ruled_out: &["cpu-runqueue"],
    });
}
