use crate::{EXACT, Mystery, solve};

#[test]
fn fsync_journal() {
    solve(&Mystery {
        cause: "fsync-journal",
        follow: false,
        part: EXACT,
        ruled_out: &["waiting for the file's own data", "dirty-throttle", "mmap-file-write"],
    });
}
