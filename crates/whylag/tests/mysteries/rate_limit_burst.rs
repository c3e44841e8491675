use crate::{EXACT, Mystery, solve};

#[test]
fn rate_limit_burst() {
    solve(&Mystery {
        cause: "rate-limit-burst",
        follow: false,
        part: EXACT,
        ruled_out: &["yield-spin", "cgroup-throttle", "cpu-runqueue"],
    });
}
