use crate::{EXACT, Mystery, solve};

#[test]
fn rt_starvation() {
    solve(&Mystery {
        cause: "rt-starvation",
        follow: false,
        part: EXACT,
        ruled_out: &["cpu-runqueue", "cgroup-throttle"],
    });
}
