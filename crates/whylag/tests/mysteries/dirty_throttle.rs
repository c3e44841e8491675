use crate::{EXACT, Mystery, solve};

#[test]
fn dirty_throttle() {
    solve(&Mystery {
        cause: "dirty-throttle",
        follow: false,
        part: EXACT,
        ruled_out: &["fsync-journal", "waiting for the disk", "memcg-reclaim"],
    });
}
