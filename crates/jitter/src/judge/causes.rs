//! The causes of late timers that have a name, and what rules each out.
//!
//! A law alone is no cause: sleeps grow on any idle host, and every thread has a slack. So what
//! the same sleeps cost whylag itself with a slack of 1 ns (the controls) is taken off first.

use model::{
    Evidence, Finding, JitterControl, JitterProgram, JitterSeries, NotRuledOut, RuledOut, Tick,
};
use stats::law::{Comparison, Fit, Law};
use stats::quantile;

use super::finding::{blank, chain, finish, law_evidence, mean_late};
use super::law::Judged;
use super::recorded::Recorded;
use super::throttled;
use crate::facts::is_real_time;
use crate::sources;
use crate::words::{part, time};

/// Id of each cause, with the law that it shows as.
const STEPPED: [(&str, Law); 2] =
    [("timer-ms-rounding", Law::Milliseconds), ("timer-jiffies", Law::Jiffies)];
/// A factor smaller than this is no error of arithmetic: clocks themselves are so far off.
const LEAST_FACTOR: f64 = 100e-6;
/// A cause of less than this part of the lateness is not named.
const LEAST_SHARE: f64 = 0.05;
/// Less slack than this, ns, is no cause of anything.
const LEAST_SLACK: f64 = 1_000.0;
const LONG_SLACK: f64 = 500_000.0;
/// By how much, as a part of the slack, lateness may differ from slack and waking up; and once more
/// for noise.
const TOLERANCE: f64 = 0.3;
/// Without a program, growth that a wrong conversion makes is linear over so many decades.
const OWN_SPREAD: f64 = 100.0;

/// A source that was judged.
pub struct Source<'a> {
    /// Its law.
    pub judged: &'a Judged,
    /// Its ticks.
    pub series: &'a [(&'a JitterSeries, &'a [Tick])],
    /// The program that it is, if it is none of whylag's own.
    pub program: Option<&'a JitterProgram>,
    /// What the host adds.
    pub controls: &'a [JitterControl],
    /// One jiffy.
    pub jiffy_ns: f64,
}

/// The causes found, and what is ruled out.
pub fn name(source: &Source) -> (Vec<Finding>, Vec<RuledOut>) {
    let mut findings = Vec::new();
    let Some(comparison) = &source.judged.comparison else { return (findings, Vec::new()) };
    findings.extend(throttled::finding(source));
    findings.extend(stepped(source, comparison));
    findings.extend(proportional(source, comparison));
    findings.extend(slack(source, comparison));
    findings.retain(|finding| finding.share >= LEAST_SHARE);
    let recorded = Recorded::of(source);
    let slack_ns = source.judged.slack_ns;
    if let Some(recorded) = &recorded {
        findings.retain(|finding| recorded.against(&finding.cause, slack_ns).is_none());
        for finding in &mut findings {
            finding.evidence.extend(recorded.evidence(&finding.cause, slack_ns));
        }
    }
    let mut excluded = excluded(source, comparison);
    excluded.retain(|(other, _)| findings.iter().all(|finding| finding.cause != other.cause));
    for (other, sure) in &mut excluded {
        if let Some(because) = recorded.as_ref().and_then(|r| r.against(&other.cause, slack_ns)) {
            (other.because, *sure) = (because, true);
        }
    }
    for finding in &mut findings {
        finding.ruled_out =
            excluded.iter().filter(|(_, sure)| *sure).map(|(other, _)| other.clone()).collect();
        finding.not_ruled_out = excluded
            .iter()
            .filter(|(_, sure)| !sure)
            .map(|(other, _)| NotRuledOut {
                cause: other.cause.clone(),
                because: other.because.clone(),
                tell_apart: "let it sleep for several different times, the longest at least twice \
                             the shortest (whylag's own timers: --ladder 100us..100ms)"
                    .to_owned(),
            })
            .collect();
    }
    findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    (findings, excluded.into_iter().map(|(other, _)| other).collect())
}

