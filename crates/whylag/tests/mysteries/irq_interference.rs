use crate::{Mystery, solve};

#[test]
fn irq_interference() {
    solve(&Mystery {
        cause: "irq-interference",
        follow: false,
        // What comes before the handler and after it is in no tracepoint: the way into the kernel and
        // out, and in a virtual machine the exits to the hypervisor. It was half of it.
        part: 0.35..1.15,
        ruled_out: &["softirq-interference", "cpu-runqueue", "CPU time stolen by the hypervisor"],
    });
}
