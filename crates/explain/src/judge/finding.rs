//! A claim as a finding: with its chain, what was ruled out, and how to see whether the fix works.

use model::{Excluded, Finding, Link, NotRuledOut, Role, RuledOut};

use super::rank::Judged;
use super::worth::can_lead;
use super::{alike, concentration, confidence, hurt, requests, verify};
use crate::case::Case;
use crate::catalogue::{ALL, look_alikes};
use crate::cause::{Absent, Cause, Claim, Exclusion};
use crate::text::{duration, percent};
use crate::timers::source::TimerSource;
use model::units::{deviation, fine_duration};

/// A claim that is worth naming, in full.
pub(super) fn finding(
    case: &Case,
    cause: &Cause,
    claim: &Claim,
    all_lost_ns: u64,
    judged: &[Judged],
) -> Finding {
    let (confidence, doubts) = confidence::of(case, cause, claim);
    let (ruled_out, not_ruled_out) = others(case, cause, claim, judged);
    let (excluded, not_looked_at) = others_in_words(case, claim);
    let lost_ns = claim.lost_ns();
    let symptom = match case.timers {
        Some(source) => late_ticks(source),
        None => symptom(case, claim, lost_ns),
    };
    let mut chain = vec![symptom];
    chain.extend(claim.chain.iter().cloned());
    Finding {
        cause: cause.id.to_string(),
        title: alike::title(case, claim),
        share: claim.late.as_ref().map_or(share(lost_ns, all_lost_ns), |late| late.share),
        lost_ns,
        wall_share: share(claim.lost.total(), case.wall_ns),
        hurts: hurt::worst(case, claim),
        when: concentration::of(case, claim),
        requests: requests::of(case, claim),
        minor: !can_lead(case, claim),
        confidence,
        doubts,
        chain,
        evidence: claim.evidence.clone(),
        turns: claim.turns.clone(),
        ruled_out,
        excluded,
        not_ruled_out,
        not_looked_at,
        fix: claim.fix.unwrap_or(cause.fix).to_owned(),
        reproduce: cause.reproduce.to_owned(),
        verify: verify::command(case.run, cause.id),
    }
}

/// The look-alikes that the claim or the catalogue excludes, and those that stay possible.
fn others(
    case: &Case,
    cause: &Cause,
    claim: &Claim,
    judged: &[Judged],
) -> (Vec<RuledOut>, Vec<NotRuledOut>) {
    let mut ruled_out = Vec::new();
    let mut not_ruled_out = Vec::new();
    for other in &claim.ruled_out {
        match not_looked_for(case, &other.cause) {
            None => ruled_out.push(other.clone()),
            Some(because) => {
                let tell_apart = look_alikes(cause).find(|(id, _)| id.as_str() == other.cause);
                let tell_apart = tell_apart.map_or(RECORD_AGAIN, |(_, tell_apart)| tell_apart);
                let (cause, tell_apart) = (other.cause.clone(), tell_apart.to_owned());
                not_ruled_out.push(NotRuledOut { cause, because, tell_apart });
            }
        }
    }
    for (id, tell_apart) in look_alikes(cause) {
        if claim.ruled_out.iter().all(|other| other.cause != id.as_str())
            && let Some(other) = judged.iter().find(|other| other.cause.id == id)
        {
            let cause = id.to_string();
            match why_not(case, other) {
                Ok(because) => ruled_out.push(RuledOut { cause, because }),
                Err(because) => {
                    let tell_apart = tell_apart.to_owned();
                    not_ruled_out.push(NotRuledOut { cause, because, tell_apart });
                }
            }
        }
    }
    (ruled_out, not_ruled_out)
}

/// What tells two causes apart if nothing else does.
const RECORD_AGAIN: &str =
    "record where the recorder sees both ('whylag doctor' lists what it cannot see, and why)";

/// `not looked at: ...` of a cause whose evidence was not recorded: a datum of another cause does
/// not exclude it, because that datum is often an account that its evidence would have filled.
fn not_looked_for(case: &Case, id: &str) -> Option<String> {
    let cause = ALL.iter().find(|cause| cause.id.as_str() == id)?;
    case.not_looked_at(cause.needs).map(not_looked_at)
}

fn not_looked_at(why: String) -> String {
    format!("not looked at: {why}")
}

/// The other explanations that the claim excludes, and those that it could not look at.
fn others_in_words(case: &Case, claim: &Claim) -> (Vec<Excluded>, Vec<Excluded>) {
    let (mut excluded, mut unseen) = (Vec::new(), Vec::new());
    for Exclusion { what, because, needs } in &claim.excluded {
        let what = what.clone();
        match case.not_looked_at(*needs) {
            None => excluded.push(Excluded { what, because: because.clone() }),
            Some(why) => unseen.push(Excluded { what, because: not_looked_at(why) }),
        }
    }
    (excluded, unseen)
}

/// Every chain begins with what was lost, in the same words.
fn symptom(case: &Case, claim: &Claim, lost_ns: u64) -> Link {
    let threads = case.thread_count_in(|account| claim.lost.get(account) > 0);
    let dropped = match claim.dropped {
        0 => String::new(),
        n => format!("{} dropped; ", crate::text::counted(n, "packet")),
    };
    let mut text = format!(
        "{dropped}{} lost {}: {} of the wall time of all threads",
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
    Link { role: Role::Symptom, cause: None, text }
}

/// The same of ticks.
fn late_ticks(source: &TimerSource) -> Link {
    let text = format!(
        "{} ticks of {} are {} late on average",
        source.intended(),
        source.name,
        fine_duration(source.mean_late())
    );
    Link { role: Role::Symptom, cause: None, text }
}

/// The datum that excludes a look-alike of the catalogue, or else why none does: it is a finding
/// itself, or the recorder could not see its evidence.
fn why_not(case: &Case, other: &Judged) -> Result<String, String> {
    if let Some(claim) = other.named() {
        return Err(format!(
            "it has evidence of its own and explains {} here",
            duration(claim.lost_ns())
        ));
    }
    if let Some(why) = case.not_looked_at(other.cause.needs) {
        return Err(not_looked_at(why));
    }
    Ok(match &other.verdict {
        Err(Absent(missing)) => missing.clone(),
        Ok(Claim { late: Some(late), .. }) => {
            format!("it makes only {} of the lateness", deviation(late.share))
        }
        Ok(claim) => {
            let ns = claim.lost.total();
            format!("it took only {}, {} of the wall time", duration(ns), percent(ns, case.wall_ns))
        }
    })
}

/// A part of a whole; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
