//! What the recorder costs: runs of its programs, counted; their duration, sampled.
//!
//! The kernel can time every run (BPF statistics), but that itself costs two clock reads a run.
//! So it is on in short windows only, and the mean of those is multiplied by the counted runs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags};
use model::{Cost, ProbeCost, RecorderPart};

use crate::Error;
use crate::bpf::{self, cpu};
use crate::parts::{self, PROBES};
use crate::privilege;
use crate::probes::Probes;
use crate::wire::{Loss, Program};

/// Length of a window in which the kernel times the programs.
const WINDOW: Duration = Duration::from_millis(50);
/// From one window to the next.
const PERIOD: Duration = Duration::from_secs(5);
/// The same with a budget, which needs fresher figures.
const PERIOD_WITH_BUDGET: Duration = Duration::from_secs(1);

/// Duration and runs seen in the windows.
type Timed = BTreeMap<Program, (u64, u64)>;

struct Shared {
    timed: Mutex<(Timed, bool)>,
    stop: Condvar,
}

/// The thread that opens the windows.
pub struct CostSampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl CostSampler {
    /// Opens the first window at once.
    pub fn start(probes: &Probes, with_budget: bool) -> Result<CostSampler, Error> {
        let mut programs = Vec::new();
        for program in probes.programs() {
            if let Some(probe) = PROBES.iter().find(|probe| program.name() == probe.program)
                && let Ok(fd) = duplicate(program_fd(&program))
            {
                programs.push((probe.counted, fd));
            }
        }
        let shared = Arc::new(Shared { timed: Mutex::default(), stop: Condvar::new() });
        let period = if with_budget { PERIOD_WITH_BUDGET } else { PERIOD };
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("cost".into())
            .spawn(move || {
                privilege::drop_all_but_timing();
                sample(&programs, period, &theirs);
            })
            .map_err(Error::io("starting the cost thread"))?;
        Ok(CostSampler { shared, thread: Some(thread) })
    }

    /// Ends the thread; what was measured stays.
    pub fn stop(&mut self) {
        lock(&self.shared).1 = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }

    /// Cost so far, from counted runs; the fields that others know are left at zero.
    pub fn cost(&self, probes: &Probes) -> Result<Cost, Error> {
        let runs = runs(probes)?;
        let timed = lock(&self.shared).0.clone();
        let (all_ns, all_runs) =
            timed.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mut cost = Cost::default();
        for (program, runs) in Program::ALL.into_iter().zip(runs) {
            // A program that ran in no window is taken to cost as much as the others on average.
            let (ns, n) =
                timed.get(&program).copied().filter(|one| one.1 > 0).unwrap_or((all_ns, all_runs));
            let ns =
                (u128::from(runs) * u128::from(ns)).checked_div(u128::from(n)).unwrap_or(0) as u64;
            if runs > 0 {
                cost.probes.push(ProbeCost { program: program.name().to_owned(), runs, ns });
            }
            cost.bpf_runs += runs;
            cost.bpf_ns += ns;
        }
        cost.probes.sort_by_key(|probe| std::cmp::Reverse(probe.ns));
        cost.cpu_ns = clock::process_cpu_ns();
        cost.peak_rss_bytes = peak_rss_bytes();
        Ok(cost)
    }
}

impl Drop for CostSampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The part that costs most and can be given up: everything but the threads themselves.
pub fn most_expensive(cost: &Cost, attached: &[RecorderPart]) -> Option<RecorderPart> {
    let ns_of = |part: &RecorderPart| -> u64 {
        let names: BTreeSet<_> = parts::probes(*part).map(|probe| probe.counted.name()).collect();
        cost.probes.iter().filter(|p| names.contains(p.program.as_str())).map(|p| p.ns).sum()
    };
    let sheddable = attached.iter().copied().filter(|part| *part != RecorderPart::Threads);
    sheddable.max_by_key(ns_of).filter(|part| ns_of(part) > 0)
}

fn sample(programs: &[(Program, OwnedFd)], period: Duration, shared: &Shared) {
    loop {
        let window = measure(programs, shared);
        let mut state = lock(shared);
        for (program, ns, runs) in window {
            let sum = state.0.entry(program).or_default();
            sum.0 += ns;
            sum.1 += runs;
        }
        if wait(shared, state, period - WINDOW) {
            return;
        }
    }
}

