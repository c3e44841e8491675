//! The fault; the truth has the wait for a CPU after it, too.

use crate::{Mystery, solve};

#[test]
fn file_major_fault() {
    solve(&Mystery {
        cause: "file-major-fault",
        follow: false,
        part: 0.7..1.1,
        ruled_out: &["lazy-binding"],
    });
}
