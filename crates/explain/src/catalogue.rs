//! The catalogue: every known cause, by what it is about.
//!
//! `make new-cause ID=x GROUP=y` adds one, with its file in `causes/`, its mystery and its test.

use crate::cause::Cause;
use crate::causes::{cpu, files, locks, memory, network, processes, requests, timers};

/// Every known cause.
pub const ALL: &[&Cause] = &[
    &cpu::cpu_runqueue::CAUSE,
    &cpu::yield_spin::CAUSE,
    &cpu::rt_starvation::CAUSE,
    &cpu::cgroup_throttle::CAUSE,
    &cpu::priority_inversion::CAUSE,
    &cpu::softirq_interference::CAUSE,
    &locks::mmap_lock::CAUSE,
    &locks::mm_reader::CAUSE,
    &locks::futex_convoy::CAUSE,
    &locks::file_lock::CAUSE,
    &locks::rcu_sync_fdtable::CAUSE,
    &locks::membarrier_global::CAUSE,
    &locks::thundering_herd::CAUSE,
    &memory::file_major_fault::CAUSE,
    &memory::lazy_binding::CAUSE,
    &memory::first_touch::CAUSE,
    &memory::fork_cow::CAUSE,
    &memory::malloc_trim::CAUSE,
    &memory::ksm_cow::CAUSE,
    &memory::tlb_shootdown::CAUSE,
    &memory::memcg_reclaim::CAUSE,
    &memory::jvm_gc::CAUSE,
    &files::blocked_log_pipe::CAUSE,
    &files::fsync_journal::CAUSE,
    &files::dirty_throttle::CAUSE,
    &files::mmap_file_write::CAUSE,
    &network::udp_rcvbuf_stall::CAUSE,
    &network::socket_diag_reader::CAUSE,
    &network::listen_overflow::CAUSE,
    &network::nagle_delack::CAUSE,
    &network::rate_limit_burst::CAUSE,
    &network::tcp_rto::CAUSE,
    &network::dns_timeout::CAUSE,
    &network::unix_population::CAUSE,
    &processes::huge_exit::CAUSE,
    &processes::core_dump::CAUSE,
    &processes::many_thread_vfork::CAUSE,
    &processes::sysv_sem::CAUSE,
    &processes::shm_attach::CAUSE,
    &processes::stopped_or_traced::CAUSE,
    &processes::proc_scan_vs_fork::CAUSE,
    &timers::cputime_clock_threads::CAUSE,
    &timers::slow_clocksource::CAUSE,
    &timers::timer_ms_rounding::CAUSE,
    &timers::timer_jiffies::CAUSE,
    &timers::timer_proportional::CAUSE,
    &timers::timer_slack::CAUSE,
    &timers::rt_throttling::CAUSE,
    &requests::queueing::CAUSE,
];

/// Those that make ticks late: looked for in what `whylag jitter` measured, and nowhere else.
const OF_TICKS: [&str; 5] = [
    timers::timer_ms_rounding::CAUSE.id,
    timers::timer_jiffies::CAUSE.id,
    timers::timer_proportional::CAUSE.id,
    timers::timer_slack::CAUSE.id,
    timers::rt_throttling::CAUSE.id,
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
