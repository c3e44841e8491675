use crate::{IN_FAULTS, Mystery, solve};

#[test]
fn first_touch() {
    solve(&Mystery {
        cause: "first-touch",
        follow: false,
        part: IN_FAULTS,
        ruled_out: &["malloc-trim", "fork-cow", "file-major-fault"],
    });
}
