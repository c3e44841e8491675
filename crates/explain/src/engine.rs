//! Runs the catalogue over a run and ranks what it claims.
//!
//! A claim becomes a finding only if it explains enough:
//! - at least 10 ms in all (less goes unnoticed), and either
//! - at least 5 % of the wall time of the watched threads, or
//! - for programs with many idle threads: a fifth of a CPU all the time, and a quarter of all that
//!   the threads used, spent on work that could be avoided, or
//! - for programs that mostly wait for work: at least 25 % of the time in which their threads
//!   worked or wanted to, at least 1 % of the length of the recording, and waits of at least
//!   100 us on average. The last excludes the ordinary price of a wake-up, which an idle program
//!   pays before each of its short turns on a CPU.
//!
//! A cause that strikes once in the life of a process has to have made one stall of 2 ms: messages
//! are lost in that time, and it is no part of anything.
//!
//! A claim below that stays part of the unexplained time. One through which packets were dropped is
//! always a finding: what they cost is elsewhere.
//!
//! A part of a run that was asked about (`focused.rs`) may be short and still deserve its cause: there
//! a claim has to be 5 % of the lost time of the part, and 0.5 % of the part's length.

use std::cmp::Reverse;

use model::{Accounts, Explanation, Finding, Link, NotRuledOut, RuledOut, Run, Target};

use crate::case::Case;
use crate::causes::{ALL, Absent, Cause, Claim, Verdict};
use crate::company::coincidences;
use crate::confidence;
use crate::focused::Focused;
use crate::lost::{Class, class};
use crate::phase;
use crate::tell_apart;
use crate::text::{duration, percent};
use crate::unexplained;

const FLOOR_NS: u64 = 10_000_000;
const FLOOR_MEAN_NS: u64 = 100_000;
const FLOOR_ONCE_NS: u64 = 2_000_000;

/// Explains where the threads of `run` lost their time.
///
/// Shares of the findings add up to at most 1; lost time that none explains is in `unexplained`,
/// by account. Findings through which packets were dropped come first, the largest share first of
/// these and of the others.
pub fn explain(run: &Run) -> Explanation {
    explain_case(&Case::new(run))
}

/// Explains a part of a run alone. Threads outside it are met only at the far ends of chains.
pub fn explain_focused(focused: &Focused) -> Explanation {
    explain_case(&Case::focused(focused))
}

/// What each cause says, no nanosecond claimed by two.
pub(crate) fn verdicts(case: &Case) -> Vec<(&'static Cause, Verdict)> {
    let mut verdicts: Vec<(&Cause, Verdict)> =
        ALL.iter().map(|cause| (*cause, (cause.examine)(case))).collect();
    cap(&mut verdicts, &case.claimable(), &case.idle());
    verdicts
}

pub(crate) fn explain_case(case: &Case) -> Explanation {
    let verdicts = verdicts(case);
    let lost = lost_by_claims(case, &verdicts);
    let lost_ns = lost.total();
    let mut unexplained = lost;
    let mut findings = Vec::new();
    for (cause, verdict) in &verdicts {
        if let Ok(claim) = verdict
            && is_worth_naming(case, claim)
        {
            unexplained = subtract(&unexplained, &claim.lost);
            let finding = finding(case, cause, claim, lost_ns, &verdicts);
            findings.push((claim.dropped > 0, finding));
        }
    }
    findings.sort_by_key(|(dropped, finding)| (!dropped, Reverse(finding.lost_ns)));
    let findings = findings.into_iter().map(|(_, finding)| finding).collect();
    let unexplained = unexplained.largest_first();

    Explanation {
        run: case.run.id,
        scope: case.scope().cloned(),
        wall_ns: case.wall_ns,
        unaccounted_ns: case.accounts.get(model::Account::Unaccounted),
        lost_ns,
        idle_ns: case.idle_ns.saturating_sub(
            verdicts
                .iter()
                .filter_map(|(_, verdict)| verdict.as_ref().ok())
                .filter(|claim| claim.takes_idle && is_worth_naming(case, claim))
                .map(|claim| claim.lost.sum_of(|account| class(account) == Class::Idle))
                .fold(0, u64::saturating_add),
        ),
        accounts: case
            .accounts
            .largest_first()
            .into_iter()
            .map(|(account, ns)| (account, ns, share(ns, case.wall_ns)))
            .collect(),
        findings,
        unexplained_stacks: unexplained::stacks(case, &unexplained),
        unexplained,
        rhythms: phase::rhythms(case.run),
        coincidences: coincidences(case.run),
        losses: case.run.losses.by_kind(),
    }
}

