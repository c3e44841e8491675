use crate::{EXACT, Mystery, solve};

#[test]
fn file_lock() {
    solve(&Mystery {
        cause: "file-lock",
        follow: false,
        part: EXACT,
        ruled_out: &["futex-convoy", "cpu-runqueue", "fsync-journal"],
    });
}
