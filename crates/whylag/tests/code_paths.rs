//! Time by kernel code path agrees with what the program measures itself, and with the accounts.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::OnceLock;

use common::disturbance::{Figures, undisturbed};
use common::programs::program;
use common::values::Values;
use common::{Lab, Recorded};
use model::{Account, Blocked, PathSum, Run, Syscall};

fn passes(run: &Run, path: &PathSum, function: &str) -> bool {
    let stack = path.kernel.and_then(|id| run.stacks.get(&id));
    stack.is_some_and(|s| s.frames.iter().any(|f| f.symbol.as_deref() == Some(function)))
}

fn sum(run: &Run, which: impl Fn(&PathSum) -> bool) -> f64 {
    run.sums.paths.iter().filter(|path| which(path)).map(|path| path.ns as f64).sum()
}

fn close(found: f64, truth: f64, within: f64) {
    assert!((found / truth - 1.0).abs() < within, "found {found}, truth {truth}");
}

/// The program, recorded once for both tests.
fn recorded() -> Option<&'static (Recorded, Figures)> {
    static RECORDED: OnceLock<Option<(Recorded, Figures)>> = OnceLock::new();
    let record = || {
        let lab = Lab::new()?;
        let record = || lab.record(&[], [program("code_paths")]);
        Some(undisturbed(record, |recorded| Some(&recorded.run)))
    };
    RECORDED.get_or_init(record).as_ref()
}

/// Sleeps whose end was not reported: they are in the accounts, not in the sums by code path.
fn unseen(run: &Run) -> u64 {
    let losses = run.losses.by_kind();
    losses.get("wakeups and switches (hidden by the host)").copied().unwrap_or(0)
}

#[test]
fn time_by_code_path_is_what_the_program_measured() {
    let Some((recorded, figures)) = recorded() else { return };
    let (run, truth) = (&recorded.run, Values::of(recorded.stdout()));

    let faults = sum(run, |p| p.sampled && passes(run, p, "asm_exc_page_fault"));
    let membarrier = |p: &PathSum| !p.sampled && p.call == Syscall::named("membarrier");
    if figures.judge("time by code path is what the program measured") {
        // On a CPU, by samples: about 1,000 of them here, so 3 % are the standard error.
        close(faults, truth.get("faults") as f64, 0.15);
        // Asleep, exactly; the program's clock also has the way there and the wait for a CPU.
        close(sum(run, membarrier), truth.get("membarriers") as f64, 0.1);
    }
    assert!(faults > 0.0 && sum(run, membarrier) <= truth.get("membarriers") as f64);
    assert!(run.sums.paths.iter().filter(|p| membarrier(p)).all(|p| passes(
        run,
        p,
        "__x64_sys_membarrier"
    )));
    let sleeps: u64 = run.sums.paths.iter().filter(|p| membarrier(p)).map(|p| p.count).sum();
    assert!(sleeps <= 20 && sleeps + unseen(run) >= 20, "{sleeps} sleeps of 20");
    let failed = run.sums.call_errors.iter().find(|e| Some(e.call) == Syscall::named("read"));
    assert_eq!(failed.map(|e| (e.errno, e.count)), Some((11, truth.get("failures"))));
}

#[test]
fn code_paths_sum_to_the_accounts() {
    let Some((recorded, figures)) = recorded() else { return };
    let (run, accounts) = (&recorded.run, recorded.run.accounts());
    let uninterruptible = Account::Blocked(Blocked::Uninterruptible);
    let asleep = sum(run, |p| p.account == uninterruptible);
    let sleeps: u64 =
        run.sums.paths.iter().filter(|p| p.account == uninterruptible).map(|p| p.count).sum();
    assert!(sleeps > 0 && asleep <= accounts.get(uninterruptible) as f64 * 1.02);
    if unseen(run) == 0 {
        close(asleep, accounts.get(uninterruptible) as f64, 0.02);
    }
    if figures.judge("samples of running sum to the accounts") {
        let running = accounts.sum_of(Account::is_running) as f64;
        close(sum(run, |p| p.sampled && p.account.is_running()), running, 0.1);
    }
}
