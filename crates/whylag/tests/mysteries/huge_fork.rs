//! The copy of the page tables, by samples; the truth has all else that a fork does as well.

use crate::{Mystery, solve};

#[test]
fn huge_fork() {
    solve(&Mystery {
        cause: "huge-fork",
        follow: false,
        part: 0.7..1.15,
        ruled_out: &["fork-cow"],
    });
}
