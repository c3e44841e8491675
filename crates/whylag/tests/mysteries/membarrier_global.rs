use crate::{EXACT, Mystery, solve};

#[test]
fn membarrier_global() {
    solve(&Mystery {
        cause: "membarrier-global",
        follow: false,
        part: EXACT,
        ruled_out: &["rcu-sync-fdtable", "membarrier-registration", "cpu-runqueue"],
    });
}
