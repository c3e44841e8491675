//! The calls of fdatasync: interrupts in them are accounts of their own; making and removing the log
//! takes the disk's time, too.

use crate::{Mystery, solve};

#[test]
fn disk_sync() {
    solve(&Mystery {
        cause: "disk-sync",
        follow: false,
        part: 0.75..1.15,
        ruled_out: &["fsync-journal"],
    });
}
