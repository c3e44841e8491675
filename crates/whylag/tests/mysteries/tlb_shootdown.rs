use crate::{EXACT, Mystery, solve};

#[test]
fn tlb_shootdown() {
    solve(&Mystery {
        cause: "tlb-shootdown",
        follow: false,
        part: EXACT,
        ruled_out: &["membarrier-global", "mmap-lock", "malloc-trim"],
    });
}
