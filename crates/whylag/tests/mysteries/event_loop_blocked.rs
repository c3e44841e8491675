use crate::{EXACT, Mystery, solve};

#[test]
fn event_loop_blocked() {
    // `part`: how much of the program's own `lost_ns` the finding has to claim, if WHYLAG_FIGURES is
    // set. If the finding has to name a process or a thread, add it to WHO in main.rs.
    solve(&Mystery { cause: "event-loop-blocked", follow: false, part: EXACT, ruled_out: &[] });
}
