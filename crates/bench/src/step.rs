//! One step of a ladder: so many workers, measured together.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use model::Histogram;
use serde::{Deserialize, Serialize};
use stats::{Interval, quantile, resample};

use crate::area::{Area, BLOCKS, PRECISION};
use crate::cases::{Case, Prepared};
use crate::clock::Clock;
use crate::{Error, spin, worker};

/// Threads of one process, or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Threads of one process.
    Threads,
    /// Processes.
    Processes,
}

/// How to run a step.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many workers.
    pub workers: usize,
    /// Of which kind.
    pub kind: Kind,
    /// At most this long.
    pub time: Duration,
    /// Worker i on CPU i (modulo the CPUs there are).
    pub pin: bool,
    /// The clock.
    pub clock: Clock,
}

/// A step and what it measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Workers.
    pub workers: usize,
    /// Threads or processes.
    pub kind: Kind,
    /// Operations of all workers.
    pub operations: u64,
    /// The longest worker's time from the gate to its last operation, ns.
    pub wall_ns: u64,
    /// CPU time in user mode, all workers, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, all workers, ns.
    pub system_ns: u64,
    /// Single operations, the clock's own cost included.
    pub single: Histogram,
    /// Cost of an operation without the clock's: the median of two together minus that of one, ns.
    pub net_ns: f64,
    /// Median of single operations with its 95 % interval over the blocks, ns.
    pub median: Option<Interval>,
    /// Median of single operations by block, ns.
    pub block_medians: Vec<f64>,
    /// Operations per second of all workers by block.
    pub block_rates: Vec<f64>,
    /// The longest single operations: (worker, ns after the gate, ns), longest first.
    pub outliers: Vec<(usize, u64, u64)>,
    /// True if it ended before its time because the interval was tight.
    pub ended_early: bool,
    /// What disturbed it.
    pub warnings: Vec<String>,
}

/// Blocks before which a step does not end early.
const ENOUGH_BLOCKS: usize = 8;
/// Half width of the interval of the median, as a part of it, that is tight enough.
const TIGHT: f64 = 0.002;
/// Workers that are not ready after this have hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a step of `case` on what it prepared.
pub fn run(case: &'static Case, prepared: &dyn Prepared, plan: &Plan) -> Result<Step, Error> {
    let area = Area::new(plan.workers)?;
    let before = (spin::reference(), spin::Disturbance::now());
    let ended_early = match plan.kind {
        Kind::Threads => threads(case, prepared, plan, &area)?,
        Kind::Processes => processes(case, prepared, plan, &area)?,
    };
    for (worker, cell) in area.cells().iter().enumerate() {
        if let Some(why) = cell.failure() {
            return Err(Error::Worker { worker, case: case.id, why });
        }
    }
    let mut step = collect(&area, plan, ended_early);
    step.warnings.extend(spin::drift(before.0, spin::reference()));
    step.warnings.extend(before.1.since());
    Ok(step)
}

fn threads(
    case: &'static Case,
    prepared: &dyn Prepared,
    plan: &Plan,
    area: &Area,
) -> Result<bool, Error> {
    std::thread::scope(|scope| {
        for id in 0..plan.workers {
            scope.spawn(move || work(prepared, plan, area, id));
        }
        conduct(case, plan, area, || false)
    })
}

fn processes(
    case: &'static Case,
    prepared: &dyn Prepared,
    plan: &Plan,
    area: &Area,
) -> Result<bool, Error> {
    let mut children = Children(Vec::new());
    let parent = std::process::id();
    for id in 0..plan.workers {
        // SAFETY: this process has no other thread here (see lib.rs), so the child may go on as
        // any program; it leaves by _exit.
        match unsafe { libc::fork() } {
            -1 => return Err(Error::os("starting a worker process")),
            0 => {
                // SAFETY: plain system calls with constants.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    if libc::getppid() as u32 != parent {
                        libc::_exit(1);
                    }
                }
                work(prepared, plan, area, id);
                // SAFETY: ends this process without running what the parent registered.
                unsafe { libc::_exit(0) };
            }
            pid => children.0.push(pid),
        }
    }
    let ended_early = conduct(case, plan, area, || children.one_has_died())?;
    children.wait();
    Ok(ended_early)
}

