use crate::{EXACT, Mystery, solve};

#[test]
fn mmap_file_write() {
    solve(&Mystery {
        cause: "mmap-file-write",
        follow: false,
        part: EXACT,
        ruled_out: &["file-major-fault", "fsync-journal", "dirty-throttle"],
    });
}
