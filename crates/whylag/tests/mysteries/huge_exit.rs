use crate::{EXACT, Mystery, solve};

#[test]
fn huge_exit() {
    solve(&Mystery {
        cause: "huge-exit",
        follow: true,
        part: EXACT,
        ruled_out: &["core-dump", "many-thread-vfork"],
    });
}
