//! The wait for the lock; the truth has the wait for a CPU after it and the operation, too.

use crate::{Mystery, solve};

#[test]
fn mm_reader() {
    solve(&Mystery {
        cause: "mm-reader",
        follow: false,
        part: 0.6..1.1,
        ruled_out: &["mmap-lock"],
    });
}
