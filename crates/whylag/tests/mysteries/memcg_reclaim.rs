use crate::{EXACT, Mystery, solve};

#[test]
fn memcg_reclaim() {
    solve(&Mystery {
        cause: "memcg-reclaim",
        follow: false,
        part: EXACT,
        ruled_out: &[
            "reclaim for the whole host",
            "reading pages back from swap",
            "dirty-throttle",
        ],
    });
}
