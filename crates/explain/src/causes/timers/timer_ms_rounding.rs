//! timer-ms-rounding: a program's timers end at whole milliseconds, because the call that it waits
//! with takes no finer time.
//!
//! poll and epoll_wait take their timeout in milliseconds. A program that must not wake early
//! rounds up, so 1.2 ms becomes 2: a tick is late by what is missing to the next whole millisecond,
//! and in time if it asked for whole ones.
//!
//! # Evidence
//!
//! Lateness that, with the time asked for, adds up to whole milliseconds: that law leaves less of
//! it unexplained than the others do. Where the latest ticks were recorded, the kernel's timer was
//! set for a later time than was intended, and fired in time.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=epoll_wait,epoll_pwait,poll -p PID   # the last argument: milliseconds
//!
//! # Sources
//!
//! epoll_wait(2); poll(2).

use model::LegKind;
use stats::law::Law;

use crate::case::Case;
use crate::cause::{Cause, Needs, Verdict};
use crate::causes::ids;
use crate::causes::timers::late_ticks;
use crate::causes::timers::steps::{self, Steps};
use crate::timers::recorded::Sign;

pub const CAUSE: Cause = Cause {
    id: ids::TIMER_MS_ROUNDING,
    title: "timers are rounded to whole milliseconds",
    fix: "Use epoll_pwait2, ppoll or a timerfd, which take nanoseconds.",
    reproduce: "whylag jitter -- mysteries/bin/timer-ms-rounding-faulty 5",
    needs: Needs::NONE,
    look_alikes: &[],
    symptom: false,
    examine,
};

const STEPS: Steps = Steps {
    law: Law::Milliseconds,
    step_ns: 1e6,
    title: CAUSE.title,
    mechanism: "epoll_wait and poll take their timeout in whole milliseconds",
    // What rounding makes of the latest ticks at least.
    sign: Sign::of_all(LegKind::SetLate, 50_000.0),
};

fn examine(case: &Case) -> Verdict {
    let (source, comparison) = late_ticks::of(case)?;
    let mut claim = steps::claim(source, comparison, &STEPS)?;
    if source.asks_for_whole_ms() {
        late_ticks::doubt(&mut claim, "it is whylag that asks for whole milliseconds here");
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use crate::causes::timers::made_up::{self, Ticks};

    #[test]
    fn sleeps_that_end_at_whole_milliseconds_are_it() {
        let rounded = |asked: u64| asked.next_multiple_of(1_000_000) - asked + 30_000;
        let found = made_up::findings(Ticks::late_by(rounded));
        assert_eq!(made_up::causes(&found), ["timer-ms-rounding"]);
        assert!(found[0].share > 0.9, "{}", found[0].share);
        made_up::assert_others_ruled_out(&found[0]);
        assert!(found[0].evidence[0].text.starts_with("lateness is stepped 1 ms"));
    }

    #[test]
    fn timers_that_were_set_for_the_right_time_are_not() {
        let rounded = |asked: u64| asked.next_multiple_of(1_000_000) - asked + 30_000;
        let ticks = Ticks::late_by(rounded).with_leg(model::LegKind::Slack, 600_000);
        let why = made_up::why_not(ticks, "timer-ms-rounding");
        assert!(why.contains("'timer set for later' is 0 ns"), "{why}");
    }

    #[test]
    fn a_constant_lateness_is_not() {
        // Steps that no tick shows are not even tried.
        let why = made_up::why_not(Ticks::late_by(|_| 57_000), "timer-ms-rounding");
        assert_eq!(why, "its law was not fitted");
    }
}
