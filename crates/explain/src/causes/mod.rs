//! The catalogue of causes: one file each, listed in [`ALL`].
//!
//! A cause is claimed only with its evidence, and says which look-alikes it excludes, and by which
//! datum. To add one: write `causes/<id>.rs` with a `pub const CAUSE`, and add it to [`ALL`].

mod blocked_log_pipe;
mod cgroup_throttle;
mod core_dump;
mod cpu_runqueue;
mod cputime_clock_threads;
mod dirty_throttle;
mod dns_timeout;
mod file_lock;
mod file_major_fault;
mod first_touch;
mod fork_cow;
mod fsync_journal;
mod futex_convoy;
mod huge_exit;
mod jvm_gc;
mod ksm_cow;
mod lazy_binding;
mod listen_overflow;
mod malloc_trim;
mod many_thread_vfork;
mod membarrier_global;
mod memcg_reclaim;
mod mm_reader;
mod mmap_file_write;
mod mmap_lock;
mod nagle_delack;
mod priority_inversion;
mod proc_scan_vs_fork;
mod queueing;
mod rate_limit_burst;
mod rcu_sync_fdtable;
mod rt_starvation;
mod shm_attach;
mod slow_clocksource;
mod socket_diag_reader;
mod softirq_interference;
mod stopped_or_traced;
mod sysv_sem;
mod tcp_rto;
mod thundering_herd;
mod tlb_shootdown;
mod udp_rcvbuf_stall;
mod unix_population;
mod yield_spin;

use model::{Accounts, Evidence, Link, RuledOut};

use crate::case::Case;

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

/// A cause of the catalogue.
pub struct Cause {
    /// Stable name, as in `Finding::cause`.
    pub id: &'static str,
    /// One line for people, true of every run that has it.
    pub title: &'static str,
    /// What to do about it.
    pub fix: &'static str,
    /// A command that produces it.
    pub reproduce: &'static str,
    /// Parts of the recorder without which its evidence is thin (`Capability::part`).
    pub needs: &'static [&'static str],
    /// Other causes of the catalogue that look the same.
    pub look_alikes: &'static [&'static str],
    /// True if it says only what threads waited for (a CPU, a lock): it gets what no mechanism
    /// claims.
    pub symptom: bool,
    /// Looks for it.
    pub(crate) examine: fn(&Case) -> Verdict,
}

/// A claim, or the evidence that was not there.
pub(crate) type Verdict = Result<Claim, Absent>;

/// Why a cause is not claimed: what was looked for and what was seen instead.
#[derive(Debug)]
pub(crate) struct Absent(pub String);

/// A cause says that it took this time.
#[derive(Debug)]
pub(crate) struct Claim {
    /// One line for people, with this run's names.
    pub title: String,
    /// The lost time it explains.
    pub lost: Accounts,
    /// How many waits the time is made of.
    pub waits: u64,
    /// Packets that were lost through it, too: these alone make it worth naming.
    pub dropped: u64,
    /// Its waits look like waiting for work, and it proves that they are not.
    pub takes_idle: bool,
    /// The longest single stall, for causes that strike once; otherwise 0.
    pub longest_ns: u64,
    /// From mechanism to trigger; the engine puts the symptom in front.
    pub chain: Vec<Link>,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// Look-alikes excluded by a datum of this cause; the engine adds those of the catalogue.
    pub ruled_out: Vec<RuledOut>,
    /// What could not be seen.
    pub doubts: Vec<Doubt>,
}

/// A reason for less confidence.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// What confidence is multiplied by, above 0 and below 1.
    pub factor: f64,
    /// The reason.
    pub text: String,
}

impl Claim {
    pub(crate) fn new(title: String, lost: Accounts, waits: u64) -> Self {
        Claim {
            title,
            lost,
            waits,
            dropped: 0,
            takes_idle: false,
            longest_ns: 0,
            chain: Vec::new(),
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Adds the mechanism to the chain.
    fn mechanism(&mut self, text: String) {
        self.chain.push(Link { role: "mechanism".to_owned(), cause: None, text });
    }

    /// Adds the trigger to the chain.
    fn trigger(&mut self, text: String) {
        self.chain.push(Link { role: "trigger".to_owned(), cause: None, text });
    }

    /// Adds another cause of the catalogue to the chain.
    fn behind(&mut self, role: &str, cause: &str, text: String) {
        self.chain.push(Link { role: role.to_owned(), cause: Some(cause.to_owned()), text });
    }

    /// Adds evidence.
    fn saw(&mut self, text: String, source: &str) {
        self.evidence.push(Evidence { text, source: source.to_owned() });
    }

    /// Adds evidence if there is some.
    fn saw_if(&mut self, text: Option<String>, source: &str) {
        if let Some(text) = text {
            self.saw(text, source);
        }
    }

    /// Excludes a look-alike.
    fn rule_out(&mut self, cause: &str, because: String) {
        self.ruled_out.push(RuledOut { cause: cause.to_owned(), because });
    }

    /// Lowers the confidence.
    fn doubt(&mut self, factor: f64, text: &str) {
        self.doubts.push(Doubt { factor, text: text.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
