use crate::{EXACT, Mystery, solve};

#[test]
fn thundering_herd() {
    solve(&Mystery {
        cause: "thundering-herd",
        follow: false,
        part: EXACT,
        ruled_out: &["cpu-runqueue", "futex-convoy"],
    });
}
