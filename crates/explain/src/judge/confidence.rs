//! How far a finding can be trusted, and why not further.
//!
//! Confidence starts at 1 and is multiplied by a factor for each doubt; each doubt is said.
//!
//! | doubt | factor |
//! |---|---|
//! | events were lost; of a part of a run, within a second of it | 1 - lost / (lost + received), at most 0.95, at least 0.2 |
//! | values found no histogram: times are exact, counts and quantiles are not | 0.95 |
//! | thread states were sampled from /proc | 0.6 |
//! | a part of the recorder that the cause needs was off | 0.6 each |
//! | fewer than 10 waits, and packets dropped through it; fewer than 30; unless the cause strikes once | 0.5; 0.8 |
//! | more than 5 % of the wall time is unaccounted | 1 - that share |
//! | the same, where that is what threads did between intervals kept whole | 1 - half of it |
//! | what the cause itself could not see | as the cause says |
//!
//! Causes of late ticks say their confidence themselves: it comes from how well the law fits.

use model::Account;

use crate::case::Case;
use crate::cause::{Cause, Claim};
use crate::text::{count, counted, percent};

/// Confidence from 0 to 1 in `claim`, and the reasons why it is below 1.
pub fn of(case: &Case, cause: &Cause, claim: &Claim) -> (f64, Vec<String>) {
    if let Some(late) = &claim.late {
        return (late.confidence, late.doubts.clone());
    }
    let mut confidence = 1.0;
    let mut doubts = Vec::new();
    let mut doubt = |factor: f64, text: String| {
        confidence *= factor;
        doubts.push(text);
    };

    let values = case.run.losses.values();
    if values > 0 {
        doubt(
            0.95,
            format!("{} in no histogram: counts of calls are too low", counted(values, "value")),
        );
    }
    let lost = case.run.losses.total() - values;
    if lost > 0 {
        let received = case.run.cost.events;
        let kept = received as f64 / (lost as f64 + received as f64);
        doubt(
            kept.clamp(0.2, 0.95),
            match case.scope() {
                Some(_) => format!(
                    "{} lost within a second of it; about {} received in that time",
                    counted(lost, "event"),
                    count(received)
                ),
                None => format!("{} lost; {} received", counted(lost, "event"), count(received)),
            },
        );
    }
    if case.run.header.sampled {
        doubt(0.6, "thread states were sampled from /proc: times are estimates".to_owned());
    }
    for off in case.off(cause.needs) {
        doubt(0.6, format!("the recorder's part '{}' was off: {}", off.part, off.because));
    }
    match claim.waits.max(claim.dropped) {
        _ if claim.longest_ns > 0 => {}
        n @ 0..10 => doubt(0.5, format!("only {} seen", counted(n, "wait"))),
        n @ 10..30 => doubt(0.8, format!("only {} seen", counted(n, "wait"))),
        _ => {}
    }
    let unaccounted = case.accounts.get(Account::Unaccounted);
    if unaccounted > case.wall_ns / 20 && case.scope().is_some_and(|scope| !scope.exact) {
        let known = case.wall_ns.saturating_sub(unaccounted);
        doubt(
            1.0 - unaccounted as f64 / case.wall_ns as f64 / 2.0,
            format!(
                "only {} of the wall time is in intervals kept whole",
                percent(known, case.wall_ns)
            ),
        );
    } else if unaccounted > case.wall_ns / 20 {
        doubt(
            1.0 - unaccounted as f64 / case.wall_ns as f64,
            format!("{} of the wall time is unaccounted", percent(unaccounted, case.wall_ns)),
        );
    }
    for own in &claim.doubts {
        doubt(own.factor, own.text.clone());
    }
    (confidence, doubts)
}
