use crate::{EXACT, Mystery, solve};

#[test]
fn fsync_journal() {
    solve(&Mystery {
        cause: "fsync-journal",
        follow: false,
        part: EXACT,
        ruled_out: &["disk-read", "dirty-throttle", "mmap-file-write"],
    });
}
