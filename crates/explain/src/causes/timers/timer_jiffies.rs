//! timer-jiffies: timers end with a tick of the kernel's low-resolution clock, which counts in
//! jiffies (1/HZ: 1 to 10 ms).
//!
//! Timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO) and many inside the kernel are timers of the
//! timer wheel. It counts in jiffies, rounds up, and starts with the next one, so that a timeout
//! never ends early: it ends one to two jiffies late, whatever the time asked for, and always with
//! a tick.
//!
//! # Evidence
//!
//! Ticks that are served at one phase of the jiffy, up to two jiffies late; that law leaves less of
//! the lateness unexplained than the others do. Where the latest ticks were recorded, a timer of
//! the timer wheel (timer_expire_entry) ended the wait, and not an hrtimer.
//!
//! # Without whylag
//!
//!     grep CONFIG_HZ= /boot/config-$(uname -r)   # or: zcat /proc/config.gz | grep CONFIG_HZ=
//!     bpftrace -e 'tracepoint:timer:timer_start /pid == PID/ {
//!         @jiffies[kstack(6)] = hist(args->expires - args->now); }'
//!     strace -f -T -e trace=setsockopt,recvfrom,recvmsg -p PID   # EAGAIN: one or two jiffies late
//!
//! # Sources
//!
//! socket(7) (SO_RCVTIMEO); time(7) (jiffies); kernel/time/timer.c (the timer wheel).

use model::LegKind;
use stats::law::Law;

use crate::case::Case;
use crate::cause::{Cause, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::timers::late_ticks;
use crate::causes::timers::steps::{self, Steps};
use crate::timers::recorded::Sign;

pub const CAUSE: Cause = Cause {
    id: ids::TIMER_JIFFIES,
    title: "timers end with a tick of the kernel's low-resolution clock",
    fix: "Wait with ppoll, epoll_pwait2 or a timerfd, then receive without a timeout.",
    reproduce: "whylag jitter -- mysteries/bin/timer-jiffies-faulty 5",
    needs: Needs::NONE,
    look_alikes: &[LookAlike {
        cause: ids::TIMER_MS_ROUNDING,
        tell_apart: "sleep for whole milliseconds and record again: what is rounded to these is then in time, what counts in jiffies is not",
        mutual: true,
    }],
    symptom: false,
    examine,
};

const MECHANISM: &str = "timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO) and others inside the \
                         kernel are counted in jiffies and rounded up, and one more is added";

fn examine(case: &Case) -> Verdict {
    let (source, comparison) = late_ticks::of(case)?;
    let steps = Steps {
        law: Law::Jiffies,
        step_ns: source.jiffy_ns,
        title: CAUSE.title,
        mechanism: MECHANISM,
        sign: Sign::of_all(LegKind::Jiffies, 5_000.0),
    };
    steps::claim(source, comparison, &steps)
}

#[cfg(test)]
mod tests {
    use crate::causes::timers::made_up::{self, JIFFY_NS, Ticks};

    /// Up to the tick of the kernel after the next.
    fn to_a_tick(intended_ns: u64) -> u64 {
        intended_ns.next_multiple_of(JIFFY_NS) + JIFFY_NS - intended_ns + 20_000
    }

    #[test]
    fn sleeps_that_end_with_a_tick_of_the_kernel_are_it() {
        let found = made_up::findings(Ticks::late_at(to_a_tick));
        assert_eq!(made_up::causes(&found), ["timer-jiffies"]);
        made_up::assert_others_ruled_out(&found[0]);
        assert!(found[0].evidence[0].text.contains("up to a tick of 4.00 ms"), "{:#?}", found[0]);
    }

    #[test]
    fn with_timers_of_high_resolution_it_is_not() {
        let ticks = Ticks::late_at(to_a_tick).with_leg(model::LegKind::SetLate, 2_000_000);
        let why = made_up::why_not(ticks, "timer-jiffies");
        assert!(why.contains("'rounded up to a tick of the kernel' is 0 ns"), "{why}");
    }
}