/// Lost time, and the work and waiting that findings say was avoidable.
fn lost_by_claims(case: &Case, verdicts: &[(&Cause, Verdict)]) -> Accounts {
    let mut lost = case.lost.clone();
    for claim in verdicts.iter().filter_map(|(_, verdict)| verdict.as_ref().ok()) {
        let is_added = |a| match class(a) {
            Class::Work => true,
            Class::Idle => claim.takes_idle,
            _ => false,
        };
        for (account, ns) in claim.lost.iter().filter(|(a, _)| is_added(*a)) {
            if is_worth_naming(case, claim) {
                lost.add(account, ns);
            }
        }
    }
    lost
}

/// Lets no two claims have the same nanosecond. Mechanisms are served first, then symptoms, of each
/// the larger claim first, and none gets more of an account than there is.
fn cap(verdicts: &mut [(&Cause, Verdict)], claimable: &Accounts, idle: &Accounts) {
    let mut claims: Vec<(bool, &mut Claim)> = verdicts
        .iter_mut()
        .filter_map(|(cause, verdict)| Some((cause.symptom, verdict.as_mut().ok()?)))
        .collect();
    claims.sort_by_key(|(symptom, claim)| (*symptom, Reverse(claim.lost.total())));
    let (mut left, mut idle_left) = (claimable.clone(), idle.clone());
    for (_, claim) in claims {
        let of_idle = |account| claim.takes_idle && class(account) == Class::Idle;
        let room = |a| if of_idle(a) { idle_left.get(a) } else { left.get(a) };
        claim.lost = claim.lost.iter().map(|(a, ns)| (a, ns.min(room(a)))).collect();
        let taken = claim.lost.iter().partition::<Vec<_>, _>(|(a, _)| of_idle(*a));
        idle_left = subtract(&idle_left, &taken.0.into_iter().collect());
        left = subtract(&left, &taken.1.into_iter().collect());
    }
}

fn subtract(from: &Accounts, what: &Accounts) -> Accounts {
    from.iter().map(|(account, ns)| (account, ns.saturating_sub(what.get(account)))).collect()
}

/// The rule at the top of this file.
fn is_worth_naming(case: &Case, claim: &Claim) -> bool {
    shortfall(case, claim).is_none()
}

/// Which part of the rule a claim does not meet, with its figures.
pub(crate) fn shortfall(case: &Case, claim: &Claim) -> Option<String> {
    let lost = claim.lost.total();
    if claim.dropped > 0 {
        return None;
    }
    if case.scope().is_some() {
        return shortfall_in_part(case, lost);
    }
    if claim.longest_ns >= FLOOR_ONCE_NS {
        return None;
    }
    if lost < FLOOR_NS {
        return Some(format!("{} is less than {}", duration(lost), duration(FLOOR_NS)));
    }
    let is_part = |fraction: u64, whole: u64| lost >= whole / fraction;
    let busy_program = is_part(20, case.wall_ns);
    let idle_program = is_part(4, case.active_ns())
        && is_part(100, case.run.length_ns())
        && lost / claim.waits.max(1) >= FLOOR_MEAN_NS;
    let avoidable = claim.lost.sum_of(|account| class(account) == Class::Work);
    let work = case.accounts.sum_of(|account| class(account) == Class::Work);
    let dear_work = avoidable >= case.run.length_ns() / 5 && avoidable >= work / 4 && avoidable > 0;
    if busy_program || idle_program || dear_work {
        return None;
    }
    Some(format!(
        "{} is {} of the wall time (5 % are needed) and {} of the time in which the threads \
         worked or wanted to (25 % are, with 1 % of the recording's length and waits of 100 us on \
         average; here {} and {}); nor is it avoidable work of a fifth of a CPU and a quarter of \
         their CPU time",
        duration(lost),
        percent(lost, case.wall_ns),
        percent(lost, case.active_ns()),
        percent(lost, case.run.length_ns()),
        duration(lost / claim.waits.max(1))
    ))
}

