//! timer-slack: sleeps end late because the kernel may delay them by the timer slack of the thread,
//! so that one interrupt can end several.
//!
//! On an idle CPU all of the slack is used; on a busy one any interrupt ends the sleep sooner.
//! Every ordinary thread has a slack (50 us by default, inherited from its parent), so it is the
//! cause only if the lateness is as large as the slack. Real-time threads have none. poll, select
//! and epoll have a slack of their own: a thousandth of the timeout.
//!
//! # Evidence
//!
//! The slack of the threads, 1 us or more, as /proc says; and either lateness that is that slack,
//! whatever the time asked for, or the latest ticks as recorded: each timer carries the earliest
//! and the latest time at which it may fire (softexpires, expires), and fired at the later one.
//! What the same sleeps cost whylag itself with a slack of 1 ns is taken off.
//!
//! # Without whylag
//!
//!     cat /proc/TID/timerslack_ns                # of each thread, in ns
//!     bpftrace -e 'tracepoint:timer:hrtimer_start /pid == PID/ {
//!         @slack_us = hist((args->expires - args->softexpires) / 1000); }'
//!
//! # Sources
//!
//! prctl(2) (PR_SET_TIMERSLACK); time(7); kernel/time/hrtimer.c; fs/select.c
//! (select_estimate_accuracy).

use model::LegKind;
use stats::law::{Comparison, Fit, Law};
use stats::quantile;

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::timers::{late_ticks, steps};
use crate::timers::recorded::Sign;
use crate::timers::source::TimerSource;
use model::units::fine_duration;

