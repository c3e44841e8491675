use crate::{EXACT, Mystery, solve};

#[test]
fn swap_in() {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        println!(
            "skipped: swap-in: this host has no swap, and tests change no setting of the system"
        );
        return;
    }
    solve(&Mystery {
        cause: "swap-in",
        follow: false,
        part: EXACT,
        ruled_out: &["file-major-fault"],
    });
}
