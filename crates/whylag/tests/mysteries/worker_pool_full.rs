use crate::{Mystery, solve};

#[test]
fn worker_pool_full() {
    // Only time in which one of the requests waited that are kept.
    solve(&Mystery {
        cause: "worker-pool-full",
        follow: false,
        part: 0.5..1.15,
        ruled_out: &["cpu-runqueue"],
    });
}
