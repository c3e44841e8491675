use crate::{EXACT, Mystery, solve};

#[test]
fn slow_peer() {
    solve(&Mystery {
        cause: "slow-peer",
        follow: true,
        part: EXACT,
        ruled_out: &["cpu-runqueue", "cgroup-throttle", "stopped-or-traced"],
    });
}
