use crate::{EXACT, Mystery, fills_all_memory, solve};

#[test]
fn direct_reclaim() {
    if fills_all_memory("direct-reclaim") {
        return;
    }
    solve(&Mystery {
        cause: "direct-reclaim",
        follow: false,
        part: EXACT,
        ruled_out: &["memcg-reclaim"],
    });
}
