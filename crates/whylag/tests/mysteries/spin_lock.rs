use crate::{EXACT, Mystery, solve};

#[test]
fn spin_lock() {
    // `part`: how much of the program's own `lost_ns` the finding has to claim, if WHYLAG_FIGURES is
    // set. If the finding has to name a process or a thread, add it to WHO in main.rs.
    solve(&Mystery { cause: "spin-lock", follow: false, part: EXACT, ruled_out: &[] });
}
