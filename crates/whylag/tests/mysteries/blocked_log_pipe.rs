//! The wait for room; the truth has the wait for a CPU after it, too.

use crate::{Mystery, solve};

#[test]
fn blocked_log_pipe() {
    solve(&Mystery { cause: "blocked-log-pipe", follow: false, part: 0.6..1.1, ruled_out: &[] });
}
