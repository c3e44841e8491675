//! The catalogue: every known cause, by what it is about.
//!
//! `make new-cause ID=x GROUP=y` adds one, with its file in `causes/`, its mystery and its test.

use crate::cause::{Cause, Id};
use crate::causes::{cpu, files, ids, locks, memory, network, processes, requests, timers};

/// Every known cause.
pub const ALL: &[&Cause] = &[
    &cpu::cpu_runqueue::CAUSE,
    &cpu::yield_spin::CAUSE,
    &cpu::rt_starvation::CAUSE,
    &cpu::cgroup_throttle::CAUSE,
    &cpu::priority_inversion::CAUSE,
    &cpu::softirq_interference::CAUSE,
    &cpu::irq_interference::CAUSE,
    &cpu::cpu_steal::CAUSE,
    &cpu::seccomp_audit::CAUSE,
    &locks::mmap_lock::CAUSE,
    &locks::mm_reader::CAUSE,
    &locks::futex_convoy::CAUSE,
    &locks::file_lock::CAUSE,
    &locks::rcu_sync_fdtable::CAUSE,
    &locks::membarrier_global::CAUSE,
    &locks::thundering_herd::CAUSE,
    &locks::barrier_straggler::CAUSE,
    &locks::spin_lock::CAUSE,
    &memory::file_major_fault::CAUSE,
    &memory::lazy_binding::CAUSE,
    &memory::first_touch::CAUSE,
    &memory::fork_cow::CAUSE,
    &memory::malloc_trim::CAUSE,
    &memory::ksm_cow::CAUSE,
    &memory::tlb_shootdown::CAUSE,
    &memory::memcg_reclaim::CAUSE,
    &memory::direct_reclaim::CAUSE,
    &memory::swap_in::CAUSE,
    &memory::direct_compaction::CAUSE,
    &memory::numa_balancing::CAUSE,
    &memory::jvm_gc::CAUSE,
    &memory::safepoint_late::CAUSE,
    &memory::gc_cpu::CAUSE,
    &files::blocked_log_pipe::CAUSE,
    &files::fsync_journal::CAUSE,
    &files::dirty_throttle::CAUSE,
    &files::mmap_file_write::CAUSE,
    &files::disk_sync::CAUSE,
    &files::disk_read::CAUSE,
    &files::page_cache_evicted::CAUSE,
    &network::udp_rcvbuf_stall::CAUSE,
    &network::socket_diag_reader::CAUSE,
    &network::listen_overflow::CAUSE,
    &network::connect_timeout::CAUSE,
    &network::nagle_delack::CAUSE,
    &network::rate_limit_burst::CAUSE,
    &network::tcp_rto::CAUSE,
    &network::dns_timeout::CAUSE,
    &network::unix_population::CAUSE,
    &network::close_linger::CAUSE,
    &processes::huge_exit::CAUSE,
    &processes::core_dump::CAUSE,
    &processes::many_thread_vfork::CAUSE,
    &processes::sysv_sem::CAUSE,
    &processes::shm_attach::CAUSE,
    &processes::stopped_or_traced::CAUSE,
    &processes::proc_scan_vs_fork::CAUSE,
    &processes::huge_fork::CAUSE,
    &timers::cputime_clock_threads::CAUSE,
    &timers::slow_clocksource::CAUSE,
    &timers::timer_ms_rounding::CAUSE,
    &timers::timer_jiffies::CAUSE,
    &timers::timer_proportional::CAUSE,
    &timers::timer_slack::CAUSE,
    &timers::rt_throttling::CAUSE,
    &requests::queueing::CAUSE,
    &requests::slow_peer::CAUSE,
    &requests::turn_taking::CAUSE,
    &requests::event_loop_blocked::CAUSE,
    &requests::worker_pool_full::CAUSE,
];

/// Those that make ticks late: looked for in what `whylag jitter` measured, and nowhere else.
const OF_TICKS: [Id; 5] = [
    ids::TIMER_MS_ROUNDING,
    ids::TIMER_JIFFIES,
    ids::TIMER_PROPORTIONAL,
    ids::TIMER_SLACK,
    ids::RT_THROTTLING,
];

/// True for a cause of late ticks; the others are causes of time that threads lost.
pub(crate) fn is_of_ticks(cause: &Cause) -> bool {
    OF_TICKS.contains(&cause.id)
}

/// The look-alikes of a cause, whichever of each two has the pair, and what tells them apart.
pub fn look_alikes(of: &Cause) -> impl Iterator<Item = (Id, &'static str)> {
    let id = of.id;
    let own = of.look_alikes.iter().map(|other| (other.cause, other.tell_apart));
    let others = ALL.iter().flat_map(move |cause| {
        let back = cause.look_alikes.iter().filter(move |other| other.mutual && other.cause == id);
        back.map(|other| (cause.id, other.tell_apart))
    });
    own.chain(others)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cause::LookAlike;

    #[test]
    fn five_causes_are_of_ticks() {
        assert_eq!(ALL.iter().filter(|cause| is_of_ticks(cause)).count(), OF_TICKS.len());
    }

    #[test]
    fn ids_are_unique_and_each_pair_is_written_once() {
        let ids: BTreeSet<_> = ALL.iter().map(|cause| cause.id).collect();
        assert_eq!(ids.len(), ALL.len());
        let mut seen = BTreeSet::new();
        for cause in ALL {
            for LookAlike { cause: other, tell_apart, .. } in cause.look_alikes {
                assert!(ids.contains(other) && *other != cause.id, "{}: {other}", cause.id);
                let pair = (cause.id.min(*other), cause.id.max(*other));
                assert!(seen.insert(pair), "{} and {other} twice", cause.id);
                assert!(!tell_apart.ends_with('.') && tell_apart.contains(':'), "{tell_apart}");
            }
        }
    }

    #[test]
    fn a_pair_is_found_from_both_sides_if_it_is_mutual() {
        let of = |id| ALL.iter().find(|cause| cause.id == id).map(|cause| look_alikes(cause));
        let has = |id, other| of(id).unwrap().any(|(found, _)| found == other);
        for cause in ALL {
            for other in cause.look_alikes {
                assert!(has(cause.id, other.cause));
                assert_eq!(has(other.cause, cause.id), other.mutual);
            }
        }
    }
}
