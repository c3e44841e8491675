use crate::{EXACT, Mystery, solve};

#[test]
fn shm_attach() {
    solve(&Mystery {
        cause: "shm-attach",
        follow: true,
        part: EXACT,
        ruled_out: &["mmap-lock", "cpu-runqueue"],
    });
}
