use crate::{EXACT, Mystery, solve};

#[test]
fn first_touch() {
    solve(&Mystery {
        cause: "first-touch",
        follow: false,
        part: EXACT,
        ruled_out: &["malloc-trim", "fork-cow", "file-major-fault"],
    });
}
