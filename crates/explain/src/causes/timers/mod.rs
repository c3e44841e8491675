//! Clocks and timers.

pub(crate) mod cputime_clock_threads;
mod late_ticks;
#[cfg(test)]
mod made_up;
pub(crate) mod rt_throttling;
pub(crate) mod slow_clocksource;
mod steps;
pub(crate) mod timer_jiffies;
pub(crate) mod timer_ms_rounding;
pub(crate) mod timer_proportional;
pub(crate) mod timer_slack;