/// (program, ns, runs) within one window; empty if the kernel refuses to time.
fn measure(programs: &[(Program, OwnedFd)], shared: &Shared) -> Vec<(Program, u64, u64)> {
    // SAFETY: takes no pointer; returns a new descriptor or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Vec::new();
    }
    // SAFETY: a descriptor that the kernel has just given us and nobody else owns.
    let timing = unsafe { OwnedFd::from_raw_fd(fd) };
    let before: Vec<_> = programs.iter().map(|(_, fd)| run_time(fd)).collect();
    wait(shared, lock(shared), WINDOW);
    let after: Vec<_> = programs.iter().map(|(_, fd)| run_time(fd)).collect();
    drop(timing);
    let windows = programs.iter().zip(before.into_iter().zip(after));
    windows
        .map(|((program, _), (b, a))| (*program, a.0.saturating_sub(b.0), a.1.saturating_sub(b.1)))
        .collect()
}

/// Waits; true if it is to stop.
fn wait(shared: &Shared, state: MutexGuard<'_, (Timed, bool)>, time: Duration) -> bool {
    let waited = shared.stop.wait_timeout_while(state, time, |(_, stop)| !*stop);
    waited.unwrap_or_else(PoisonError::into_inner).0.1
}

fn lock(shared: &Shared) -> MutexGuard<'_, (Timed, bool)> {
    shared.timed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// (ns, runs) of a program so far, as far as they were timed.
fn run_time(fd: &OwnedFd) -> (u64, u64) {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` is writable and `length` is its size; no pointers inside are set, so the
    // kernel fills in plain numbers only.
    let failed = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(fd.as_raw_fd(), &raw mut info, &raw mut length)
    };
    if failed == 0 { (info.run_time_ns, info.run_cnt) } else { (0, 0) }
}

/// Of a program that is not loaded below 0.
pub fn program_fd(program: &libbpf_rs::Program<'_>) -> RawFd {
    // SAFETY: the program belongs to an open object; the call only reads a field of it.
    unsafe { libbpf_sys::bpf_program__fd(program.as_libbpf_object().as_ptr()) }
}

/// A descriptor of our own, closed on drop.
fn duplicate(fd: RawFd) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    // SAFETY: `fd` is open: it belongs to a loaded program of the object borrowed by the caller.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Runs of each [`Program`], all CPUs together.
fn runs(probes: &Probes) -> Result<[u64; Program::ALL.len()], Error> {
    Ok(sum(cpus(probes)?.iter().map(|cpu| cpu.runs)))
}

/// Losses of each kind, all CPUs together.
pub fn losses(probes: &Probes) -> Result<[u64; Loss::ALL.len()], Error> {
    Ok(sum(cpus(probes)?.iter().map(|cpu| cpu.losses)))
}

fn sum<const N: usize>(of_cpus: impl Iterator<Item = [u64; N]>) -> [u64; N] {
    of_cpus.fold([0; N], |sum, one| std::array::from_fn(|n| sum[n] + one[n]))
}

/// The state of each CPU.
pub fn cpus(probes: &Probes) -> Result<Vec<cpu>, Error> {
    let map = &probes.skel().maps.cpus;
    let values = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
    let values = values.map_err(Error::bpf("reading counters"))?.unwrap_or_default();
    Ok(values.iter().filter_map(|bytes| bpf::read::<cpu>(bytes)).collect())
}

/// Peak resident memory of this process, bytes.
pub fn peak_rss_bytes() -> u64 {
    let status = procfs::process::Process::myself().and_then(|me| me.status());
    status.ok().and_then(|status| status.vmhwm).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_expensive_part_is_shed_but_never_the_threads() {
        let probe = |program: &str, ns| ProbeCost { program: program.into(), runs: 1, ns };
        let cost = Cost {
            probes: vec![probe("sched_switch", 900), probe("sys_exit", 50), probe("softirq", 40)],
            ..Cost::default()
        };
        let all = [RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Softirqs];
        assert_eq!(most_expensive(&cost, &all), Some(RecorderPart::SystemCalls));
        assert_eq!(
            most_expensive(&cost, &[RecorderPart::Threads, RecorderPart::Softirqs]),
            Some(RecorderPart::Softirqs)
        );
        assert_eq!(most_expensive(&cost, &[RecorderPart::Threads]), None);
    }
}
