//! timer-proportional: every time asked for is too long (or too short) by the same fraction,
//! because it is converted with a factor that is not exact enough.
//!
//! A program or a device counts in ticks of its own, and its nanoseconds for each tick are rounded:
//! 10 instead of 10.04 makes every sleep 0.4 % too long. Lateness then grows in proportion to the
//! time asked for. That alone is no proof, because sleeps become later with their length on any
//! idle host: what the same sleeps cost whylag itself (the controls) is taken off first.
//!
//! # Evidence
//!
//! Lateness in proportion to the time asked for, by 100 ppm or more and by more than the controls
//! show, over different times asked for; that law leaves less unexplained than the others do. Where
//! the latest ticks were recorded, the kernel's timer was set for a later time than was intended.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=clock_nanosleep,timerfd_settime,read -p PID   # asked for, and what it took
//!     bpftrace -e 'tracepoint:timer:hrtimer_start /pid == PID/ {
//!         @us = hist((args->expires - nsecs) / 1000); }'   # what the kernel was asked for
//!
//! # Sources
//!
//! kernel/time/clocksource.c (clocks_calc_mult_shift: how the kernel makes such a factor);
//! timerfd_create(2).

use model::{JitterControl, LegKind};
use stats::Interval;
use stats::law::{Comparison, Fit, Law};
use stats::quantile;

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::timers::late_ticks;
use crate::timers::recorded::{SOURCE, Sign};
use crate::timers::source::TimerSource;
use model::units::{deviation, fine_duration};

