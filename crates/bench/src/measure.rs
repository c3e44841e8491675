//! What a worker does, be it a thread or a process: wait at the gate, operate until the time is
//! over, wait until all others have stopped as well.

use std::sync::atomic::Ordering;
use std::time::Duration;

use clock::monotonic_ns;
use rustix::io::Errno;

use crate::area::{Area, Cell};
use crate::clock::Clock;

/// One worker's part of a case.
pub trait Work {
    /// One operation: what is timed.
    fn operate(&mut self) -> Result<(), Errno>;

    /// What an operation needs each time and is not timed.
    fn before(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// What has to be undone each time and is not timed.
    fn after(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// True if two operations may follow each other with nothing between them.
    fn is_repeatable(&self) -> bool {
        true
    }
}

impl<F: FnMut() -> Result<(), Errno>> Work for F {
    fn operate(&mut self) -> Result<(), Errno> {
        self()
    }
}

/// Operations before the gate: caches, page tables and lazy set-up are not measured.
const WARM_UP: u32 = 2;
/// Every so many measurements, two operations are timed together.
const DOUBLE_EVERY: u64 = 4;

/// Measures `work` as worker `id`; a failure is noted in its cell, and ends the round for all.
pub fn run(area: &Area, id: usize, clock: Clock, time: Duration, work: &mut dyn Work) {
    let (gate, cell) = (area.gate(), &area.cells()[id]);
    let outcome = (0..WARM_UP).try_for_each(|_| whole(work));
    gate.ready.fetch_add(1, Ordering::AcqRel);
    while gate.open.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    if let Err(error) = outcome.and_then(|()| measure(area, id, clock, time, work)) {
        cell.fail(&error.to_string());
        gate.stop.store(1, Ordering::Relaxed);
    }
    gate.done.fetch_add(1, Ordering::AcqRel);
    // Nobody tears anything down while others still measure: exits are expensive for all.
    while (gate.done.load(Ordering::Acquire) as usize) < area.cells().len() {
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn whole(work: &mut dyn Work) -> Result<(), Errno> {
    work.before()?;
    work.operate()?;
    work.after()
}

fn measure(
    area: &Area,
    id: usize,
    clock: Clock,
    time: Duration,
    work: &mut dyn Work,
) -> Result<(), Errno> {
    let (gate, cell) = (area.gate(), &area.cells()[id]);
    let repeatable = work.is_repeatable();
    let time_ns = time.as_nanos() as u64;
    let (cpu, queued) = (cpu_times(), queued_ns());
    let began_ns = monotonic_ns();
    let began = clock.ticks();
    let (mut last, mut operations, mut rounds, mut shortest_kept) = (began, 0, 0u64, 0);
    // At least one operation, however short the time.
    while rounds == 0 || clock.ns(last - began) < time_ns && gate.stop.load(Ordering::Relaxed) == 0
    {
        work.before()?;
        let before = clock.ticks();
        work.operate()?;
        last = clock.ticks();
        work.after()?;
        let ns = clock.ns(last - before);
        cell.single.record(ns);
        if ns > shortest_kept {
            shortest_kept = cell.keep(began_ns + clock.ns(before - began), ns);
        }
        operations += 1;
        if repeatable && rounds.is_multiple_of(DOUBLE_EVERY) {
            operations += 2;
            last = two(cell, clock, work)?;
        }
        rounds += 1;
    }
    let used = cpu_times();
    let queued = queued_ns().zip(queued).map_or(u64::MAX, |(after, before)| after - before);
    cell.operations.store(operations, Ordering::Relaxed);
    cell.began_ns.store(began_ns, Ordering::Relaxed);
    cell.ended_ns.store(monotonic_ns(), Ordering::Relaxed);
    cell.user_ns.store(used.0 - cpu.0, Ordering::Relaxed);
    cell.system_ns.store(used.1 - cpu.1, Ordering::Relaxed);
    cell.queued_ns.store(queued, Ordering::Relaxed);
    Ok(())
}

fn two(cell: &Cell, clock: Clock, work: &mut dyn Work) -> Result<u64, Errno> {
    let before = clock.ticks();
    work.operate()?;
    work.operate()?;
    let last = clock.ticks();
    cell.double.record(clock.ns(last - before));
    Ok(last)
}

/// How long this thread has been ready to run, but without a CPU, since it began: the second number
/// of its schedstat (Documentation/scheduler/sched-stats.rst).
fn queued_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// CPU time of this thread in user mode and in the kernel, ns.
fn cpu_times() -> (u64, u64) {
    // SAFETY: zero is a value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing and of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
