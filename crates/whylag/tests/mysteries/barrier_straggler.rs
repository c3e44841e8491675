use crate::{EXACT, Mystery, solve};

#[test]
fn barrier_straggler() {
    solve(&Mystery {
        cause: "barrier-straggler",
        follow: false,
        part: EXACT,
        ruled_out: &["futex-convoy"],
    });
}
