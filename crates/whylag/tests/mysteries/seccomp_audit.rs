use crate::{EXACT, Mystery, solve};

#[test]
fn seccomp_audit() {
    solve(&Mystery { cause: "seccomp-audit", follow: false, part: EXACT, ruled_out: &[] });
}
