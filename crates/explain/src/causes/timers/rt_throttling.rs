//! rt-throttling: a real-time thread that never sleeps loses its CPU for some 50 ms of each second
//! to the ordinary threads that wait for it, which looks like a beat of the application.
//!
//! The kernel keeps 5 % of each second of a CPU for ordinary threads, so that they can run at all:
//! by its fair server since Linux 6.12, by real-time throttling before (sched_rt_runtime_us). It is
//! the other side of rt-starvation.
//!
//! # Evidence
//!
//! Gaps of 15 to 900 ms, about a second apart, in the ticks of a thread that has a real-time
//! policy. Where the latest ticks were recorded, an ordinary thread had its CPU in the gap, while
//! the real-time thread was ready to run.
//!
//! # Without whylag
//!
//!     ps -eLo tid,cls,rtprio,psr,comm | awk '$2 == "FF" || $2 == "RR"'
//!     sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us
//!     grep . /sys/kernel/debug/sched/fair_server/cpu*/{runtime,period}   # since 6.12
//!     perf sched record -a -- sleep 3; perf sched timehist -C CPU        # ordinary threads every second
//!
//! # Sources
//!
//! sched(7); Documentation/scheduler/sched-rt-group.rst; kernel/sched/deadline.c (the fair server).

use model::{LegKind, Tick};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::timers::late_ticks;
use crate::timers::recorded::Sign;
use crate::timers::source::TimerSource;
use model::units::fine_duration;

