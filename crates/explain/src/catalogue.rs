//! The catalogue: every known cause.
//!
//! To add one: `make new-cause` lays down its file in `causes/`, or write it and add it to [`ALL`].

use crate::cause::Cause;
use crate::causes::cpu::{
    cgroup_throttle, cpu_runqueue, priority_inversion, rt_starvation, softirq_interference,
    yield_spin,
};
use crate::causes::files::{blocked_log_pipe, dirty_throttle, fsync_journal, mmap_file_write};
use crate::causes::locks::{
    file_lock, futex_convoy, membarrier_global, mm_reader, mmap_lock, rcu_sync_fdtable,
    thundering_herd,
};
use crate::causes::memory::{
    file_major_fault, first_touch, fork_cow, jvm_gc, ksm_cow, lazy_binding, malloc_trim,
    memcg_reclaim, tlb_shootdown,
};
use crate::causes::network::{
    dns_timeout, listen_overflow, nagle_delack, rate_limit_burst, socket_diag_reader, tcp_rto,
    udp_rcvbuf_stall, unix_population,
};
use crate::causes::processes::{
    core_dump, huge_exit, many_thread_vfork, proc_scan_vs_fork, shm_attach, stopped_or_traced,
    sysv_sem,
};
use crate::causes::requests::queueing;
use crate::causes::timers::{
    cputime_clock_threads, rt_throttling, slow_clocksource, timer_jiffies, timer_ms_rounding,
    timer_proportional, timer_slack,
};

/// Every known cause.
pub const ALL: &[&Cause] = &[
    &mmap_lock::CAUSE,
    &mm_reader::CAUSE,
    &cpu_runqueue::CAUSE,
    &futex_convoy::CAUSE,
    &file_major_fault::CAUSE,
    &lazy_binding::CAUSE,
    &first_touch::CAUSE,
    &fork_cow::CAUSE,
    &malloc_trim::CAUSE,
    &ksm_cow::CAUSE,
    &huge_exit::CAUSE,
    &tlb_shootdown::CAUSE,
    &blocked_log_pipe::CAUSE,
    &fsync_journal::CAUSE,
    &memcg_reclaim::CAUSE,
    &core_dump::CAUSE,
    &dirty_throttle::CAUSE,
    &mmap_file_write::CAUSE,
    &cputime_clock_threads::CAUSE,
    &slow_clocksource::CAUSE,
    &many_thread_vfork::CAUSE,
    &sysv_sem::CAUSE,
    &shm_attach::CAUSE,
    &file_lock::CAUSE,
    &yield_spin::CAUSE,
    &rt_starvation::CAUSE,
    &cgroup_throttle::CAUSE,
    &priority_inversion::CAUSE,
    &rcu_sync_fdtable::CAUSE,
    &membarrier_global::CAUSE,
    &stopped_or_traced::CAUSE,
    &thundering_herd::CAUSE,
    &softirq_interference::CAUSE,
    &jvm_gc::CAUSE,
    &queueing::CAUSE,
    &udp_rcvbuf_stall::CAUSE,
    &socket_diag_reader::CAUSE,
    &proc_scan_vs_fork::CAUSE,
    &listen_overflow::CAUSE,
    &nagle_delack::CAUSE,
    &rate_limit_burst::CAUSE,
    &tcp_rto::CAUSE,
    &dns_timeout::CAUSE,
    &unix_population::CAUSE,
    &timer_ms_rounding::CAUSE,
    &timer_jiffies::CAUSE,
    &timer_proportional::CAUSE,
    &timer_slack::CAUSE,
    &rt_throttling::CAUSE,
];

/// Those that make ticks late: looked for in what `whylag jitter` measured, and nowhere else.
const OF_TICKS: [&str; 5] = [
    timer_ms_rounding::CAUSE.id,
    timer_jiffies::CAUSE.id,
    timer_proportional::CAUSE.id,
    timer_slack::CAUSE.id,
    rt_throttling::CAUSE.id,
];

/// True for a cause of late ticks; the others are causes of time that threads lost.
pub(crate) fn is_of_ticks(cause: &Cause) -> bool {
    OF_TICKS.contains(&cause.id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn five_causes_are_of_ticks() {
        assert_eq!(ALL.iter().filter(|cause| is_of_ticks(cause)).count(), OF_TICKS.len());
    }

    #[test]
    fn ids_are_unique_and_look_alikes_are_in_the_catalogue() {
        let ids: BTreeSet<_> = ALL.iter().map(|cause| cause.id).collect();
        assert_eq!(ids.len(), ALL.len());
        for cause in ALL {
            for other in cause.look_alikes {
                assert!(ids.contains(other) && *other != cause.id, "{}: {other}", cause.id);
            }
        }
    }
}
