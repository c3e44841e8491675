use crate::{EXACT, Mystery, solve};

#[test]
fn cgroup_throttle() {
    solve(&Mystery {
        cause: "cgroup-throttle",
        follow: false,
        part: EXACT,
        ruled_out: &["cpu-runqueue", "rt-starvation"],
    });
}
