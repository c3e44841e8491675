//! Threads that want a CPU and do not get one, or get less of it than they need.

pub(crate) mod cgroup_throttle;
pub(crate) mod cpu_runqueue;
pub(crate) mod cpu_steal;
pub(crate) mod irq_interference;
pub(crate) mod priority_inversion;
pub(crate) mod rt_starvation;
pub(crate) mod seccomp_audit;
pub(crate) mod softirq_interference;
pub(crate) mod yield_spin;
