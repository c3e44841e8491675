use crate::{EXACT, Mystery, fills_all_memory, solve};

#[test]
fn direct_compaction() {
    if fills_all_memory("direct-compaction") {
        return;
    }
    solve(&Mystery { cause: "direct-compaction", follow: false, part: EXACT, ruled_out: &[] });
}
