//! Each mystery is solved without being told anything about it, and is gone with its fix.
//!
//! What the fault cost is known from outside: the programs time their own operations and print
//! that as `truth:`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;

use common::programs::mystery;
use common::quiet::alone;
use common::values::Values;
use common::{Lab, lost};
use model::{Account, Finding, Run};

/// Part of the program's own loss that the finding has to explain at least. The rest is CPU time
/// of the operation itself, and waiting for a CPU after it.
const EXPLAINED: f64 = 0.6;
/// In `file-major-fault` two fifths of the loss are the CPU time of the faults.
const EXPLAINED_OF_FAULTS: f64 = 0.4;

/// A recorded mystery.
struct Case {
    run: Run,
    truth: Values,
    findings: Vec<Finding>,
}

impl Case {
    /// Records `name` for two seconds while nobody else uses the machine: beside others every
    /// program waits for a CPU first of all.
    fn record(name: &str) -> Option<Case> {
        let lab = Lab::new()?;
        let program = mystery(name);
        let recorded = alone(|| lab.record(&[], [program.as_os_str(), "2".as_ref()]))?;
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

fn solve(cause: &str, explained: f64) {
    let Some(case) = Case::record(&format!("{cause}-faulty")) else { return };
    assert!(!case.is_healthy(), "the fault did not happen: {}", case.summary());
    let first = case.findings.first().expect("nothing found");
    assert_eq!(first.cause, cause, "{}", case.summary());
    assert!(!first.ruled_out.is_empty() && !first.evidence.is_empty());
    assert!(!first.fix.is_empty() && !first.reproduce.is_empty() && !first.verify.is_empty());
    assert!(first.confidence > 0.5, "{:?}", first.doubts);
    let part = first.lost_ns as f64 / case.truth.get("lost_ns") as f64;
    assert!(part > explained && part < 1.1, "{part:.2} of the truth: {}", case.summary());

    let Some(case) = Case::record(&format!("{cause}-fixed")) else { return };
    let found = case.findings.iter().find(|finding| finding.cause == cause);
    let found = found.map_or(0.0, |finding| case.share_of_wall(finding.lost_ns));
    let truth = case.share_of_wall(case.truth.get("lost_ns"));
    assert!(found < truth + 0.05, "{found:.3} of the wall time: {}", case.summary());
    if case.is_healthy() {
        let first = case.findings.first().map(|finding| finding.cause.as_str());
        assert!(first != Some(cause), "{}", case.summary());
    }
}

#[test]
fn mmap_lock() {
    solve("mmap-lock", EXPLAINED);
}

#[test]
fn mm_reader() {
    solve("mm-reader", EXPLAINED);
}

#[test]
fn cpu_runqueue() {
    solve("cpu-runqueue", EXPLAINED);
}

#[test]
fn futex_convoy() {
    solve("futex-convoy", EXPLAINED);
}

#[test]
fn file_major_fault() {
    solve("file-major-fault", EXPLAINED_OF_FAULTS);
}

#[test]
fn blocked_log_pipe() {
    solve("blocked-log-pipe", EXPLAINED);
}

#[test]
fn healthy() {
    let Some(case) = Case::record("healthy") else { return };
    // The kernel's own count of waiting for a CPU, which is not the program's fault.
    let waited = case.share_of_wall(case.truth.get("runq_ns"));
    for finding in &case.findings {
        let found = case.share_of_wall(finding.lost_ns);
        assert!(found < 0.05 + waited, "{}", case.summary());
    }
}
