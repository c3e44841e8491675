//! One round of one rung: so many workers, measured together for a short time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clock::monotonic_ns;
use model::{BenchOutlier, BenchRound, Histogram, WorkerKind};

use crate::area::{Area, PRECISION};
use crate::cases::{Benchmark, Prepared};
use crate::clock::Clock;
use crate::{Error, measure, spin, stop};

/// How to run a round.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many workers.
    pub workers: u32,
    /// Of which kind.
    pub kind: WorkerKind,
    /// This long; the operation that is under way then is finished.
    pub time: Duration,
    /// Worker i on the i-th CPU (modulo the CPUs there are).
    pub pin: bool,
    /// The clock.
    pub clock: Clock,
    /// Its smallest step, ns.
    pub clock_step_ns: u64,
}

/// What a round measured.
pub struct Round {
    /// When and how fast.
    pub summary: BenchRound,
    /// Operations of all workers.
    pub operations: u64,
    /// From the first worker's first operation to the last one's last.
    pub wall_ns: u64,
    /// CPU time in user mode, all workers.
    pub user_ns: u64,
    /// CPU time in the kernel, all workers.
    pub system_ns: u64,
    /// Ready to run, but without a CPU, all workers.
    pub queued_ns: Option<u64>,
    /// Single operations.
    pub single: Histogram,
    /// Two operations together.
    pub double: Histogram,
    /// The longest.
    pub outliers: Vec<BenchOutlier>,
}

/// Workers that are not ready after this have hung.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a round is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Name of every worker's thread, by which a recording knows them.
pub const WORKER_NAME: &str = "bench-worker";

/// Runs a round of `case` on what it prepared.
pub fn run(case: &'static Benchmark, prepared: &dyn Prepared, plan: &Plan) -> Result<Round, Error> {
    let area = Area::new(plan.workers as usize)?;
    let reference_ns = spin::reference();
    let started_ns = match plan.kind {
        WorkerKind::Threads => threads(case, prepared, plan, &area)?,
        WorkerKind::Processes => processes(case, prepared, plan, &area)?,
    };
    for (worker, cell) in area.cells().iter().enumerate() {
        if let Some(why) = cell.failure() {
            return Err(Error::Worker { worker, case: case.id, why });
        }
    }
    // What came in the middle of the round and stayed shows after it.
    let reference_ns = reference_ns.max(spin::reference());
    Ok(collect(&area, plan, started_ns, reference_ns))
}

fn threads(
    case: &'static Benchmark,
    prepared: &dyn Prepared,
    plan: &Plan,
    area: &Area,
) -> Result<u64, Error> {
    std::thread::scope(|scope| {
        for id in 0..plan.workers as usize {
            std::thread::Builder::new()
                .name(WORKER_NAME.to_owned())
                .spawn_scoped(scope, move || work(prepared, plan, area, id))
                .map_err(|source| Error::Os { doing: "starting a worker thread".into(), source })
                .inspect_err(|_| give_up(area))?;
        }
        conduct(case, plan, area, || false)
    })
}

fn processes(
    case: &'static Benchmark,
    prepared: &dyn Prepared,
    plan: &Plan,
    area: &Area,
) -> Result<u64, Error> {
    let mut children = Children(Vec::new());
    let parent = std::process::id();
    for id in 0..plan.workers as usize {
        // SAFETY: this process has no other thread here (see lib.rs), so the child may go on as
        // any program; it leaves by _exit.
        match unsafe { libc::fork() } {
            -1 => return Err(Error::os("starting a worker process")),
            0 => {
                crate::helpers::die_with(parent);
                let _ = rustix::thread::set_name(c"bench-worker");
                work(prepared, plan, area, id);
                // SAFETY: ends this process without running what the parent registered.
                unsafe { libc::_exit(0) };
            }
            pid => children.0.push(pid),
        }
    }
    let started_ns = conduct(case, plan, area, || children.one_has_died())?;
    children.wait();
    Ok(started_ns)
}