/// The causes whose evidence is not there; false: there are too few intervals to see it.
fn excluded(source: &Source, comparison: &Comparison) -> Vec<(RuledOut, bool)> {
    let best = comparison.fit(comparison.best);
    let left = |law: Law| match (comparison.fit(law), best) {
        _ if comparison.best == law => "its part of the lateness is small".to_owned(),
        (Some(fit), Some(best)) => {
            format!("it would leave {} of a tick, not {}", time(fit.left), time(best.left))
        }
        _ => "its law was not fitted".to_owned(),
    };
    let rule = |cause: &str, because: String| RuledOut { cause: cause.to_owned(), because };
    let mut all: Vec<(RuledOut, bool)> =
        STEPPED.into_iter().map(|(cause, law)| (rule(cause, left(law)), true)).collect();
    let linear = comparison.fit(Law::Proportional);
    all.push(match linear.and_then(|fit| fit.factor) {
        None => match usual_part(source).filter(|usual| usual.abs() < LEAST_FACTOR) {
            Some(usual) => {
                let text =
                    format!("half of the ticks are late by {} of the time or less", part(usual));
                (rule("timer-proportional", text), true)
            }
            None => {
                let text = "all times asked for were about the same".to_owned();
                (rule("timer-proportional", text), comparison.best != Law::Constant)
            }
        },
        Some(_) if comparison.best != Law::Proportional => {
            (rule("timer-proportional", left(Law::Proportional)), true)
        }
        Some(factor) => {
            let text = format!(
                "{} of the time asked for is no more than what the host adds to any timer ({})",
                part(factor.estimate),
                part(control_factor(source.controls).map_or(0.0, |(host, _)| host))
            );
            (rule("timer-proportional", text), true)
        }
    });
    let slack = match (source.judged.threads.iter().any(is_real_time), source.judged.slack_ns) {
        (true, _) => "it does not apply to real-time threads".to_owned(),
        (_, None) => "it could not be read, or differs between threads".to_owned(),
        (_, Some(ns)) => {
            format!("it is {}, which is not what its lateness is made of", time(ns as f64))
        }
    };
    all.push((rule("timer-slack", slack), true));
    all.push((rule("rt-throttling", throttled::why_not(source)), true));
    all
}

/// Lateness as a part of the time asked for: the median. A wrong factor makes every tick late.
fn usual_part(source: &Source) -> Option<f64> {
    let ticks = source.series.iter().flat_map(|(_, ticks)| ticks.iter());
    let parts = ticks.filter(|tick| tick.2 > 0).map(|tick| tick.1 as f64 / tick.2 as f64);
    quantile::median(&parts.collect::<Vec<_>>())
}

fn stepped(source: &Source, comparison: &Comparison) -> Option<Finding> {
    let (cause, law) = STEPPED.into_iter().find(|(_, law)| *law == comparison.best)?;
    let fit = comparison.fit(law)?;
    if may_be_slack(source, fit) {
        return None;
    }
    let (title, mechanism, fix) = match law {
        Law::Milliseconds => (
            "timers are rounded to whole milliseconds",
            "epoll_wait and poll take their timeout in whole milliseconds",
            "use epoll_pwait2, ppoll or a timerfd, which take nanoseconds",
        ),
        _ => (
            "timers end with a tick of the kernel's low-resolution clock",
            "timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO) and others inside the kernel are \
             counted in jiffies and rounded up, and one more is added",
            "wait with ppoll, epoll_pwait2 or a timerfd, then receive without a timeout",
        ),
    };
    let mut finding = blank(cause, title, fix);
    // The constant may hold whole steps.
    let step = if law == Law::Milliseconds { 1e6 } else { source.jiffy_ns };
    let rest = fit.constant.estimate - (fit.constant.estimate / step).round() * step;
    finding.share = 1.0 - (rest.abs() / mean_late(source).abs()).clamp(0.0, 1.0);
    finding.confidence = if fit.explains > 0.5 { 0.95 } else { 0.7 };
    finding.chain = chain(source, mechanism, None);
    finding.evidence = vec![law_evidence(source, fit)];
    if source.program.is_none() && sources::asks_for_whole_ms(&source.judged.law.source) {
        finding.doubts.push("it is whylag that asks for whole milliseconds here".to_owned());
    }
    Some(finish(source, finding))
}

