use crate::{EXACT, Mystery, solve};

#[test]
fn unix_population() {
    solve(&Mystery {
        cause: "unix-population",
        follow: false,
        part: EXACT,
        ruled_out: &["rcu-sync-fdtable", "cpu-runqueue"],
    });
}
