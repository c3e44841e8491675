use crate::{EXACT, Mystery, solve};

#[test]
fn fork_cow() {
    solve(&Mystery {
        cause: "fork-cow",
        follow: false,
        part: EXACT,
        ruled_out: &["first-touch", "malloc-trim", "ksm-cow"],
    });
}
