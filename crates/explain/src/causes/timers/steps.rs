//! Timers that end at whole steps of time: milliseconds, or ticks of the kernel.

use stats::law::{Comparison, Fit, Law};

use crate::cause::{Absent, Claim};
use crate::causes::timers::late_ticks;
use crate::timers::recorded::Sign;
use crate::timers::source::TimerSource;

/// A law of steps, and the cause that shows so.
pub struct Steps {
    pub law: Law,
    pub step_ns: f64,
    pub title: &'static str,
    pub mechanism: &'static str,
    pub sign: Sign,
}

/// Claims what the steps make of the lateness, if they are its law.
pub fn claim(
    source: &TimerSource,
    comparison: &Comparison,
    steps: &Steps,
) -> Result<Claim, Absent> {
    late_ticks::not_refuted(source, steps.sign)?;
    let fit = comparison
        .fit(steps.law)
        .filter(|_| comparison.best == steps.law)
        .filter(|fit| !may_be_slack(source, fit, steps.step_ns))
        .ok_or_else(|| late_ticks::not_this_law(comparison, steps.law))?;
    // The constant may hold whole steps.
    let constant = fit.constant.estimate;
    let rest = constant - (constant / steps.step_ns).round() * steps.step_ns;
    let share = 1.0 - (rest.abs() / source.mean_late().abs()).clamp(0.0, 1.0);
    let confidence = if fit.explains > 0.5 { 0.95 } else { 0.7 };
    let mut claim = late_ticks::claim(source, steps.title.to_owned(), share, confidence);
    claim.mechanism(steps.mechanism.to_owned());
    late_ticks::saw_law(&mut claim, source, fit);
    late_ticks::saw_recorded(&mut claim, source, steps.sign);
    Ok(claim)
}

/// True if steps that describe the lateness only roughly can come of a long slack: on a busy CPU the
/// tick of the kernel, or any other interrupt, ends a sleep whose time is over.
pub fn may_be_slack(source: &TimerSource, fit: &Fit, step_ns: f64) -> bool {
    let is_long = source.slack_ns.is_some_and(|slack| slack as f64 >= step_ns / 2.0);
    is_long && source.has_slack() && fit.explains < 0.5
}
