//! The sleeps in fdatasync; making and removing the log takes the disk's time, too.

use crate::{EXACT, Mystery, solve};

#[test]
fn disk_sync() {
    solve(&Mystery {
        cause: "disk-sync",
        follow: false,
        part: EXACT,
        ruled_out: &["fsync-journal"],
    });
}