pub const CAUSE: Cause = Cause {
    id: ids::TIMER_PROPORTIONAL,
    title: "every timer is late by the same fraction of the time asked for",
    fix: "Correct the conversion between nanoseconds and ticks: keep the factor in more bits \
          (multiply and shift, as the kernel does), or correct the frequency it is made from. \
          'whylag jitter --factor' computes how many bits are needed.",
    reproduce: "whylag jitter -- mysteries/bin/timer-proportional-faulty 5",
    needs: Needs::NONE,
    look_alikes: &[
        LookAlike {
            cause: ids::TIMER_MS_ROUNDING,
            tell_apart: "let it sleep for several different times, the longest at least twice the shortest (whylag's own timers: --ladder 100us..100ms): rounding is at most 1 ms, whatever the time, a wrong factor makes long sleeps later than short ones",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_JIFFIES,
            tell_apart: "let it sleep for several different times, the longest at least twice the shortest (whylag's own timers: --ladder 100us..100ms): counting in jiffies is at most two of them late, whatever the time, a wrong factor makes long sleeps later than short ones",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// A factor smaller than this is no error of arithmetic: clocks themselves are so far off.
const LEAST_FACTOR: f64 = 100e-6;
/// Without a program, growth that a wrong conversion makes is linear over so many decades.
const OWN_SPREAD: f64 = 100.0;
/// Timers that are set later than this were set wrong; less is the way to the system call.
const SIGN: Sign = Sign::of_all(LegKind::SetLate, 5_000.0);

fn examine(case: &Case) -> Verdict {
    let (source, comparison) = late_ticks::of(case)?;
    late_ticks::not_refuted(source, SIGN)?;
    let fit = comparison.fit(Law::Proportional).filter(|_| comparison.best == Law::Proportional);
    let Some((fit, factor)) = fit.and_then(|fit| Some((fit, fit.factor?))) else {
        return Err(no_growth(source, comparison));
    };
    let is_wide = source.program.is_some() || comparison.spread >= OWN_SPREAD;
    if !(is_wide && is_more_than_the_host_adds(source.controls, fit, &factor)) {
        return Err(Absent(format!(
            "{} of the time asked for is no more than what the host adds to any timer ({})",
            deviation(factor.estimate),
            deviation(control_factor(source.controls).map_or(0.0, |(host, _)| host))
        )));
    }
    Ok(claim(source, fit, &factor))
}

fn no_growth(source: &TimerSource, comparison: &Comparison) -> Absent {
    if comparison.fit(Law::Proportional).is_some_and(|fit| fit.factor.is_some()) {
        return late_ticks::not_this_law(comparison, Law::Proportional);
    }
    Absent(match usual_part(source).filter(|usual| usual.abs() < LEAST_FACTOR) {
        Some(usual) => {
            format!("half of the ticks are late by {} of the time or less", deviation(usual))
        }
        None => "all times asked for were about the same".to_owned(),
    })
}

/// False if sleeps of one length only can hide that lateness grows with it.
pub fn can_be_seen(source: &TimerSource) -> bool {
    let Some(comparison) = &source.comparison else { return false };
    let has_factor = comparison.fit(Law::Proportional).is_some_and(|fit| fit.factor.is_some());
    let is_small = || usual_part(source).is_some_and(|usual| usual.abs() < LEAST_FACTOR);
    has_factor
        || comparison.best != Law::Constant
        || is_small()
        || late_ticks::not_refuted(source, SIGN).is_err()
}

/// Lateness as a part of the time asked for: the median. A wrong factor makes every tick late.
fn usual_part(source: &TimerSource) -> Option<f64> {
    let ticks = source.ticks().filter(|tick| tick.2 > 0);
    quantile::median(&ticks.map(|tick| tick.1 as f64 / tick.2 as f64).collect::<Vec<_>>())
}

fn is_more_than_the_host_adds(controls: &[JitterControl], fit: &Fit, factor: &Interval) -> bool {
    let is_much = factor.estimate.abs() > LEAST_FACTOR && !factor.contains(0.0);
    let (host, wrong) = control_factor(controls).unwrap_or((0.0, 0.0));
    // How far the host's own growth is from the law at least.
    let more = (factor.low - host).max(host - factor.high) - wrong;
    is_much && (more > host.abs().max(LEAST_FACTOR) || keeps_closer(controls, fit))
}

/// By which part of the time asked for the controls grow, and by how much that may be wrong, from
/// the shortest to the longest; `None` with fewer than two.
fn control_factor(controls: &[JitterControl]) -> Option<(f64, f64)> {
    let least = controls.iter().min_by_key(|control| control.asked_ns)?;
    let most = controls.iter().max_by_key(|control| control.asked_ns)?;
    let apart = most.asked_ns as f64 - least.asked_ns as f64;
    // Standard error of a median of normal values, twice, from the median absolute deviation.
    let square = |c: &JitterControl| (c.away_ns as f64 * 1.4826 * 1.25).powi(2) / c.n.max(1) as f64;
    let wrong = 2.0 * (square(least) + square(most)).sqrt();
    (apart > 0.0).then(|| ((most.late_ns - least.late_ns) as f64 / apart, wrong / apart))
}

/// True if ticks keep to a law much more closely than the host's own sleeps keep to theirs: what
/// the host adds cannot be less scattered than it is.
fn keeps_closer(controls: &[JitterControl], fit: &Fit) -> bool {
    let least = controls.iter().map(|control| control.away_ns).min();
    least.is_some_and(|away| fit.left < away as f64 / 3.0)
}

fn claim(source: &TimerSource, fit: &Fit, factor: &Interval) -> Claim {
    let title = format!(
        "every timer is {} of the time asked for too {}",
        deviation(factor.estimate.abs()),
        if factor.estimate > 0.0 { "late" } else { "early" }
    );
    let asked: Vec<f64> = source.ticks().map(|tick| tick.2 as f64).collect();
    let typical = quantile::median(&asked).unwrap_or(0.0);
    let share = (factor.estimate * typical / source.mean_late()).abs().clamp(0.0, 1.0);
    let confidence = if fit.explains > 0.5 { 0.95 } else { 0.75 };
    let mut claim = late_ticks::claim(source, title, share, confidence);
    claim.mechanism("time is converted with a factor that is not exact enough".to_owned());
    if let Some(pairs) = source.series.iter().find_map(|series| series.pairs.as_ref()) {
        claim.trigger(format!(
            "another timer cuts a sleep short {} times: that tick comes {} early and the next {} \
             late, which looks like jitter",
            pairs.pairs,
            fine_duration(-pairs.early_ns),
            fine_duration(pairs.late_ns)
        ));
    }
    late_ticks::saw_law(&mut claim, source, fit);
    if !source.controls.is_empty() {
        let text = format!(
            "whylag's own timers at the same times asked for: {}; they grow by {}",
            late_ticks::controls(source),
            deviation(control_factor(source.controls).map_or(0.0, |(host, _)| host))
        );
        claim.saw(text, "clock_nanosleep, slack 1 ns");
    }
    let seen = late_ticks::seen(source, SIGN).zip(source.recorded.as_ref());
    claim.saw_if(seen.map(|(text, recorded)| format!("{text}: {}", recorded.set_late())), SOURCE);
    claim
}

#[cfg(test)]
mod tests {
    use crate::causes::timers::made_up::{self, Ticks};

    #[test]
    fn lateness_that_grows_with_the_time_asked_for_is_it() {
        let found = made_up::findings(Ticks::late_by(|asked| asked / 250 + 20_000));
        assert_eq!(made_up::causes(&found), ["timer-proportional"]);
        assert!(found[0].title.contains("0.400 % of the time asked for too late"));
        made_up::assert_others_ruled_out(&found[0]);
    }

    #[test]
    fn what_the_host_adds_to_any_timer_is_not() {
        let ticks = Ticks::late_by(|asked| asked / 250 + 20_000 + asked % 7 * 3_000);
        let ticks = ticks.with_controls(|asked| asked / 240 + 19_000);
        let why = made_up::why_not(ticks, "timer-proportional");
        assert!(why.contains("no more than what the host adds to any timer"), "{why}");
    }

    #[test]
    fn timers_that_were_set_for_the_right_time_are_not() {
        let ticks =
            Ticks::late_by(|asked| asked / 250 + 20_000).with_leg(model::LegKind::FromIdle, 80_000);
        let why = made_up::why_not(ticks, "timer-proportional");
        assert!(why.contains("'timer set for later' is 0 ns"), "{why}");
    }

    #[test]
    fn sleeps_of_one_length_cannot_exclude_it() {
        let ticks = Ticks::of_one_length(20_000_000, 70_000).with_slack(50_000);
        let found = made_up::findings(ticks.with_controls(|_| 20_000));
        assert_eq!(made_up::causes(&found), ["timer-slack"]);
        let open: Vec<&str> =
            found[0].not_ruled_out.iter().map(|other| other.cause.as_str()).collect();
        assert_eq!(open, ["timer-proportional"]);
        assert!(found[0].not_ruled_out[0].tell_apart.contains("--ladder"), "{:#?}", found[0]);
    }
}
