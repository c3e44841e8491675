//! Two fifths of the loss are the CPU time of the faults.

use crate::{Mystery, solve};

#[test]
fn file_major_fault() {
    solve(&Mystery {
        cause: "file-major-fault",
        follow: false,
        part: 0.4..1.1,
        ruled_out: &["lazy-binding"],
    });
}
