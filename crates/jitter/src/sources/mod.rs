//! The kinds of timers.

/// The name of a program that prints its own ticks, as a source.
pub const PROGRAM: &str = "program";

/// True for one that takes whole milliseconds only.
pub fn asks_for_whole_ms(source: &str) -> bool {
    matches!(source, "epoll" | "poll")
}

/// True for one to which timer slack applies: not to timers that are objects of their own.
pub fn has_slack(source: &str) -> bool {
    matches!(source, "clock_nanosleep" | "epoll" | "poll" | "condvar" | PROGRAM)
}

/// Sleeps until a moment of CLOCK_MONOTONIC.
pub(crate) fn absolute_sleep(until_ns: u64) -> Result<(), rustix::io::Errno> {
    let until = rustix::time::Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as i64,
    };
    rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &until)
}
