//! How one cause stands in a run: a finding, too small to be one, or without its evidence.

use model::{Run, Standing, WhyNot};

use super::rank::judged;
use super::{divided, explained, own, timers};
use crate::case::Case;
use crate::catalogue::ALL;
use crate::cause::{Absent, Cause};
use crate::part::run::PartialRun;
use crate::text::{duration, percent};

/// A name that is no cause's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no known cause; known are: {names}", names = names())]
pub struct UnknownCause(pub String);

fn names() -> String {
    let mut names: Vec<_> = ALL.iter().map(|cause| cause.id.as_str()).collect();
    names.sort_unstable();
    names.join(", ")
}

/// How the cause `id` stands in `run`.
///
/// # Errors
/// If the catalogue has no such cause.
pub fn why_not(run: &Run, id: &str) -> Result<WhyNot, UnknownCause> {
    let divided = divided::divided(run);
    let apart = own::set_apart(&divided);
    let (case, cause) = (Case::new(&apart.run).asking(ALL), known(id)?);
    Ok(match timers::standing(run, cause) {
        Some(standing) => answer(&case, cause, standing),
        None => of(&case, cause),
    })
}

/// How the cause `id` stands in a part of a run.
///
/// # Errors
/// If the catalogue has no such cause.
pub fn why_not_part(partial: &PartialRun, id: &str) -> Result<WhyNot, UnknownCause> {
    let without = own::part_without(partial, &own::set_apart(&partial.run));
    Ok(of(&Case::of_part(without.as_ref().unwrap_or(partial)).asking(ALL), known(id)?))
}

pub(crate) fn known(id: &str) -> Result<&'static Cause, UnknownCause> {
    let cause = ALL.iter().find(|cause| cause.id.as_str() == id);
    cause.copied().ok_or_else(|| UnknownCause(id.to_owned()))
}

fn of(case: &Case, cause: &Cause) -> WhyNot {
    answer(case, cause, standing(case, cause))
}

fn answer(case: &Case, cause: &Cause, standing: Standing) -> WhyNot {
    WhyNot {
        run: case.run.id,
        scope: case.scope().cloned(),
        cause: cause.id.to_string(),
        title: cause.title.to_owned(),
        standing,
        off: case.off(cause.needs).into_iter().cloned().collect(),
    }
}

fn standing(case: &Case, cause: &Cause) -> Standing {
    let judged = judged(case);
    let Some(one) = judged.iter().find(|one| one.cause.id == cause.id) else {
        let because = "no timers were measured in this run; 'whylag jitter' measures them";
        return Standing::NotLookedFor { because: because.to_owned() };
    };
    let claim = match &one.verdict {
        Err(Absent(missing)) => {
            return match case.not_looked_at(cause.needs) {
                Some(because) => Standing::NotLookedFor { because },
                None => Standing::Absent { missing: missing.clone() },
            };
        }
        Ok(claim) => claim,
    };
    let findings = explained(case, &judged).findings;
    if let Some(place) = findings.iter().position(|finding| finding.cause == cause.id.as_str()) {
        let finding = &findings[place];
        return Standing::Finding {
            rank: place as u64 + 1,
            findings: findings.len() as u64,
            share: finding.share,
            lost_ns: finding.lost_ns,
            confidence: finding.confidence,
        };
    }
    let (claimed_ns, left_ns) = (one.claimed_ns, claim.lost.total());
    let taken = claimed_ns.saturating_sub(left_ns);
    let mut because = String::new();
    if taken > 0 {
        because = format!(
            "other causes explain {} of it ({}); of what is left, ",
            duration(taken),
            percent(taken, claimed_ns)
        );
    }
    because += one.shortfall.as_deref().unwrap_or_default();
    Standing::BelowFloor { claimed_ns, left_ns, because }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::mmap_holders::WRITE;
    use crate::testing::without::without_kernel_symbols;
    use crate::testing::{RunBuilder, SECOND, USER, hold, runner};
    use model::{Account, RecorderPart};

    const QUEUED: Account = Account::RunnablePreempted;

    #[test]
    fn a_cause_without_its_evidence_says_which_piece_was_missing() {
        let run =
            RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).off(RecorderPart::Locks).build();
        let answer = why_not(&run, "futex-convoy").unwrap();
        let Standing::Absent { missing } = answer.standing else { panic!("{answer:?}") };
        assert!(missing.contains("none was on a word"), "{missing}");
        assert_eq!(answer.off, []);
    }

    #[test]
    fn a_cause_whose_evidence_was_not_recorded_was_not_looked_for() {
        let idle = || RunBuilder::new().thread(10, 10, &[(USER, SECOND)]);
        let run = idle().off(RecorderPart::MmapLock).build();
        let answer = why_not(&run, "mmap-lock").unwrap();
        let Standing::NotLookedFor { because } = answer.standing else { panic!("{answer:?}") };
        assert_eq!(because, "part 'mmap_lock holders' was off (not permitted)");
        assert_eq!(answer.off.len(), 1);

        let run =
            without_kernel_symbols(&idle().sampled_path(10, USER, &["clear_page"], 9).build());
        let answer = why_not(&run, "first-touch").unwrap();
        let Standing::NotLookedFor { because } = answer.standing else { panic!("{answer:?}") };
        assert!(because.starts_with("the kernel's functions have no names"), "{because}");
        assert!(matches!(why_not(&run, "mmap-lock").unwrap().standing, Standing::Absent { .. }));
    }

    #[test]
    fn a_finding_has_its_rank_and_share() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(WRITE, 3 * SECOND), (QUEUED, SECOND)])
            .hold(hold(10, 10, true, 3 * SECOND))
            .runner(runner(10, 10, 100, SECOND))
            .build();
        let answer = why_not(&run, "cpu-runqueue").unwrap();
        let Standing::Finding { rank, findings, share, lost_ns, .. } = answer.standing else {
            panic!("{answer:?}")
        };
        assert_eq!((rank, findings, lost_ns), (2, 2, SECOND));
        assert!((share - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_claim_below_the_floor_is_told_with_its_figures() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 39 * SECOND), (QUEUED, SECOND)])
            .runner(runner(10, 77, 900, SECOND))
            .build();
        let answer = why_not(&run, "cpu-runqueue").unwrap();
        let Standing::BelowFloor { claimed_ns, left_ns, because } = answer.standing else {
            panic!("{answer:?}")
        };
        assert_eq!((claimed_ns, left_ns), (SECOND, SECOND));
        assert!(because.starts_with("1.00 s is 2.5 % of the wall time"), "{because}");
        let tiny = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (QUEUED, 2_000_000)])
            .runner(runner(10, 77, 9, 2_000_000))
            .build();
        let Standing::BelowFloor { because, .. } = why_not(&tiny, "cpu-runqueue").unwrap().standing
        else {
            panic!()
        };
        assert_eq!(because, "2.00 ms is less than 10.0 ms");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let text = why_not(&RunBuilder::new().build(), "mmaplock").unwrap_err().to_string();
        assert!(text.starts_with("'mmaplock' is no known cause; known are: "), "{text}");
        assert!(text.contains("mmap-lock") && !text.contains('\n'));
    }
}