pub const CAUSE: Cause = Cause {
    id: ids::RT_THROTTLING,
    title: "a real-time thread that never sleeps loses its CPU every second",
    fix: "Let the thread sleep or block for a few per cent of every second, or give it a CPU of its \
          own (isolcpus) on which nothing else has to run.",
    reproduce: "whylag jitter -- mysteries/bin/rt-throttling-faulty 5",
    needs: Needs::NONE,
    look_alikes: &[
        LookAlike {
            cause: ids::TIMER_MS_ROUNDING,
            tell_apart: "give the thread SCHED_OTHER for a moment and record again: the gaps of throttling go, rounding stays",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_JIFFIES,
            tell_apart: "give the thread SCHED_OTHER for a moment and record again: the gaps of throttling go, ends at ticks of the kernel stay",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_PROPORTIONAL,
            tell_apart: "give the thread SCHED_OTHER for a moment and record again: the gaps of throttling go, a wrong factor stays",
            mutual: true,
        },
        LookAlike {
            cause: ids::TIMER_SLACK,
            tell_apart: "read the policy of the thread ('ps -eLo tid,cls,rtprio,comm'): slack does not apply to FF and RR, throttling to nothing else",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// Gaps so long are looked at: both mechanisms take 50 ms unless configured otherwise.
const SHORTEST_NS: f64 = 15e6;
const LONGEST_NS: f64 = 900e6;
/// They come once a second; the time a thread sleeps does not count.
const APART_NS: std::ops::Range<f64> = 0.9e9..1.6e9;
/// Shorter turns of ordinary threads are no throttling. What makes other ticks late, between the gaps,
/// is something else.
const SIGN: Sign = Sign { leg: LegKind::RealTimeThrottled, least_ns: 1e6, late_ns: SHORTEST_NS };

/// A time during which the thread did not run.
struct Gap {
    at: f64,
    ns: f64,
}

fn examine(case: &Case) -> Verdict {
    let (source, _) = late_ticks::of(case)?;
    late_ticks::not_refuted(source, SIGN)?;
    let Some(thread) = source.real_time_thread() else {
        return Err(Absent("no thread is real-time".to_owned()));
    };
    let gaps = gaps(source);
    let apart: Vec<f64> = gaps.windows(2).map(|two| two[1].at - two[0].at).collect();
    let lengths: Vec<f64> = gaps.iter().map(|gap| gap.ns).collect();
    let usual = stats::quantile::median(&apart).filter(|apart| APART_NS.contains(apart));
    let Some((usual, length)) = usual.zip(stats::quantile::median(&lengths)) else {
        return Err(Absent(format!(
            "{} gaps of more than {}, none a second after another",
            gaps.len(),
            fine_duration(SHORTEST_NS)
        )));
    };
    let mut claim = claim(source, &gaps, length);
    let text = format!(
        "{} gaps of {} (median), {} apart (median), {} together",
        gaps.len(),
        fine_duration(length),
        fine_duration(usual),
        fine_duration(lengths.iter().sum())
    );
    claim.saw(text, "intended and actual times");
    claim.saw(
        format!("tid {} is {} {}", thread.tid, thread.policy, thread.priority),
        &format!("/proc/{}/stat", thread.tid),
    );
    claim.saw_if(limits(case), "/proc/sys/kernel/sched_rt_runtime_us, sched_rt_period_us");
    late_ticks::saw_recorded(&mut claim, source, SIGN);
    Ok(claim)
}

fn claim(source: &TimerSource, gaps: &[Gap], length: f64) -> Claim {
    let all: f64 = source.series.iter().map(|series| series.late.sum() as f64).sum();
    // A gap of length g makes all the ticks within it late, by g / 2 on average.
    let ticks: f64 = gaps
        .iter()
        .flat_map(|gap| source.series.iter().map(move |s| (gap, s.interval_ns.max(1))))
        .map(|(gap, interval)| gap.ns * (gap.ns / interval as f64 + 1.0) / 2.0)
        .sum();
    let share = (ticks / all.max(1.0)).clamp(0.0, 1.0);
    let confidence = if gaps.len() >= 4 { 0.95 } else { 0.8 };
    let title = format!(
        "a real-time thread that never sleeps loses {} every second",
        fine_duration(length)
    );
    let mut claim = late_ticks::claim(source, title, share, confidence);
    claim.mechanism(
        "the kernel keeps 5 % of each second of a CPU for ordinary threads: the fair server (since \
         6.12) or real-time throttling (sched_rt_runtime_us) takes it from real-time ones"
            .to_owned(),
    );
    claim.trigger("it comes once a second, whatever the application does".to_owned());
    claim
}

/// How long real-time threads may run, as the kernel was set when the run was measured.
fn limits(case: &Case) -> Option<String> {
    let setting = |name: &str| case.run.fact(&format!("sysctl.kernel.{name}"));
    let (runtime, period) = (setting("sched_rt_runtime_us")?, setting("sched_rt_period_us")?);
    Some(format!("real-time threads get {runtime} us of each {period} us"))
}

/// Each row of ticks that were late because of one gap: the first of them is the latest.
fn gaps(source: &TimerSource) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for series in &source.series {
        let mut served_until = 0.0f64;
        for Tick(intended, late, _) in series.ticks.iter().copied() {
            let (intended, late) = (intended as f64, late as f64);
            if (SHORTEST_NS..LONGEST_NS).contains(&late) && intended > served_until {
                gaps.push(Gap { at: intended, ns: late });
            }
            if late >= SHORTEST_NS {
                served_until = served_until.max(intended + late);
            }
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use crate::causes::timers::made_up::{self, Ticks};

    /// A tick each millisecond; for 50 ms of each second nothing ran.
    fn throttled(intended_ns: u64) -> u64 {
        let into_second = intended_ns % 1_000_000_000;
        50_000_000u64.saturating_sub(into_second) + 10
    }

    #[test]
    fn gaps_of_50_ms_a_second_apart_in_a_real_time_thread_are_it() {
        let found = made_up::findings(Ticks::each_millisecond(4_990, throttled).real_time());
        assert_eq!(made_up::causes(&found), ["rt-throttling"]);
        let texts: Vec<&str> = found[0].evidence.iter().map(|e| e.text.as_str()).collect();
        assert!(texts[0].starts_with("5 gaps of 50.0 ms (median), 1.00 s apart"), "{texts:?}");
        assert!(texts[2].contains("950000 us of each 1000000 us"), "{texts:?}");
        assert!(found[0].share > 0.9, "{:#?}", found[0]);
        made_up::assert_others_ruled_out(&found[0]);
    }

    #[test]
    fn the_same_gaps_in_an_ordinary_thread_or_at_any_time_are_not() {
        let ordinary = Ticks::each_millisecond(5_000, throttled);
        assert_eq!(made_up::why_not(ordinary, "rt-throttling"), "no thread is real-time");
        let once = |ns| if ns < 1_000_000_000 { throttled(ns) } else { 10 };
        let once = Ticks::each_millisecond(5_000, once).real_time();
        let why = made_up::why_not(once, "rt-throttling");
        assert_eq!(why, "1 gaps of more than 15.0 ms, none a second after another");
    }

    /// Between the gaps an interrupt or a neighbour makes more ticks late, by much less.
    #[test]
    fn what_makes_other_ticks_late_speaks_not_against_it() {
        let ticks = Ticks::each_millisecond(5_000, throttled).real_time();
        let ticks = ticks.with_leg(model::LegKind::RealTimeThrottled, 50_000_000);
        let ticks =
            (0..4).fold(ticks, |ticks, _| ticks.with_leg(model::LegKind::Running, 2_000_000));
        assert_eq!(made_up::causes(&made_up::findings(ticks)), ["rt-throttling"]);
    }

    #[test]
    fn gaps_in_which_no_ordinary_thread_ran_are_not() {
        let ticks = Ticks::each_millisecond(5_000, throttled).real_time();
        let why =
            made_up::why_not(ticks.with_leg(model::LegKind::Stopped, 40_000_000), "rt-throttling");
        assert!(why.contains("'real-time throttled' is 0 ns (median), as recorded"), "{why}");
    }
}
