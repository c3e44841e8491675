use crate::{EXACT, Mystery, solve};

#[test]
fn rcu_sync_fdtable() {
    solve(&Mystery {
        cause: "rcu-sync-fdtable",
        follow: false,
        part: EXACT,
        ruled_out: &["membarrier-global", "other RCU grace periods", "cpu-runqueue"],
    });
}
