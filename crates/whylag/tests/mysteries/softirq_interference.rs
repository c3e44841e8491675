use crate::{Mystery, solve};

#[test]
fn softirq_interference() {
    solve(&Mystery {
        cause: "softirq-interference",
        follow: false,
        // As of hardware interrupts, the way into the kernel and out is in no tracepoint, nor are the
        // caches that the program finds cold after it: it was up to a quarter.
        part: 0.65..1.15,
        ruled_out: &["packets of the threads' own", "hardware interrupts", "cpu-runqueue"],
    });
}
