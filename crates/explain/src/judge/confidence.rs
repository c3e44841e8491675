//! How far a finding can be trusted, and why not further.
//!
//! Confidence starts at 1 and is multiplied by a factor for each doubt; each doubt is said.
//!
//! | doubt | factor |
//! |---|---|
//! | events were lost; of a part of a run, within a second of it | what was kept of their kind, at most 0.95, at least 0.2 |
//! | values found no histogram: times are exact, counts and quantiles are not | 0.95 |
//! | thread states were sampled from /proc | 0.6 |
//! | a part of the recorder that the cause needs was off | 0.6 each |
//! | fewer than 10 waits, and packets dropped through it; fewer than 30; unless the cause strikes once, or one interval is asked about | 0.5; 0.8 |
//! | more than 5 % of the wall time is unaccounted | 1 - that share |
//! | the same, where that is what threads did between intervals kept whole | 1 - half of it |
//! | time on a CPU in a part of a run, by samples of all of the run | 0.7 |
//! | system calls were not recorded, and the time was on a CPU for the most part: samples divide it | 0.9 |
//! | what the cause itself could not see | as the cause says |
//!
//! What was kept of a kind: records that found a ring full against those received; all others (a
//! wake-up that the host hid, a lock inside of a lock, a full map) against the runs of the BPF
//! programs, each of which loses one at most.
//!
//! Causes of late ticks say their confidence themselves: it comes from how well the law fits.

use model::{Account, Losses, RecorderPart};

use crate::case::Case;
use crate::cause::{Cause, Claim, Needs};
use crate::part::on_cpu::is_on_cpu;
use crate::text::{count, counted, percent};

/// How the kinds of losses end that found a ring full: each is one record.
const RING_FULL: &str = "(ring full)";

/// Where no more is lost than one event in twenty thousand the report shows it, and no finding depends on it.
const NEARLY_ALL: f64 = 0.99995;

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
    if let Some(lost) = Lost::of(case) {
        doubt(lost.kept.clamp(0.2, 0.95), lost.text);
    }
    if case.run.header.sampled {
        doubt(0.6, "thread states were sampled from /proc: times are estimates".to_owned());
    }
    for off in case.off(cause.needs) {
        doubt(0.6, format!("the recorder's part '{}' was off: {}", off.part, off.because));
    }
    match claim.waits.max(claim.dropped) {
        _ if claim.longest_ns > 0 || is_of_one_interval(case) => {}
        n @ 0..10 => doubt(0.5, format!("only {} seen", counted(n, "wait"))),
        n @ 10..30 => doubt(0.8, format!("only {} seen", counted(n, "wait"))),
        _ => {}
    }
    let estimated = case.scope().map_or(0, |scope| scope.estimated_ns);
    let unaccounted = case.accounts.get(Account::Unaccounted).saturating_add(estimated);
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
    if has_samples_of_others(case) && claim.lost.sum_of(is_on_cpu) > claim.lost.total() / 2 {
        doubt(0.7, "where on a CPU it was is known of all of the run, not of this part".to_owned());
    }
    if let Some(samples) = samples_that_divide(case)
        && claim.lost.sum_of(is_divided) > claim.lost.total() / 2
    {
        doubt(
            0.9,
            format!("{samples} of the CPUs say in which calls it ran, which were not recorded"),
        );
    }
    for own in &claim.doubts {
        doubt(own.factor, own.text.clone());
    }
    (confidence, doubts)
}

/// Time on a CPU that only samples divide where system calls were not recorded.
fn is_divided(account: Account) -> bool {
    matches!(account, Account::User | Account::Syscall(_))
}

/// How many samples there are of the CPUs, where these say what time on a CPU was spent in.
fn samples_that_divide(case: &Case) -> Option<String> {
    if case.off(Needs::parts(&[RecorderPart::SystemCalls])).is_empty() {
        return None;
    }
    let samples = case.run.sums.paths.iter().filter(|path| path.sampled).map(|path| path.count);
    Some(counted(samples.fold(0, u64::saturating_add), "sample"))
}

/// Of one interval there is one wait, and all of it was seen.
fn is_of_one_interval(case: &Case) -> bool {
    case.scope().is_some_and(|scope| scope.outlier.is_some())
}

/// Whether the samples are not of this part of a run alone: of its processes at all times, or of
/// other threads of theirs.
fn has_samples_of_others(case: &Case) -> bool {
    let Some(scope) = case.scope() else { return false };
    let is_in_part = |tid| case.run.threads.iter().any(|thread| thread.tid == tid);
    let tgid = case.run.threads.first().map(|thread| thread.tgid);
    let mut of_process = case.whole().threads.iter().filter(|thread| Some(thread.tgid) == tgid);
    !scope.exact || of_process.any(|thread| !is_in_part(thread.tid))
}

/// Events that were lost, values without a histogram apart.
struct Lost {
    /// The part that was not lost, 0 to 1.
    kept: f64,
    text: String,
}

impl Lost {
    fn of(case: &Case) -> Option<Lost> {
        let (mut unread, mut unseen) = (0u64, 0u64);
        for (kind, lost) in case.run.losses.by_kind() {
            match kind.as_str() {
                Losses::VALUES => {}
                kind if kind.ends_with(RING_FULL) => unread = unread.saturating_add(lost),
                _ => unseen = unseen.saturating_add(lost),
            }
        }
        let cost = &case.run.cost;
        // What sampled /proc runs no programs.
        let runs = if cost.bpf_runs > 0 { cost.bpf_runs } else { cost.events };
        let kept = |lost: u64, of: u64| of as f64 / (lost as f64 + of as f64).max(1.0);
        let near = if case.scope().is_some() { " within a second of it" } else { "" };
        let mut said = Vec::new();
        if unread > 0 {
            let (lost, received) = (counted(unread, "record"), count(cost.events));
            said.push(format!("{lost} lost{near}; {received} received"));
        }
        if unseen > 0 {
            let lost = counted(unseen, "event");
            said.push(format!("{lost} lost{near} in {} of BPF programs", counted(runs, "run")));
        }
        let of_unread = if unread > 0 { kept(unread, cost.events) } else { 1.0 };
        let of_unseen = if unseen > 0 { kept(unseen, runs) } else { 1.0 };
        let kept = of_unread * of_unseen;
        (kept < NEARLY_ALL).then(|| Lost { kept, text: said.join("; ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, runner};

    /// Confidence in cpu-runqueue, with 50 received records and 100,000 runs of programs.
    fn confidence(kind: &str, lost: u64) -> f64 {
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (Account::RunnablePreempted, SECOND)])
            .runner(runner(10, 77, 900, SECOND))
            .lost(kind, lost, 50)
            .build();
        run.cost.bpf_runs = 100_000;
        crate::explain(&run).findings[0].confidence
    }

    #[test]
    fn each_loss_is_set_against_what_could_have_been_lost() {
        assert_eq!(confidence("wakeups and switches (hidden by the host)", 50), 0.95);
        assert_eq!(confidence("nested lock waits", 50), 0.95);
        assert_eq!(confidence("outliers (ring full)", 50), 0.5);
        assert!(confidence("nested lock waits", 100_000) <= 0.5);
    }
}
