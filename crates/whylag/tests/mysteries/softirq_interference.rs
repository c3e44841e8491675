use crate::{EXACT, Mystery, solve};

#[test]
fn softirq_interference() {
    solve(&Mystery {
        cause: "softirq-interference",
        follow: false,
        part: EXACT,
        ruled_out: &["own-packets", "irq-interference", "cpu-runqueue"],
    });
}
