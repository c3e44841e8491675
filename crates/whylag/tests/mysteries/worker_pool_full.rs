use crate::{Mystery, solve};

#[test]
fn worker_pool_full() {
    // Only time in which one of the requests waited that are kept: half of it in the recorded run of
    // tests/fixtures.
    solve(&Mystery {
        cause: "worker-pool-full",
        follow: false,
        part: 0.3..1.15,
        ruled_out: &["cpu-runqueue"],
    });
}
