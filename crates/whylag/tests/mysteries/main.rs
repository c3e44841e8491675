//! Each mystery is solved without being told anything about it, and is gone with its fix.
//!
//! What the fault cost is known from outside: the programs time their own operations and print
//! that as `truth:`. `make test` records each faulty program for a second and asserts what noise
//! cannot change; how much it lost, what comes first and the fixed twins are for
//! `make test-mysteries`, which sets `WHYLAG_FIGURES`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod barrier_straggler;
mod blocked_log_pipe;
mod cgroup_throttle;
mod close_linger;
mod connect_timeout;
mod core_dump;
mod cpu_runqueue;
mod cputime_clock_threads;
mod dirty_throttle;
mod disk_read;
mod disk_sync;
mod dns_timeout;
mod event_loop_blocked;
mod file_lock;
mod file_major_fault;
mod first_touch;
mod fork_cow;
mod fsync_journal;
mod futex_convoy;
mod healthy;
mod huge_exit;
mod huge_fork;
mod irq_interference;
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
mod page_cache_evicted;
mod priority_inversion;
mod proc_scan_vs_fork;
mod queueing;
mod rate_limit_burst;
mod rcu_sync_fdtable;
mod rt_starvation;
mod seccomp_audit;
mod shm_attach;
mod slow_clocksource;
mod slow_peer;
mod socket_diag_reader;
mod softirq_interference;
mod spin_lock;
mod stopped_or_traced;
mod swap_in;
mod sysv_sem;
mod table;
mod tcp_rto;
mod thundering_herd;
mod tlb_shootdown;
mod turn_taking;
mod udp_rcvbuf_stall;
mod unix_population;
mod worker_pool_full;
mod yield_spin;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::time::Instant;

use common::disturbance::{Figures, RECORDINGS, figures_are_asked_for, recorded};
use common::programs::mystery;
use common::values::Values;
use common::{Lab, lost};
use model::{Account, Finding, Run, Standing};

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

/// The way out of a page fault runs with interrupts off, so that samples of it fall on the program's next
/// instruction: on a virtual machine 0.3 us of each fault of 1.1 us.
const IN_FAULTS: Range<f64> = 0.7..1.15;

/// Faults that come about once a second, or rest on what is read or chosen so often: counters, and
/// which requests are slow.
const RARE: [&str; 6] =
    ["dns-timeout", "nagle-delack", "seccomp-audit", "tcp-rto", "turn-taking", "udp-rcvbuf-stall"];

/// Whom or what the findings of these have to name: a process, a thread, a call, an address.
const WHO: [(&str, &str); 21] = [
    ("blocked-log-pipe", "slow-logger"),
    ("cpu-runqueue", "batch-hog"),
    ("dns-timeout", "127.0.0.1:53"),
    ("file-lock", "deliver-"),
    ("irq-interference", "local_timer"),
    ("many-thread-vfork", "many-thread-vfo"),
    ("membarrier-global", "MEMBARRIER_CMD_GLOBAL"),
    ("mm-reader", "smaps-agent"),
    ("page-cache-evicted", "put out by backup"),
    ("priority-inversion", "camera"),
    ("queueing", "mass-quote"),
    ("rate-limit-burst", "rx-0"),
    ("rcu-sync-fdtable", "dup"),
    ("rt-starvation", "rt-control"),
    ("seccomp-audit", "8 seccomp filters"),
    ("shm-attach", "broker"),
    ("socket-diag-reader", "agent"),
    ("slow-peer", "broker"),
    ("softirq-interference", "net_rx"),
    ("stopped-or-traced", "agent"),
    ("tcp-rto", "SOCKET_FILTER"),
];

/// A recorded mystery.
struct Case {
    run: Run,
    truth: Values,
    findings: Vec<Finding>,
    figures: Figures,
}

