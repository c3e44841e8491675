use crate::{Mystery, solve};

#[test]
fn turn_taking() {
    // Only waits of requests that are kept: at this rate nearly all of them.
    solve(&Mystery { cause: "turn-taking", follow: false, part: 0.5..1.15, ruled_out: &[] });
}
