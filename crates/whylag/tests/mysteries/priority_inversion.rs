use crate::{EXACT, Mystery, solve};

#[test]
fn priority_inversion() {
    solve(&Mystery {
        cause: "priority-inversion",
        follow: false,
        part: EXACT,
        ruled_out: &["futex-convoy", "cpu-runqueue"],
    });
}
