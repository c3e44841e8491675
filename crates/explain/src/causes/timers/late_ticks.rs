//! What the causes of late ticks share. They claim a part of the lateness, not time that threads
//! lost, and are looked for where timers were measured.

use stats::law::{Comparison, Fit, Law};

use crate::case::Case;
use crate::cause::{Absent, Claim, LatePart};
use crate::timers::recorded::{SOURCE, Sign};
use crate::timers::source::TimerSource;
use model::units::fine_duration;

/// What was measured, and its law.
pub fn of<'a>(case: &Case<'a>) -> Result<(&'a TimerSource<'a>, &'a Comparison), Absent> {
    let not_measured = || Absent("no timers were measured".to_owned());
    let source = case.timers.ok_or_else(not_measured)?;
    let comparison = source.comparison.as_ref().ok_or_else(|| Absent(source.law.text.clone()))?;
    Ok((source, comparison))
}

/// Without a claim if the recording of the latest ticks speaks against the cause. It is better
/// evidence than any law: it was seen, and other programs on the CPU do not blur it.
pub fn not_refuted(source: &TimerSource, sign: Sign) -> Result<(), Absent> {
    let against = source.recorded.as_ref().and_then(|recorded| recorded.against(sign));
    against.map_or(Ok(()), |because| Err(Absent(because)))
}

/// What the recording of the latest ticks says for the cause.
pub fn seen(source: &TimerSource, sign: Sign) -> Option<String> {
    source.recorded.as_ref()?.evidence(sign)
}

/// A claim of a part of the lateness.
pub fn claim(source: &TimerSource, title: String, share: f64, confidence: f64) -> Claim {
    let ns = (share * source.mean_late().abs() * source.intended() as f64) as u64;
    let late = LatePart { share, ns, confidence, doubts: Vec::new() };
    Claim { late: Some(late), ..Claim::new(title, model::Accounts::default(), source.intended()) }
}

/// Adds a reason for less confidence, which is taken into account already.
pub fn doubt(claim: &mut Claim, text: &str) {
    claim.late.iter_mut().for_each(|late| late.doubts.push(text.to_owned()));
}

/// Adds the law as evidence.
pub fn saw_law(claim: &mut Claim, source: &TimerSource, fit: &Fit) {
    let law = &source.law;
    let text = format!(
        "lateness is {}; {} ticks at {} different times asked for; it leaves {} of a tick",
        law.text,
        law.n,
        law.intervals,
        fine_duration(fit.left)
    );
    claim.saw(text, "intended and actual times, CLOCK_MONOTONIC");
}

/// Adds what was recorded of the latest ticks.
pub fn saw_recorded(claim: &mut Claim, source: &TimerSource, sign: Sign) {
    claim.saw_if(seen(source, sign), SOURCE);
}

/// Why a law is not the one, or not enough.
pub fn not_this_law(comparison: &Comparison, law: Law) -> Absent {
    Absent(match (comparison.fit(law), comparison.fit(comparison.best)) {
        _ if comparison.best == law => "its part of the lateness is small".to_owned(),
        (Some(fit), Some(best)) => {
            format!(
                "it would leave {} of a tick, not {}",
                fine_duration(fit.left),
                fine_duration(best.left)
            )
        }
        _ => "its law was not fitted".to_owned(),
    })
}

/// `7.10 us late at 1.00 ms (n 25), 9.00 us late at 20.0 ms (n 25)`.
pub fn controls(source: &TimerSource) -> String {
    let each: Vec<String> = source
        .controls
        .iter()
        .map(|c| {
            format!(
                "{} late at {} (n {})",
                fine_duration(c.late_ns as f64),
                fine_duration(c.asked_ns as f64),
                c.n
            )
        })
        .collect();
    each.join(", ")
}