/// True if steps that describe the lateness only roughly can come of a long slack: on a busy CPU the
/// tick of the kernel, or any other interrupt, ends a sleep whose time is over.
fn may_be_slack(source: &Source, fit: &Fit) -> bool {
    let judged = source.judged;
    let step = if fit.law == Law::Milliseconds { 1e6 } else { source.jiffy_ns };
    let long = judged.slack_ns.is_some_and(|slack| slack as f64 >= step / 2.0);
    let sleeps = sources::has_slack(&judged.law.source) && !judged.threads.iter().any(is_real_time);
    long && sleeps && fit.explains < 0.5
}

fn proportional(source: &Source, comparison: &Comparison) -> Option<Finding> {
    let fit = comparison.fit(Law::Proportional).filter(|_| comparison.best == Law::Proportional)?;
    let factor = fit.factor?;
    let (host, wrong) = control_factor(source.controls).unwrap_or((0.0, 0.0));
    let is_much = factor.estimate.abs() > LEAST_FACTOR && !factor.contains(0.0);
    // How far the host's own growth is from the law at least.
    let more = (factor.low - host).max(host - factor.high) - wrong;
    let is_more = more > host.abs().max(LEAST_FACTOR) || keeps_closer(source.controls, fit);
    let is_wide = source.program.is_some() || comparison.spread >= OWN_SPREAD;
    if !(is_much && is_more && is_wide) {
        return None;
    }
    let title = format!(
        "every timer is {} of the time asked for too {}",
        part(factor.estimate.abs()),
        if factor.estimate > 0.0 { "late" } else { "early" }
    );
    let fix = "correct the conversion between nanoseconds and ticks: keep the factor in more bits \
               (multiply and shift, as the kernel does), or the frequency it is made from; \
               'whylag jitter --factor' computes how many";
    let mut finding = blank("timer-proportional", &title, fix);
    let typical = median_asked(source);
    finding.share = (factor.estimate * typical / mean_late(source)).abs().clamp(0.0, 1.0);
    finding.confidence = if fit.explains > 0.5 { 0.95 } else { 0.75 };
    let pairs = source.series.iter().find_map(|(series, _)| series.pairs.as_ref());
    let trigger = pairs.map(|pairs| {
        format!(
            "another timer cuts a sleep short {} times: that tick comes {} early and the next {} \
             late, which looks like jitter",
            pairs.pairs,
            time(-pairs.early_ns),
            time(pairs.late_ns)
        )
    });
    finding.chain =
        chain(source, "time is converted with a factor that is not exact enough", trigger);
    finding.evidence = vec![law_evidence(source, fit)];
    if !source.controls.is_empty() {
        let text = format!(
            "whylag's own timers at the same times asked for: {}; they grow by {}",
            controls(source),
            part(host)
        );
        finding.evidence.push(Evidence { text, source: "clock_nanosleep, slack 1 ns".into() });
    }
    Some(finish(source, finding))
}

