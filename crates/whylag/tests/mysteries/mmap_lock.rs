//! The wait for the lock; the truth has the wait for a CPU after it and the operation, too.

use crate::{Mystery, solve};

#[test]
fn mmap_lock() {
    solve(&Mystery {
        cause: "mmap-lock",
        follow: false,
        part: 0.6..1.1,
        ruled_out: &["mm-reader"],
    });
}