impl Case {
    /// Records `name` for two seconds, or for one if that shows its fault and no figure is asked
    /// for.
    fn record(name: &str, follow: bool) -> Option<Case> {
        let is_rare = RARE.iter().any(|cause| name.starts_with(cause));
        let seconds = if is_rare || figures_are_asked_for() { "2" } else { "1" };
        let options: &[&str] = if follow { &["--follow"] } else { &[] };
        Case::record_as(name, options, &[seconds])
    }

    /// The same with other options of 'record', and other arguments of the program.
    fn record_as(name: &str, options: &[&str], arguments: &[&str]) -> Option<Case> {
        let lab = Lab::new()?;
        let program = mystery(name);
        let command = || [program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
        let record = || lab.record(options, command());
        let (recorded, figures) = recorded(record, |recorded| Some(&recorded.run));
        let truth = Values::of(recorded.stdout().lines().last().unwrap());
        let mut answer = lab.explain();
        let findings = serde_json::from_value(answer["findings"].take()).unwrap();
        let case = Case { truth, run: recorded.run, findings, figures };
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
        self.has_all_of_the_workers();
        let unaccounted = self.run.accounts().get(Account::Unaccounted);
        assert!(unaccounted * 200 < self.run.wall_ns(), "{unaccounted} ns unaccounted");
        let mut losses = lost(&self.run);
        // A recorder that waits for a CPU itself empties its maps and rings too late, and makes room
        // for threads too late.
        let is_full = |kind: &String| kind.ends_with("full)") || kind.ends_with("(no room)");
        if self.figures.disturbed().is_some() && losses.keys().any(is_full) {
            self.figures.is_undisturbed(&format!("nothing is lost: {losses:?}"));
            losses.retain(|kind, _| !is_full(kind));
        }
        assert_eq!(losses, BTreeMap::new());
    }

    /// The accounts have at least the life, the CPU time and the waiting for a CPU that the program
    /// measured of its workers (CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, schedstat): these are
    /// among the watched threads.
    fn has_all_of_the_workers(&self) {
        let accounts = self.run.accounts();
        // The kernel's clock does not take interrupts out.
        let on_cpu = accounts.sum_of(|account| {
            let interrupted = [Account::HardIrq, Account::SoftIrq, Account::Stolen];
            account.is_running() || interrupted.contains(&account)
        });
        let for_cpu = accounts.sum_of(Account::is_waiting_for_cpu);
        let measured = [("wall_ns", accounts.total()), ("cpu_ns", on_cpu), ("runq_ns", for_cpu)];
        // The kernel counts a thread as running from before a switch reaches the recorder until
        // after: about a microsecond each here (tcp-rto, 13 % of its little CPU time), up to six where
        // the CPU was idle (disk-sync-fixed), and ten where other programs empty the caches (tcp-rto
        // beside two that go through 64 MiB each: its own CPU time is three times as much, too).
        let switches = self.run.threads.iter().map(|thread| thread.sleeps + thread.preemptions);
        let at_a_switch = if self.figures.disturbed().is_some() { 24_000 } else { 8_000 };
        let at_switches = at_a_switch * switches.sum::<u64>();
        // A wait for a CPU whose beginning or end nobody reported counts as something else, and is counted:
        // up to four in two seconds of two processes that hand a lock to each other. Each may be as long as
        // the longest that was reported: a slice or two of 3 ms, or what softirqs take.
        let hidden = self.run.losses.by_kind();
        let hidden = hidden.get("wakeups and switches (hidden by the host)").copied().unwrap_or(0);
        for (key, ours) in measured {
            let theirs = self.truth.get(key);
            let unseen = if key == "runq_ns" { hidden * self.longest_for_cpu_ns() } else { 0 };
            let is_all = ours + theirs / 20 + 5_000_000 + at_switches + unseen >= theirs;
            assert!(is_all, "{key}: {ours} of {theirs} ns: {}", self.summary());
        }
    }

    /// The longest wait for a CPU that was kept; at least two slices.
    fn longest_for_cpu_ns(&self) -> u64 {
        let waits = self.run.outliers.iter();
        let waits = waits.map(|o| o.breakdown.sum_of(Account::is_waiting_for_cpu));
        waits.max().unwrap_or(0).max(6_000_000)
    }

    /// Part of the program's wall time.
    fn share_of_wall(&self, ns: u64) -> f64 {
        ns as f64 / self.truth.get("wall_ns") as f64
    }

    /// How a cause stands, found or not.
    fn standing(&self, cause: &str) -> Standing {
        explain::why_not(&self.run, cause).unwrap().standing
    }

    /// The program says that its fault cost it next to nothing.
    fn is_healthy(&self) -> bool {
        self.share_of_wall(self.truth.get("lost_ns")) < 0.05
    }

    /// It waited for a CPU for more than twice what its fault cost it, by the kernel's count: the recordings of
    /// other tests had the CPUs, and the fault is small beside that. Where want of a CPU is the fault, both are
    /// the same.
    fn was_kept_from_cpus(&self) -> bool {
        self.truth.get("runq_ns") > 2 * self.truth.get("lost_ns")
    }
}

/// A recording of the faulty program in which its cause is claimed.
fn solve(mystery: &Mystery) -> Option<Case> {
    let (case, began) = claimed(mystery)?;
    if figures_are_asked_for() {
        figures_are_right(mystery, &case, began);
        is_gone_with_its_fix(mystery);
    }
    Some(case)
}

/// The fault happens, and its cause is among those that are claimed. Only where other programs take
/// much of the CPUs, or the recordings of other tests do, may that fail. A program that says itself that its fault did not come about (its
/// sends were too slow for its limit, its two jobs never ran at once) is recorded again; if it never
/// does there is nothing to find, which `make test-mysteries` does not accept of a quiet machine.
fn claimed(mystery: &Mystery) -> Option<(Case, Instant)> {
    for number in 1.. {
        let began = Instant::now();
        let case = Case::record(&format!("{}-faulty", mystery.cause), mystery.follow)?;
        let Err(why) = is_claimed(mystery, &case) else { return Some((case, began)) };
        println!("recording {number} of {RECORDINGS}: {why}");
        let came_about = !case.is_healthy() && !case.was_kept_from_cpus();
        assert!(!came_about || case.figures.disturbed().is_some(), "{why}");
        if number < RECORDINGS {
            continue;
        }
        let what = format!("{} is claimed", mystery.cause);
        if case.figures.disturbed().is_some() {
            case.figures.is_undisturbed(&what);
        } else {
            assert!(!figures_are_asked_for(), "{why}");
            println!("not judged: {what}: {why}");
        }
        return None;
    }
    None
}

fn is_claimed(mystery: &Mystery, case: &Case) -> Result<(), String> {
    if case.is_healthy() {
        return Err(format!("the fault did not happen: {}", case.summary()));
    }
    match case.standing(mystery.cause) {
        Standing::Finding { .. } => {
            is_complete(mystery, case);
            Ok(())
        }
        Standing::BelowFloor { claimed_ns, .. } if claimed_ns > 0 => Ok(()),
        Standing::BelowFloor { because, .. } => Err(format!("{because}: {}", case.summary())),
        Standing::Absent { missing: because } | Standing::NotLookedFor { because } => {
            Err(format!("{because}: {}", case.summary()))
        }
    }
}

fn figures_are_right(mystery: &Mystery, case: &Case, began: Instant) {
    let what = format!("{} comes first, with what it cost", mystery.cause);
    if !case.figures.judge(&what) {
        return;
    }
    table::add(mystery.cause, case, began);
    if part_named(mystery, case) {
        return;
    }
    // Evidence of a disturbance is not complete: one recording that misses is outvoted by two that
    // do not.
    for _ in 0..2 {
        let again = Case::record(&format!("{}-faulty", mystery.cause), mystery.follow).unwrap();
        if again.figures.judge(&what) {
            assert!(part_named(mystery, &again), "the second that misses: {}", again.summary());
        }
    }
}

fn is_gone_with_its_fix(mystery: &Mystery) {
    let cause = mystery.cause;
    let Some(case) = Case::record(&format!("{cause}-fixed"), mystery.follow) else { return };
    if !case.figures.judge(&format!("{cause} is gone with its fix")) {
        return;
    }
    let found = case.findings.iter().find(|finding| finding.cause == cause);
    let found = found.map_or(0.0, |finding| case.share_of_wall(finding.lost_ns));
    let truth = case.share_of_wall(case.truth.get("lost_ns"));
    assert!(found < truth + 0.05, "{found:.3} of the wall time: {}", case.summary());
    if case.is_healthy() {
        let first = case.findings.first().map(|finding| finding.cause.as_str());
        assert!(first != Some(cause), "{}", case.summary());
    }
}

/// Findings of which either may come first: as large as this part of the largest.
const ALIKE: f64 = 0.9;

/// Checks that the cause comes first, whole; true if what it says was lost is the right part of the
/// truth.
fn part_named(mystery: &Mystery, case: &Case) -> bool {
    let largest = case.findings.first().expect("nothing found");
    // A process that costs as much to make as to end (huge-exit) has two causes; either may come first.
    let leads = |finding: &&Finding| finding.lost_ns as f64 >= largest.lost_ns as f64 * ALIKE;
    let leading = case.findings.iter().take_while(leads);
    let first = leading.into_iter().find(|finding| finding.cause == mystery.cause);
    let first = first.unwrap_or_else(|| panic!("it does not lead: {}", case.summary()));
    // Fewer than ten long waits halve it, and an event that the host hides takes a little more.
    assert!(first.confidence > 0.4, "{:?}", first.doubts);
    let part = first.lost_ns as f64 / case.truth.get("lost_ns") as f64;
    println!("{part:.2} of the truth: {}", case.summary());
    mystery.part.contains(&part)
}

/// The finding has all that a reader needs, names who did it, and excludes its look-alikes where they
/// are not found, too.
fn is_complete(mystery: &Mystery, case: &Case) {
    let of_cause = |cause: &str| case.findings.iter().find(|finding| finding.cause == cause);
    let finding = of_cause(mystery.cause).expect("explain and --why-not agree");
    assert!(!finding.evidence.is_empty());
    assert!(!finding.fix.is_empty() && !finding.reproduce.is_empty() && !finding.verify.is_empty());
    let chain = finding.chain.iter().map(|link| link.text.as_str());
    let mut texts = chain.chain(finding.evidence.iter().map(|evidence| evidence.text.as_str()));
    if let Some((_, who)) = WHO.iter().find(|(cause, _)| *cause == mystery.cause) {
        // Where others take much of the CPUs, it may be one of them.
        if !texts.any(|text| text.contains(who)) {
            let is_quiet = case.figures.is_undisturbed(&format!("{} names {who}", mystery.cause));
            assert!(!is_quiet, "{who}: {:#?}", finding.chain);
        }
    }
    for other in mystery.ruled_out {
        let causes = finding.ruled_out.iter().map(|r| (&r.cause, &r.because));
        let in_words = finding.excluded.iter().map(|e| (&e.what, &e.because));
        let found = causes.chain(in_words).find(|(what, _)| what == other);
        let is_excluded = found.is_some_and(|(_, because)| !because.is_empty());
        // A CPU makes too many calls to record all of them for longer than 2 seconds.
        let mut undecided = finding.not_ruled_out.iter().filter(|one| one.cause == *other);
        let is_undecided = undecided.any(|one| one.because.contains("(recorded for the first "));
        let is_said = is_excluded || is_undecided || of_cause(other).is_some();
        assert!(is_said, "{other}: {:?}", finding.ruled_out);
    }
}
