use crate::{EXACT, Mystery, solve};

#[test]
fn malloc_trim() {
    solve(&Mystery {
        cause: "malloc-trim",
        follow: false,
        part: EXACT,
        ruled_out: &["first-touch", "mmap-lock", "fork-cow"],
    });
}
