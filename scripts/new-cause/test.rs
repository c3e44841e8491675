use crate::{EXACT, Mystery, solve};

#[test]
fn @NAME@() {
    solve(&Mystery { cause: "@ID@", follow: false, part: EXACT, ruled_out: &[] });
}
