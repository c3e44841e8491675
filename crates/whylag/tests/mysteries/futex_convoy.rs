//! The wait for the lock; the truth has the wait for a CPU after it, too.

use crate::{Mystery, solve};

#[test]
fn futex_convoy() {
    solve(&Mystery {
        cause: "futex-convoy",
        follow: false,
        part: 0.6..1.1,
        ruled_out: &["waiting for work"],
    });
}
