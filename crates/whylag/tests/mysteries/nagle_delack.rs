use crate::{EXACT, Mystery, solve};

#[test]
fn nagle_delack() {
    solve(&Mystery {
        cause: "nagle-delack",
        follow: false,
        part: EXACT,
        ruled_out: &["a slow server"],
    });
}
