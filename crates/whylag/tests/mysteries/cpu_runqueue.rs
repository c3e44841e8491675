use crate::{EXACT, Mystery, solve};

#[test]
fn cpu_runqueue() {
    solve(&Mystery {
        cause: "cpu-runqueue",
        follow: false,
        part: EXACT,
        ruled_out: &["cgroup-throttle", "CPU time stolen by the hypervisor"],
    });
}
