use crate::{EXACT, Mystery, solve};

#[test]
fn cputime_clock_threads() {
    solve(&Mystery {
        cause: "cputime-clock-threads",
        follow: false,
        part: EXACT,
        ruled_out: &["slow-clocksource"],
    });
}
