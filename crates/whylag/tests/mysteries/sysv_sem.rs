//! The time in the lock, by samples. The truth has what else is slower while another job uses the table,
//! too: cache lines that go to and fro.

use crate::{Mystery, solve};

#[test]
fn sysv_sem() {
    solve(&Mystery {
        cause: "sysv-sem",
        follow: true,
        part: 0.65..1.15,
        ruled_out: &["mmap-lock", "cpu-runqueue"],
    });
}