fn work(prepared: &dyn Prepared, plan: &Plan, area: &Area, id: usize) {
    if plan.pin {
        spin::bind_to(id);
    }
    match prepared.worker(id) {
        Ok(mut work) => measure::run(area, id, plan.clock, plan.time, work.as_mut()),
        Err(error) => {
            area.cells()[id].fail(&error.to_string());
            area.gate().stop.store(1, Ordering::Relaxed);
            area.gate().ready.fetch_add(1, Ordering::AcqRel);
            area.gate().done.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Lets all workers leave, those that have not come yet, too.
fn give_up(area: &Area) {
    let gate = area.gate();
    gate.stop.store(1, Ordering::Relaxed);
    gate.done.fetch_add(area.cells().len() as u32, Ordering::AcqRel);
    gate.open.store(1, Ordering::Release);
}

/// Opens the gate and watches; returns when it opened.
fn conduct(
    case: &'static Benchmark,
    plan: &Plan,
    area: &Area,
    mut has_died: impl FnMut() -> bool,
) -> Result<u64, Error> {
    let (gate, workers) = (area.gate(), plan.workers as usize);
    let mut died = false;
    let waiting = Instant::now();
    while (gate.ready.load(Ordering::Acquire) as usize) < workers && !died {
        std::thread::sleep(Duration::from_micros(200));
        died = has_died() || waiting.elapsed() > PATIENCE;
    }
    let started_ns = monotonic_ns();
    gate.open.store(1, Ordering::Release);
    while (gate.done.load(Ordering::Acquire) as usize) < workers && !died {
        std::thread::sleep(LOOK);
        died = has_died();
        if stop::requested() {
            gate.stop.store(1, Ordering::Relaxed);
        }
    }
    if died {
        give_up(area);
        if area.cells().iter().all(|cell| cell.failure().is_none()) {
            let why = "it died, or did not become ready".to_owned();
            return Err(Error::Worker { worker: 0, case: case.id, why });
        }
    }
    Ok(started_ns)
}

fn collect(area: &Area, plan: &Plan, started_ns: u64, reference_ns: f64) -> Round {
    let load = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    let cells = area.cells();
    let mut single = Histogram::new(PRECISION);
    let mut double = Histogram::new(PRECISION);
    let mut outliers = Vec::new();
    for (worker, cell) in cells.iter().enumerate() {
        single.merge(&cell.single.read());
        double.merge(&cell.double.read());
        let kept = cell.outliers.iter().map(|(at, ns)| BenchOutlier {
            worker: worker as u32,
            start_ns: load(at),
            ns: load(ns),
        });
        outliers.extend(kept.filter(|kept| kept.ns > 0));
    }
    let operations: u64 = cells.iter().map(|cell| load(&cell.operations)).sum();
    let began_ns = cells.iter().map(|cell| load(&cell.began_ns)).min().unwrap_or(0);
    let ended_ns = cells.iter().map(|cell| load(&cell.ended_ns)).max().unwrap_or(0);
    let wall_ns = ended_ns.saturating_sub(began_ns);
    Round {
        summary: BenchRound {
            started_ns,
            ended_ns,
            median_ns: middle(&single, plan.clock_step_ns),
            rate: operations as f64 * 1e9 / wall_ns.max(1) as f64,
            reference_ns,
        },
        operations,
        wall_ns,
        user_ns: cells.iter().map(|cell| load(&cell.user_ns)).sum(),
        system_ns: cells.iter().map(|cell| load(&cell.system_ns)).sum(),
        queued_ns: cells
            .iter()
            .map(|cell| Some(load(&cell.queued_ns)).filter(|ns| *ns != u64::MAX))
            .sum(),
        single,
        double,
        outliers,
    }
}

/// Median of what a clock with so coarse a step measured, ns. Within a bucket, or within a step of
/// the clock, values are assumed to be evenly spread: otherwise all medians would be equal.
pub fn middle(histogram: &Histogram, clock_step_ns: u64) -> f64 {
    let half = histogram.count() as f64 / 2.0;
    let mut below = 0.0;
    for (low, high, count) in histogram.ranges() {
        let count = count as f64;
        if below + count >= half {
            let width = (high - low + 1).max(clock_step_ns) as f64;
            return low as f64 + width * ((half - below) / count);
        }
        below += count;
    }
    0.0
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
