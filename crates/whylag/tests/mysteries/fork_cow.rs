use crate::{IN_FAULTS, Mystery, solve};

#[test]
fn fork_cow() {
    solve(&Mystery {
        cause: "fork-cow",
        follow: false,
        part: IN_FAULTS,
        ruled_out: &["first-touch", "malloc-trim", "ksm-cow"],
    });
}
