//! The catalogue: every known cause.
//!
//! To add one: `make new-cause` lays down its file in `causes/`, or write it and add it to [`ALL`].

use crate::cause::{Cause, Id};
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
use crate::causes::timers::{cputime_clock_threads, slow_clocksource};

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
];

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