fn slack(source: &Source, comparison: &Comparison) -> Option<Finding> {
    let slack = source.judged.slack_ns? as f64;
    let threads = &source.judged.threads;
    if threads.iter().any(is_real_time) || !sources::has_slack(&source.judged.law.source) {
        return None;
    }
    let fit = comparison.fit(comparison.best)?;
    let by_poll = comparison.best == Law::PollSlack;
    let was_seen = Recorded::of(source)
        .is_some_and(|recorded| recorded.evidence("timer-slack", Some(slack as u64)).is_some());
    if matches!(comparison.best, Law::Milliseconds | Law::Jiffies)
        && !may_be_slack(source, fit)
        && !was_seen
    {
        return None;
    }
    // What the shortest sleeps cost whylag without slack is what waking up costs here.
    let waking = source.controls.iter().min_by_key(|control| control.asked_ns);
    let waking_ns = waking.map_or(0.0, |control| control.late_ns as f64);
    // What grows with the time asked for is something else.
    let growing = match (fit.law, fit.factor) {
        (Law::Proportional, Some(factor)) => factor.estimate,
        _ => 0.0,
    };
    let ticks = source.series.iter().flat_map(|(_, ticks)| ticks.iter());
    let late: Vec<f64> = ticks.map(|t| t.1 as f64 - growing * t.2 as f64).collect();
    // On an idle CPU all of the slack is used; on a busy one any interrupt ends it sooner, which
    // can be told from other delays only if the slack is long.
    let middle = quantile::median(&late).unwrap_or(0.0);
    let away: Vec<f64> = late.iter().map(|late| (late - middle).abs()).collect();
    let noise = quantile::median(&away).unwrap_or(0.0).min(TOLERANCE * slack);
    let long = (slack >= LONG_SLACK).then(|| quantile::of(&late, 0.9)).flatten();
    let is_slack = [Some(middle), long]
        .into_iter()
        .flatten()
        .any(|late| (late - waking_ns - slack).abs() <= TOLERANCE * slack + noise);
    if !(by_poll || (is_slack || was_seen) && slack >= LEAST_SLACK) {
        return None;
    }
    let by_slack: Vec<f64> = late.iter().map(|late| (late - waking_ns).clamp(0.0, slack)).collect();
    let (title, fix) = if by_poll {
        (
            "poll, select and epoll may be late by a thousandth of the time asked for".to_owned(),
            "use a timerfd, which has no tolerance; or a real-time policy",
        )
    } else {
        (
            format!("the kernel may be {} late by the thread's timer slack, and is", time(slack)),
            "prctl(PR_SET_TIMERSLACK, 1) in the thread that sleeps, a timerfd, which has no \
             slack, or a real-time policy",
        )
    };
    let mut finding = blank("timer-slack", &title, fix);
    let mean = by_slack.iter().sum::<f64>() / by_slack.len().max(1) as f64;
    finding.share = (mean / mean_late(source)).clamp(0.0, 1.0);
    finding.confidence = if waking.is_some() { 0.95 } else { 0.7 };
    if waking.is_none() {
        finding.doubts.push("no control with another slack was measured".to_owned());
    }
    finding.chain = chain(
        source,
        "the kernel puts off timers by up to their slack, to wake up less often",
        None,
    );
    finding.evidence = vec![law_evidence(source, fit)];
    finding.evidence.push(Evidence {
        text: format!(
            "timer slack {} of {}",
            time(slack),
            threads.first().map_or_else(|| "the thread".to_owned(), |t| format!("tid {}", t.tid))
        ),
        source: "/proc/PID/timerslack_ns".to_owned(),
    });
    if waking.is_some() {
        finding.evidence.push(Evidence {
            text: format!("with a slack of 1 ns whylag's own sleeps are {}", controls(source)),
            source: "clock_nanosleep".to_owned(),
        });
    }
    Some(finish(source, finding))
}

/// `7.10 us late at 1.00 ms, 9.00 us at 20.0 ms (n 25 each)`.
fn controls(source: &Source) -> String {
    let each: Vec<String> = source
        .controls
        .iter()
        .map(|c| {
            format!("{} late at {} (n {})", time(c.late_ns as f64), time(c.asked_ns as f64), c.n)
        })
        .collect();
    each.join(", ")
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

fn median_asked(source: &Source) -> f64 {
    let asked: Vec<f64> =
        source.series.iter().flat_map(|(_, ticks)| ticks.iter()).map(|t| t.2 as f64).collect();
    quantile::median(&asked).unwrap_or(0.0)
}
