//! Clocks and timers.

pub(crate) mod cputime_clock_threads;
pub(crate) mod slow_clocksource;
