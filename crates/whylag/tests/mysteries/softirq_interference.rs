use crate::{EXACT, Mystery, solve};

#[test]
fn softirq_interference() {
    solve(&Mystery {
        cause: "softirq-interference",
        follow: false,
        part: EXACT,
        ruled_out: &["packets of the threads' own", "hardware interrupts", "cpu-runqueue"],
    });
}
