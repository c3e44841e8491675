use crate::{EXACT, Mystery, solve};

#[test]
fn yield_spin() {
    solve(&Mystery {
        cause: "yield-spin",
        follow: false,
        part: EXACT,
        ruled_out: &["futex-convoy", "cpu-runqueue"],
    });
}
