//! System calls in short windows, where not all of them are recorded.
//!
//! As long as a program is attached to the two ends of calls, each call of the host costs more: a busy server
//! loses 5 to 13 % of its requests to programs that do nothing (docs/cost.md). So they are attached for
//! [`WINDOW_NS`] at random moments, one a second on average: a fiftieth of that.
//!
//! To attach the first and to detach the last one the kernel marks every thread of the host, and holds
//! tasklist_lock meanwhile, without which no process begins or ends (syscall_regfunc() in
//! kernel/tracepoint.c): 0.2 ms with 200 threads, 3.7 ms with 20,000, as measured here.

use std::fs;
use std::time::Duration;

use model::histogram::PRECISION_KERNEL;
use model::{Histogram, Metric, MetricSecond};

use crate::probes::Probes;

const WINDOW_NS: u64 = 20_000_000;
/// From the begin of one window to that of the next, as drawn.
const PERIOD_NS: std::ops::Range<u64> = 500_000_000..1_500_000_000;
/// Up to the first, so that a short recording has one.
const FIRST_NS: std::ops::Range<u64> = 0..500_000_000;
/// Hosts with more threads have no windows: 0.4 ms in which no process begins or ends.
const MOST_THREADS: u64 = 2_000;

/// When there are windows.
pub struct CallWindows {
    next_ns: u64,
    /// When the one that is open began.
    since_ns: Option<u64>,
    lengths: Histogram,
    refused: u64,
}

impl CallWindows {
    /// None yet.
    pub fn new() -> CallWindows {
        let next_ns = clock::monotonic_ns() + fastrand::u64(FIRST_NS);
        let lengths = Histogram::new(PRECISION_KERNEL);
        CallWindows { next_ns, since_ns: None, lengths, refused: 0 }
    }

    /// Until something is to be done.
    pub fn rest(&self) -> Duration {
        let at = self.since_ns.map_or(self.next_ns, |since| since + WINDOW_NS);
        Duration::from_nanos(at.saturating_sub(clock::monotonic_ns()))
    }

    /// Begins or ends a window if it is time.
    pub fn step(&mut self, probes: &mut Probes) {
        if !self.rest().is_zero() {
            return;
        }
        if self.since_ns.is_some() {
            return self.end(probes);
        }
        self.next_ns = clock::monotonic_ns() + fastrand::u64(PERIOD_NS);
        if unfit_host().is_some() {
            return;
        }
        match probes.begin_call_window() {
            Ok(since_ns) => self.since_ns = Some(since_ns),
            Err(_) => self.refused += 1,
        }
    }

    /// Ends the one that is open.
    pub fn end(&mut self, probes: &mut Probes) {
        if let Some(since_ns) = self.since_ns.take() {
            self.lengths.record(probes.end_call_window().saturating_sub(since_ns));
        }
    }

    /// Those since the last time, which was at `start_ns`; `None` if there were none.
    pub fn take(&mut self, start_ns: u64) -> Option<MetricSecond> {
        let histogram = std::mem::replace(&mut self.lengths, Histogram::new(PRECISION_KERNEL));
        let metric = Metric::CallWindow;
        (histogram.count() > 0).then_some(MetricSecond { tgid: 0, metric, start_ns, histogram })
    }

    /// Windows since the last call that the kernel did not let begin.
    pub fn refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }
}

/// Why there are to be no windows on this host now; `None` if there can be.
pub fn unfit_host() -> Option<String> {
    let threads = threads_of_host().filter(|threads| *threads > MOST_THREADS)?;
    Some(format!(
        "the host has {threads} threads, more than {MOST_THREADS}: the kernel would mark each of them, for \
         every look at calls, while no process begins or ends"
    ))
}

fn threads_of_host() -> Option<u64> {
    threads_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// The fourth word is "runnable/threads" (proc_loadavg(5)).
fn threads_in(loadavg: &str) -> Option<u64> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_the_host_are_those_of_proc() {
        assert_eq!(threads_in("0.20 0.18 0.12 1/1234 11206\n"), Some(1234));
        assert_eq!(threads_in("0.20 0.18 0.12\n"), None);
        let tasks = fs::read_dir("/proc/self/task").unwrap().count() as u64;
        assert!(threads_of_host().unwrap() >= tasks);
    }
}
