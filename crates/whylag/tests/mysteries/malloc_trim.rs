use crate::{IN_FAULTS, Mystery, solve};

#[test]
fn malloc_trim() {
    solve(&Mystery {
        cause: "malloc-trim",
        follow: false,
        part: IN_FAULTS,
        ruled_out: &["first-touch", "mmap-lock", "fork-cow"],
    });
}
