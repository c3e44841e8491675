use crate::{EXACT, Mystery, solve};

#[test]
fn queueing() {
    solve(&Mystery { cause: "queueing", follow: false, part: EXACT, ruled_out: &["cpu-runqueue"] });
}
