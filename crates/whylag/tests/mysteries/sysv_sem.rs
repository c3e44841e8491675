use crate::{EXACT, Mystery, solve};

#[test]
fn sysv_sem() {
    solve(&Mystery {
        cause: "sysv-sem",
        follow: true,
        part: EXACT,
        ruled_out: &["mmap-lock", "cpu-runqueue"],
    });
}
