//! What a worker does, be it a thread or a process: wait at the gate, operate until the time is
//! over, wait until all others have stopped as well.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;

use crate::area::{Area, BLOCKS};
use crate::clock::Clock;

/// One worker's part of a case.
pub trait Work {
    /// One operation.
    fn operate(&mut self) -> Result<(), Errno>;
}

impl<F: FnMut() -> Result<(), Errno>> Work for F {
    fn operate(&mut self) -> Result<(), Errno> {
        self()
    }
}

/// Operations before the gate: caches, page tables and lazy set-up are not measured.
const WARM_UP: u32 = 3;

/// Measures `work` as worker `id`; a failure is told in its cell, and ends the step for all.
pub fn run(area: &Area, id: usize, clock: Clock, time: Duration, work: &mut dyn Work) {
    let (gate, cell) = (area.gate(), &area.cells()[id]);
    let outcome = (0..WARM_UP).try_for_each(|_| work.operate());
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
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn measure(
    area: &Area,
    id: usize,
    clock: Clock,
    time: Duration,
    work: &mut dyn Work,
) -> Result<(), Errno> {
    let (gate, cell) = (area.gate(), &area.cells()[id]);
    let cpu = cpu_times();
    let began = clock.ticks();
    let block_ns = time.as_nanos() as u64 / BLOCKS as u64;
    let mut last = began;
    for block in 0..BLOCKS {
        let end_ns = block_ns * (block as u64 + 1);
        let mut operations = 0;
        while clock.ns(last - began) < end_ns && gate.stop.load(Ordering::Relaxed) == 0 {
            let before = clock.ticks();
            work.operate()?;
            let after = clock.ticks();
            let ns = clock.ns(after - before);
            cell.single[block].record(ns);
            cell.keep_if_long(clock.ns(before - began), ns);

            let before = clock.ticks();
            work.operate()?;
            work.operate()?;
            last = clock.ticks();
            cell.double.record(clock.ns(last - before));
            operations += 3;
        }
        cell.operations[block].store(operations, Ordering::Relaxed);
    }
    let used = cpu_times();
    cell.wall_ns.store(clock.ns(last - began), Ordering::Relaxed);
    cell.user_ns.store(used.0 - cpu.0, Ordering::Relaxed);
    cell.system_ns.store(used.1 - cpu.1, Ordering::Relaxed);
    Ok(())
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
