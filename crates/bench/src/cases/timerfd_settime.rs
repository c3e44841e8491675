//! timerfd-settime: arming a timer, which is disarmed first.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::{Alone, Benchmark, THREADS};

/// Never rings meanwhile.
const IN_AN_HOUR: Itimerspec = Itimerspec {
    it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
    it_value: Timespec { tv_sec: 3600, tv_nsec: 0 },
};

pub const CASE: Benchmark = Benchmark {
    id: "timerfd-settime",
    measures: "timerfd_settime() to an hour from now, of a timer that was set so before",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
            Ok(Box::new(move || {
                timerfd_settime(&timer, TimerfdTimerFlags::empty(), &IN_AN_HOUR).map(drop)
            }) as _)
        })))
    },
};
