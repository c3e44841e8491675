use crate::{EXACT, Mystery, solve};

#[test]
fn stopped_or_traced() {
    solve(&Mystery {
        cause: "stopped-or-traced",
        follow: false,
        part: EXACT,
        ruled_out: &["cgroup-throttle", "cpu-runqueue", "mm-reader"],
    });
}
