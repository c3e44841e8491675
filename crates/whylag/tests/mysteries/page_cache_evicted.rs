use crate::{EXACT, Mystery, solve};

#[test]
fn page_cache_evicted() {
    solve(&Mystery {
        cause: "page-cache-evicted",
        follow: false,
        part: EXACT,
        ruled_out: &["disk-read", "want of memory"],
    });
}