/// The same of a part of a run.
fn shortfall_in_part(case: &Case, lost: u64) -> Option<String> {
    let (all, length) = (case.lost.total(), case.run.length_ns());
    if lost > 0 && lost >= all / 20 && lost >= length / 200 {
        return None;
    }
    Some(format!(
        "{} is {} of the {} lost here (5 % are needed) and {} of its length of {} (0.5 % are)",
        duration(lost),
        percent(lost, all),
        duration(all),
        percent(lost, length),
        duration(length)
    ))
}

fn finding(
    case: &Case,
    cause: &Cause,
    claim: &Claim,
    all_lost_ns: u64,
    verdicts: &[(&Cause, Verdict)],
) -> Finding {
    let (confidence, doubts) = confidence::of(case, cause, claim);
    let mut ruled_out = claim.ruled_out.clone();
    let mut not_ruled_out = Vec::new();
    for id in cause.look_alikes {
        if ruled_out.iter().all(|other| other.cause != *id)
            && let Some((other, verdict)) = verdicts.iter().find(|(other, _)| other.id == *id)
        {
            let other_id = (*id).to_owned();
            match why_not(case, other, verdict) {
                Ok(because) => ruled_out.push(RuledOut { cause: other_id, because }),
                Err(because) => not_ruled_out.push(NotRuledOut {
                    cause: other_id,
                    because,
                    tell_apart: tell_apart::measurement(cause.id, id),
                }),
            }
        }
    }
    let lost_ns = claim.lost.total();
    let mut chain = vec![symptom(case, claim, lost_ns)];
    chain.extend(claim.chain.iter().cloned());
    Finding {
        cause: cause.id.to_owned(),
        title: claim.title.clone(),
        share: share(lost_ns, all_lost_ns),
        lost_ns,
        confidence,
        doubts,
        chain,
        evidence: claim.evidence.clone(),
        ruled_out,
        not_ruled_out,
        fix: cause.fix.to_owned(),
        reproduce: cause.reproduce.to_owned(),
        verify: verify(&case.run.header.target),
    }
}

/// Every chain begins with what was lost, in the same words.
fn symptom(case: &Case, claim: &Claim, lost_ns: u64) -> Link {
    let threads = case.threads_in(|account| claim.lost.get(account) > 0).count() as u64;
    let dropped = match claim.dropped {
        0 => String::new(),
        n => format!("{} dropped; ", crate::text::counted(n, "packet")),
    };
    let mut text = format!(
        "{dropped}{} lost {}: {} of their wall time",
        crate::text::counted(threads, "thread"),
        duration(lost_ns),
        percent(lost_ns, case.wall_ns)
    );
    if let Some(cpus) = case.cpus() {
        text += &format!(
            "; the {} of the host were idle {} of the time",
            crate::text::counted(cpus.number, "CPU"),
            percent(cpus.idle_ns, cpus.total_ns)
        );
    }
    Link { role: "symptom".to_owned(), cause: None, text }
}

/// The datum that excludes a look-alike of the catalogue, or else why none does: it is a finding
/// itself, or the recorder could not see its evidence.
fn why_not(case: &Case, cause: &Cause, verdict: &Verdict) -> Result<String, String> {
    match verdict {
        Err(Absent(missing)) => match case.off(cause).first() {
            Some(off) => Err(format!(
                "its evidence was not recorded: the recorder's part '{}' was off ({})",
                off.part, off.because
            )),
            None => Ok(missing.clone()),
        },
        Ok(claim) if is_worth_naming(case, claim) => Err(format!(
            "it has evidence of its own and explains {} here",
            duration(claim.lost.total())
        )),
        Ok(claim) => {
            let ns = claim.lost.total();
            Ok(format!(
                "it took only {}, {} of the wall time",
                duration(ns),
                percent(ns, case.wall_ns)
            ))
        }
    }
}

/// How to see whether the fix works.
fn verify(target: &Target) -> String {
    let watch = match target {
        Target::Command(words) => {
            let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
            format!("-- {}", words.join(" "))
        }
        Target::Process(_) | Target::Thread(_) | Target::Trace(_) => "-p PID".to_owned(),
        Target::Host => "-a".to_owned(),
        Target::Bench(words) => return again("bench --with-kernel", words),
        Target::Jitter(words) => return again("jitter", words),
    };
    format!("whylag record {watch} && whylag explain")
}

/// The same command line once more.
fn again(verb: &str, words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("whylag {verb} {} && whylag explain", words.join(" "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