fn work(prepared: &dyn Prepared, plan: &Plan, area: &Area, id: usize) {
    if plan.pin {
        spin::bind_to(id);
    }
    match prepared.worker(id) {
        Ok(mut work) => worker::run(area, id, plan.clock, plan.time, work.as_mut()),
        Err(error) => {
            area.cells()[id].fail(&error.to_string());
            area.gate().stop.store(1, Ordering::Relaxed);
            area.gate().ready.fetch_add(1, Ordering::AcqRel);
            area.gate().done.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Opens the gate and watches; true if it ended the step early.
fn conduct(
    case: &'static Case,
    plan: &Plan,
    area: &Area,
    mut has_died: impl FnMut() -> bool,
) -> Result<bool, Error> {
    let gate = area.gate();
    let mut died = false;
    let waiting = Instant::now();
    while (gate.ready.load(Ordering::Acquire) as usize) < plan.workers && !died {
        std::thread::sleep(Duration::from_millis(1));
        died = has_died() || waiting.elapsed() > PATIENCE;
    }
    if died {
        // The others leave at once.
        gate.stop.store(1, Ordering::Relaxed);
        gate.done.fetch_add(plan.workers as u32, Ordering::AcqRel);
    }
    gate.open.store(1, Ordering::Release);
    let mut early = false;
    while (gate.done.load(Ordering::Acquire) as usize) < plan.workers {
        std::thread::sleep(plan.time / BLOCKS as u32 / 2);
        if has_died() {
            died = true;
            gate.stop.store(1, Ordering::Relaxed);
            gate.done.fetch_add(plan.workers as u32, Ordering::AcqRel);
        }
        if !early && is_tight(area) {
            early = true;
            gate.stop.store(1, Ordering::Relaxed);
        }
    }
    if died && area.cells().iter().all(|cell| cell.failure().is_none()) {
        let why = "it died, or did not become ready".to_owned();
        return Err(Error::Worker { worker: 0, case: case.id, why });
    }
    Ok(early)
}

/// Enough blocks are over, and their medians agree.
fn is_tight(area: &Area) -> bool {
    let finished = |block: &usize| {
        area.cells().iter().all(|cell| cell.operations[*block].load(Ordering::Relaxed) > 0)
    };
    let blocks = (0..BLOCKS).take_while(finished).count();
    if blocks < ENOUGH_BLOCKS {
        return false;
    }
    let medians = block_medians(area, blocks);
    let interval = resample::interval(&medians, 0.95, quantile::median);
    // Medians in whole nanoseconds of a bucket may all be equal.
    interval.is_some_and(|i| i.relative_half_width() <= TIGHT)
}

fn block_medians(area: &Area, blocks: usize) -> Vec<f64> {
    let median = |block: usize| {
        let mut all = Histogram::new(PRECISION);
        area.cells().iter().for_each(|cell| all.merge(&cell.single[block].read()));
        all.quantile(0.5).map(|ns| ns as f64)
    };
    (0..blocks).filter_map(median).collect()
}

fn collect(area: &Area, plan: &Plan, ended_early: bool) -> Step {
    let load = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    let cells = area.cells();
    let mut single = Histogram::new(PRECISION);
    let mut double = Histogram::new(PRECISION);
    let mut outliers = Vec::new();
    for (worker, cell) in cells.iter().enumerate() {
        cell.single.iter().for_each(|block| single.merge(&block.read()));
        double.merge(&cell.double.read());
        let kept = cell.outliers.iter().map(|(at, ns)| (worker, load(at), load(ns)));
        outliers.extend(kept.filter(|(.., ns)| *ns > 0));
    }
    outliers.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    outliers.truncate(crate::area::OUTLIERS);
    let block_s = plan.time.as_secs_f64() / BLOCKS as f64;
    let operations = |block: usize| cells.iter().map(|cell| load(&cell.operations[block])).sum();
    let by_block: Vec<u64> = (0..BLOCKS).map(operations).take_while(|n: &u64| *n > 0).collect();
    // The last block of a step that was ended early is not whole.
    let whole = if ended_early { by_block.len().saturating_sub(1) } else { by_block.len() };
    let block_medians = block_medians(area, whole);
    let middle = |histogram: &Histogram| histogram.quantile(0.5).unwrap_or(0) as f64;
    Step {
        workers: plan.workers,
        kind: plan.kind,
        operations: by_block.iter().sum(),
        wall_ns: cells.iter().map(|cell| load(&cell.wall_ns)).max().unwrap_or(0),
        user_ns: cells.iter().map(|cell| load(&cell.user_ns)).sum(),
        system_ns: cells.iter().map(|cell| load(&cell.system_ns)).sum(),
        net_ns: (middle(&double) - middle(&single)).max(0.0),
        median: resample::interval(&block_medians, 0.95, quantile::median),
        block_rates: by_block.iter().take(whole).map(|n| *n as f64 / block_s).collect(),
        block_medians,
        single,
        outliers,
        ended_early,
        warnings: Vec::new(),
    }
}

/// Worker processes; those that are left are killed when dropped.
struct Children(Vec<libc::pid_t>);

impl Children {
    /// Reaps; true if one ended other than by finishing.
    fn one_has_died(&mut self) -> bool {
        let mut died = false;
        self.0.retain(|pid| {
            let mut status = 0;
            // SAFETY: a child of ours, and a valid place for its status.
            let ended = unsafe { libc::waitpid(*pid, &raw mut status, libc::WNOHANG) } == *pid;
            died |= ended && status != 0;
            !ended
        });
        died
    }

    fn wait(&mut self) {
        for pid in self.0.drain(..) {
            // SAFETY: a child of ours; its status is not wanted.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.0 {
            // SAFETY: children that were not waited for, so the pids are still theirs.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        self.wait();
    }
}
