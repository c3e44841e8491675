use crate::{EXACT, Mystery, solve};

#[test]
fn membarrier_global() {
    solve(&Mystery {
        cause: "membarrier-global",
        follow: false,
        part: EXACT,
        ruled_out: &["rcu-sync-fdtable", "registering for an expedited command", "cpu-runqueue"],
    });
}
