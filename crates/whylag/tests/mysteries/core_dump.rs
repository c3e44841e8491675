use crate::{EXACT, Mystery, solve};

#[test]
fn core_dump() {
    solve(&Mystery {
        cause: "core-dump",
        follow: true,
        part: EXACT,
        ruled_out: &["huge-exit", "fsync-journal", "memcg-reclaim"],
    });
}
