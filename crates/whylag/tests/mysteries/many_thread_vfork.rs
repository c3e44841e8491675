use crate::{EXACT, Mystery, solve};

#[test]
fn many_thread_vfork() {
    solve(&Mystery {
        cause: "many-thread-vfork",
        follow: true,
        part: EXACT,
        ruled_out: &["huge-exit", "fork-cow"],
    });
}
