//! What a clock read costs here.
//!
//! Costs are CPU time of the reading thread, not wall time: with more readers than CPUs, waiting
//! for a CPU would look like a slow clock.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Reads between two looks at the thread's own clock, which is a system call.
const BATCH: u32 = 1_000;
/// Each measurement ends after so long, even on the slowest clock.
const LIMIT: Duration = Duration::from_millis(25);
/// With the fastest clock so many batches are enough.
const BATCHES: usize = 20;
/// More readers would only repeat what these show.
const MOST_READERS: usize = 256;

/// CPU time of one clock_gettime(CLOCK_MONOTONIC), ns: the C library's, as programs read it.
pub fn read_alone() -> f64 {
    cheapest(|| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes one timespec, which `now` is.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        std::hint::black_box(now);
    })
}

/// The same by a real system call, past the vDSO.
pub fn read_by_system_call() -> f64 {
    cheapest(|| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes one timespec, which `now` is.
        unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
        std::hint::black_box(now);
    })
}

/// Readers at the same time, one on each CPU that this process may use, and the CPU time of a read:
/// the median of the readers.
pub fn read_together() -> (usize, f64) {
    let readers = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let start = Barrier::new(readers);
    let reader = || {
        // Nobody else is to notice: the lowest priority, of this thread only.
        let _ = rustix::process::nice(19);
        start.wait();
        read_alone()
    };
    let mut costs: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..readers).map(|_| scope.spawn(reader)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    costs.sort_by(f64::total_cmp);
    (readers, costs.get(costs.len() / 2).copied().unwrap_or(0.0))
}

/// The first quartile of batches: interrupts only ever add.
fn cheapest(mut read: impl FnMut()) -> f64 {
    let began = Instant::now();
    let mut batches = Vec::with_capacity(BATCHES);
    while batches.len() < BATCHES && (batches.len() < 2 || began.elapsed() < LIMIT) {
        let before = clock::thread_cpu_ns();
        for _ in 0..BATCH {
            read();
        }
        batches.push((clock::thread_cpu_ns() - before) as f64 / f64::from(BATCH));
    }
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 4]
}