pub const CAUSE: Cause = Cause {
    id: ids::TIMER_SLACK,
    title: "the kernel delays the end of sleeps by the thread's timer slack",
    fix: "Set the slack to 1 ns in the thread that sleeps (prctl(PR_SET_TIMERSLACK, 1)), wait with a \
          timerfd, which has no slack, or give the thread a real-time policy.",
    reproduce: "whylag jitter -- mysteries/bin/timer-slack-faulty 5",
    needs: Needs::NONE,
    look_alikes: &[
        LookAlike {
            cause: ids::TIMER_MS_ROUNDING,
            tell_apart: "set the slack to 1 ns (PR_SET_TIMERSLACK) and record again: what is rounded to milliseconds stays late",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_JIFFIES,
            tell_apart: "set the slack to 1 ns (PR_SET_TIMERSLACK) and record again: what counts in jiffies stays late",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_PROPORTIONAL,
            tell_apart: "let it sleep for several different times, the longest at least twice the shortest (whylag's own timers: --ladder 100us..100ms): a slack is the same for all, a wrong factor makes long sleeps later than short ones",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// What helps where PR_SET_TIMERSLACK does not.
const FIX_OF_POLL: &str = "Use a timerfd, which has no slack, or a real-time policy.";
/// Less slack than this, ns, is no cause of anything.
const LEAST_SLACK: f64 = 1_000.0;
const LONG_SLACK: f64 = 500_000.0;
/// By how much, as a part of the slack, lateness may differ from slack and waking up; and once more
/// for noise.
const TOLERANCE: f64 = 0.3;
/// The part of the slack that is used at least.
const USED: f64 = 0.3;

fn examine(case: &Case) -> Verdict {
    let (source, comparison) = late_ticks::of(case)?;
    if let Some(slack_ns) = source.slack_ns {
        late_ticks::not_refuted(source, sign(slack_ns))?;
    }
    claim(source, comparison).ok_or_else(|| why_not(source))
}

fn sign(slack_ns: u64) -> Sign {
    Sign::of_all(LegKind::Slack, USED * slack_ns as f64)
}

fn why_not(source: &TimerSource) -> Absent {
    Absent(match (source.real_time_thread(), source.slack_ns) {
        (Some(_), _) => "it does not apply to real-time threads".to_owned(),
        (_, None) => "it could not be read, or differs between threads".to_owned(),
        (_, Some(ns)) => {
            format!("it is {}, which is not what its lateness is made of", fine_duration(ns as f64))
        }
    })
}

fn claim(source: &TimerSource, comparison: &Comparison) -> Option<Claim> {
    let slack_ns = source.slack_ns.filter(|_| source.has_slack())?;
    let slack = slack_ns as f64;
    let fit = comparison.fit(comparison.best)?;
    let was_seen = late_ticks::seen(source, sign(slack_ns)).is_some();
    if is_stepped(source, fit) && !was_seen {
        return None;
    }
    let late = beyond_waking(source, fit);
    let by_poll = comparison.best == Law::PollSlack;
    if !(by_poll || (was_seen || is_the_slack(&late, slack)) && slack >= LEAST_SLACK) {
        return None;
    }
    let by_slack: Vec<f64> = late.iter().map(|late| late.clamp(0.0, slack)).collect();
    let mean = by_slack.iter().sum::<f64>() / by_slack.len().max(1) as f64;
    let share = (mean / source.mean_late()).clamp(0.0, 1.0);
    let title = match by_poll {
        true => "poll, select and epoll may be late by a thousandth of the time asked for".into(),
        false => {
            format!(
                "the thread's timer slack lets the kernel end timers {} late, and it does",
                fine_duration(slack)
            )
        }
    };
    let confidence = if source.controls.is_empty() { 0.7 } else { 0.95 };
    let mut claim = late_ticks::claim(source, title, share, confidence);
    claim.fix = by_poll.then_some(FIX_OF_POLL);
    claim.mechanism(
        "the kernel delays timers by up to their slack, so that one interrupt can serve several"
            .to_owned(),
    );
    late_ticks::saw_law(&mut claim, source, fit);
    saw_slack(&mut claim, source, slack);
    late_ticks::saw_recorded(&mut claim, source, sign(slack_ns));
    Some(claim)
}

/// Steps that a long slack cannot make.
fn is_stepped(source: &TimerSource, fit: &Fit) -> bool {
    let step = match fit.law {
        Law::Milliseconds => 1e6,
        Law::Jiffies => source.jiffy_ns,
        _ => return false,
    };
    !steps::may_be_slack(source, fit, step)
}

/// Lateness of each tick without what waking up costs here, and without what grows with the time
/// asked for, which is something else.
fn beyond_waking(source: &TimerSource, fit: &Fit) -> Vec<f64> {
    // What the shortest sleeps cost whylag without slack.
    let waking = source.controls.iter().min_by_key(|control| control.asked_ns);
    let waking_ns = waking.map_or(0.0, |control| control.late_ns as f64);
    let growing = match (fit.law, fit.factor) {
        (Law::Proportional, Some(factor)) => factor.estimate,
        _ => 0.0,
    };
    source.ticks().map(|t| t.1 as f64 - growing * t.2 as f64 - waking_ns).collect()
}

/// True if ticks are as late as the slack makes them. That any interrupt ended it sooner can be
/// distinguished from other delays only if the slack is long.
fn is_the_slack(late: &[f64], slack: f64) -> bool {
    let middle = quantile::median(late).unwrap_or(0.0);
    let away: Vec<f64> = late.iter().map(|late| (late - middle).abs()).collect();
    let noise = quantile::median(&away).unwrap_or(0.0).min(TOLERANCE * slack);
    let long = (slack >= LONG_SLACK).then(|| quantile::of(late, 0.9)).flatten();
    [Some(middle), long]
        .into_iter()
        .flatten()
        .any(|late| (late - slack).abs() <= TOLERANCE * slack + noise)
}

fn saw_slack(claim: &mut Claim, source: &TimerSource, slack: f64) {
    let thread = source.threads.first().map(|thread| format!("tid {}", thread.tid));
    let thread = thread.unwrap_or_else(|| "the thread".to_owned());
    claim.saw(
        format!("timer slack {} of {thread}", fine_duration(slack)),
        "/proc/PID/timerslack_ns",
    );
    if source.controls.is_empty() {
        late_ticks::doubt(claim, "no control with another slack was measured");
    } else {
        let controls = late_ticks::controls(source);
        let text = format!("with a slack of 1 ns whylag's own sleeps are {controls}");
        claim.saw(text, "clock_nanosleep");
    }
}

#[cfg(test)]
mod tests {
    use crate::causes::timers::made_up::{self, Ticks};

    #[test]
    fn sleeps_that_are_as_late_as_the_slack_are_it() {
        let ticks = Ticks::late_by(|asked| 5_060_000 + asked % 11 * 1_000).with_slack(5_000_000);
        let found = made_up::findings(ticks.with_controls(|_| 60_000));
        assert_eq!(made_up::causes(&found), ["timer-slack"]);
        assert!(found[0].share > 0.95 && found[0].confidence == 0.95, "{:#?}", found[0]);
        assert!(found[0].title.contains("end timers 5.00 ms late"));
        made_up::assert_others_ruled_out(&found[0]);
    }

    #[test]
    fn the_same_lateness_without_the_slack_is_not() {
        let late = |asked: u64| 5_060_000 + asked % 11 * 1_000;
        let why = made_up::why_not(Ticks::late_by(late).with_slack(50_000), "timer-slack");
        assert!(why.contains("it is 50.0 us, which is not what"), "{why}");
        let real_time = Ticks::late_by(late).with_slack(5_000_000).real_time();
        let why = made_up::why_not(real_time, "timer-slack");
        assert!(why.contains("does not apply to real-time threads"), "{why}");
        let recorded = Ticks::late_by(late).with_slack(5_000_000);
        let recorded = recorded.with_leg(model::LegKind::Ready, 5_000_000);
        let why = made_up::why_not(recorded, "timer-slack");
        assert!(why.contains("'timer slack' is 0 ns (median), as recorded"), "{why}");
    }

    #[test]
    fn a_control_is_missed() {
        let ticks = Ticks::late_by(|_| 5_060_000).with_slack(5_000_000).without_controls();
        let found = made_up::findings(ticks);
        assert_eq!((found[0].cause.as_str(), found[0].confidence), ("timer-slack", 0.7));
        assert_eq!(found[0].doubts, ["no control with another slack was measured"]);
    }
}
