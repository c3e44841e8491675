//! Each mystery is solved without being told anything about it, and is gone with its fix.
//!
//! What the fault cost is known from outside: the programs time their own operations and print
//! that as `truth:`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

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
mod healthy;
mod huge_exit;
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
mod slow_clock;
mod socket_diag_reader;
mod softirq_interference;
mod stopped_or_traced;
mod sysv_sem;
mod table;
mod tcp_rto;
mod thundering_herd;
mod tlb_shootdown;
mod udp_rcvbuf_stall;
mod unix_population;
mod yield_spin;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::time::Instant;

use common::programs::mystery;
use common::quiet::alone;
use common::values::Values;
use common::{Lab, lost};
use model::{Account, Finding, Run};

/// A mystery: its folder is named after the cause that is to be found.
struct Mystery {
    cause: &'static str,
    /// The program's children are recorded, too.
    follow: bool,
    /// What the finding says it lost, as a part of what the program says it lost.
    part: Range<f64>,
    /// What has to be ruled out: causes by id, other explanations in words.
    ruled_out: &'static [&'static str],
}

/// Within 15 % of the program's own measurement.
const EXACT: Range<f64> = 0.85..1.15;

/// A recorded mystery.
struct Case {
    run: Run,
    truth: Values,
    findings: Vec<Finding>,
}

impl Case {
    /// Records `name` for two seconds while nobody else uses the machine: beside others every
    /// program waits for a CPU first of all.
    fn record(name: &str, follow: bool) -> Option<Case> {
        Case::record_as(name, follow, &["2"])
    }

    /// The same with other arguments than two seconds.
    fn record_as(name: &str, follow: bool, arguments: &[&str]) -> Option<Case> {
        let lab = Lab::new()?;
        let program = mystery(name);
        let options: &[&str] = if follow { &["--follow"] } else { &[] };
        let command = || [program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
        let recorded = alone(|| lab.record(options, command()))?;
        let truth = Values::of(recorded.stdout().lines().last().unwrap());
        let mut answer = lab.explain();
        let findings = serde_json::from_value(answer["findings"].take()).unwrap();
        let case = Case { truth, run: recorded.run, findings };
        case.sums_are_exact();
        println!("{name}: {}", case.summary());
        Some(case)
    }

    fn summary(&self) -> String {
        let findings: Vec<String> = self
            .findings
            .iter()
            .map(|f| format!("{} {:.3} ({} ns)", f.cause, f.share, f.lost_ns))
            .collect();
        let truth = self.truth.get("lost_ns");
        format!("truth {truth} of {} ns, found {}", self.run.wall_ns(), findings.join(", "))
    }

    fn sums_are_exact(&self) {
        for thread in &self.run.threads {
            assert_eq!(thread.accounts.total(), thread.wall_ns(), "{thread:?}");
        }
        let unaccounted = self.run.accounts().get(Account::Unaccounted);
        assert!(unaccounted * 200 < self.run.wall_ns(), "{unaccounted} ns unaccounted");
        assert_eq!(lost(&self.run), BTreeMap::new());
    }

    /// Part of the program's wall time.
    fn share_of_wall(&self, ns: u64) -> f64 {
        ns as f64 / self.truth.get("wall_ns") as f64
    }

    /// The program says that its fault cost it next to nothing.
    fn is_healthy(&self) -> bool {
        self.share_of_wall(self.truth.get("lost_ns")) < 0.05
    }
}

fn solve(mystery: &Mystery) {
    let cause = mystery.cause;
    let (mut inside, mut outside) = (0, Vec::new());
    // A burst of another program shifts one recording; so one that misses is outvoted by two
    // that do not, and two that miss fail.
    while inside == 0 || (!outside.is_empty() && inside < 2) {
        let began = Instant::now();
        let Some(case) = Case::record(&format!("{cause}-faulty"), mystery.follow) else { return };
        let part = is_named(mystery, &case);
        if mystery.part.contains(&part) {
            inside += 1;
            if inside == 1 {
                table::add(cause, &case, began);
            }
        } else {
            outside.push(format!("{part:.2} of the truth: {}", case.summary()));
        }
        assert!(outside.len() < 2, "{outside:#?}");
    }

    let Some(case) = Case::record(&format!("{cause}-fixed"), mystery.follow) else { return };
    let found = case.findings.iter().find(|finding| finding.cause == cause);
    let found = found.map_or(0.0, |finding| case.share_of_wall(finding.lost_ns));
    let truth = case.share_of_wall(case.truth.get("lost_ns"));
    assert!(found < truth + 0.05, "{found:.3} of the wall time: {}", case.summary());
    if case.is_healthy() {
        let first = case.findings.first().map(|finding| finding.cause.as_str());
        assert!(first != Some(cause), "{}", case.summary());
    }
}

/// Checks that the cause comes first, whole; returns what part of the truth it says was lost.
fn is_named(mystery: &Mystery, case: &Case) -> f64 {
    assert!(!case.is_healthy(), "the fault did not happen: {}", case.summary());
    let first = case.findings.first().expect("nothing found");
    assert_eq!(first.cause, mystery.cause, "{}", case.summary());
    assert!(!first.ruled_out.is_empty() && !first.evidence.is_empty());
    assert!(!first.fix.is_empty() && !first.reproduce.is_empty() && !first.verify.is_empty());
    // Fewer than ten long waits halve it, and an event that the host hides takes a little more.
    assert!(first.confidence > 0.4, "{:?}", first.doubts);
    for other in mystery.ruled_out {
        let causes = first.ruled_out.iter().map(|r| (&r.cause, &r.because));
        let in_words = first.excluded.iter().map(|e| (&e.what, &e.because));
        let found = causes.chain(in_words).find(|(what, _)| what == other);
        assert!(found.is_some_and(|(_, because)| !because.is_empty()), "{other}: {first:?}");
    }
    first.lost_ns as f64 / case.truth.get("lost_ns") as f64
}
