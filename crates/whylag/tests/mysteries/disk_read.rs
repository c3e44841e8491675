use crate::{EXACT, Mystery, solve};

#[test]
fn disk_read() {
    solve(&Mystery {
        cause: "disk-read",
        follow: false,
        part: EXACT,
        ruled_out: &["file-major-fault", "page-cache-evicted"],
    });
}
