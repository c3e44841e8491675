//! Judgement of a run of timers: laws, beats, and which causes made ticks late.

use model::{Explanation, Finding, Jitter, JitterSeries, NotRuledOut, RuledOut, Run, Standing};

use super::finding::finding;
use super::rank::{Judged, judged};
use crate::case::Case;
use crate::catalogue::{is_of_ticks, look_alikes};
use crate::cause::{Absent, Cause};
use crate::causes::timers::timer_proportional;
use crate::timers::source::{self, TimerSource};
use crate::timers::{attribution, beats, conversion, notes, pairs};

/// A run of timers, judged.
pub struct JudgedTimers {
    /// What was measured, with its laws, beats, pairs, legs, findings and notes.
    pub jitter: Jitter,
    /// The findings as of any run; no thread was recorded, so there are no accounts.
    pub explanation: Explanation,
}

/// Judges how late the ticks of `run` were, and why; `None` if no timers were measured in it.
///
/// Each source has findings of its own, the largest share of its lateness first.
pub fn timers(run: &Run) -> Option<JudgedTimers> {
    let judged = JudgedRun::of(run)?;
    let explanation = explanation(run, &judged);
    Some(JudgedTimers { jitter: judged.jitter, explanation })
}

/// How a cause stands in a run of timers; `None` for other runs.
pub(super) fn standing(run: &Run, cause: &Cause) -> Option<Standing> {
    let judged = JudgedRun::of(run)?;
    if !is_of_ticks(cause) {
        let because = "this run measured timers, and what threads did was not recorded; 'whylag \
                       record' records it";
        return Some(Standing::NotLookedFor { because: because.to_owned() });
    }
    let findings = &judged.jitter.findings;
    if let Some(place) = findings.iter().position(|finding| finding.cause == cause.id.as_str()) {
        let finding = &findings[place];
        return Some(Standing::Finding {
            rank: place as u64 + 1,
            findings: findings.len() as u64,
            share: finding.share,
            lost_ns: finding.lost_ns,
            confidence: finding.confidence,
        });
    }
    Some(judged.below_floor(cause).unwrap_or_else(|| judged.absent(cause)))
}

/// One source, and what each cause says of it.
struct JudgedSource {
    name: String,
    causes: Vec<Judged>,
}

struct JudgedRun {
    jitter: Jitter,
    /// Empty if the run was judged when it was recorded, from more ticks than it kept.
    sources: Vec<JudgedSource>,
}

impl JudgedRun {
    fn of(run: &Run) -> Option<JudgedRun> {
        let stored = run.jitter.as_ref()?;
        if !stored.laws.is_empty() && stored.series.iter().any(|series| series.is_cut()) {
            return Some(JudgedRun { jitter: stored.clone(), sources: Vec::new() });
        }
        let mut jitter = Jitter { laws: Vec::new(), ..stored.clone() };
        attribution::attribute(&mut jitter, &run.outliers);
        for series in &mut jitter.series {
            series.periods = beats::periods(series, jitter.over_ns, jitter.jiffy_ns);
            series.pairs = pairs::pairs(series);
        }
        let (mut laws, mut findings, mut ruled_out) = (Vec::new(), Vec::new(), Vec::new());
        let mut factor = None;
        let mut sources = Vec::new();
        for name in source::names(&jitter.series) {
            let source = TimerSource::of(&name, &jitter);
            factor = factor.or(source.growth());
            let case = Case::of_timers(run, &source);
            let causes = judged(&case);
            findings.extend(findings_of(&case, &source, &causes));
            if source.comparison.is_some() {
                ruled_out.extend(causes.iter().map(excluded));
            }
            sources.push(JudgedSource { name, causes });
            laws.push(source.law);
        }
        findings.sort_by(|a, b| b.share.total_cmp(&a.share));
        if !findings.is_empty() {
            ruled_out.clear();
        }
        let notes = notes_of(&jitter);
        if let (Some(asked), Some(factor)) = (&mut jitter.conversion, factor)
            && asked.true_ns.is_none()
        {
            *asked = conversion::inferred(asked, factor);
        }
        let jitter = Jitter { laws, findings, ruled_out, notes, ..jitter };
        Some(JudgedRun { jitter, sources })
    }

    fn below_floor(&self, cause: &Cause) -> Option<Standing> {
        let causes = self.sources.iter().flat_map(|source| &source.causes);
        let one = causes.filter(|one| one.cause.id == cause.id).find(|one| one.verdict.is_ok())?;
        let (ns, because) = (one.below()?.lost_ns(), one.shortfall.clone()?);
        Some(Standing::BelowFloor { claimed_ns: ns, left_ns: ns, because })
    }

    /// What was missing, source by source.
    fn absent(&self, cause: &Cause) -> Standing {
        let several = self.sources.len() > 1;
        let of_source = |source: &JudgedSource| {
            let one = source.causes.iter().find(|one| one.cause.id == cause.id)?;
            let because = excluded(one).because;
            Some(if several { format!("{}: {because}", source.name) } else { because })
        };
        let mut missing: Vec<String> = self.sources.iter().filter_map(of_source).collect();
        if missing.is_empty() {
            // As it was judged when it was recorded.
            let of_findings = self.jitter.findings.iter().flat_map(|finding| &finding.ruled_out);
            let stored = of_findings.chain(&self.jitter.ruled_out);
            let of_cause = stored.filter(|ruled_out| ruled_out.cause == cause.id.as_str());
            missing.extend(of_cause.map(|ruled_out| ruled_out.because.clone()).take(1));
        }
        Standing::Absent { missing: missing.join("; ") }
    }
}

fn findings_of(case: &Case, source: &TimerSource, causes: &[Judged]) -> Vec<Finding> {
    let named = causes.iter().filter_map(|one| Some((one.cause, one.named()?)));
    let of_claim = |(cause, claim)| {
        let mut finding = finding(case, cause, claim, source.late_ns(), causes);
        if !timer_proportional::can_be_seen(source) {
            leave_growth_open(cause, &mut finding);
        }
        finding
    };
    named.map(of_claim).collect()
}

/// Sleeps of one length only do not exclude that lateness grows with it.
fn leave_growth_open(cause: &Cause, finding: &mut Finding) {
    let growth = timer_proportional::CAUSE.id;
    let pair = look_alikes(cause).find(|(other, _)| *other == growth);
    let place = finding.ruled_out.iter().position(|other| other.cause == growth.as_str());
    if let (Some((_, tell_apart)), Some(place)) = (pair, place) {
        let RuledOut { cause, because } = finding.ruled_out.remove(place);
        let tell_apart = tell_apart.to_owned();
        finding.not_ruled_out.push(NotRuledOut { cause, because, tell_apart });
    }
}

/// Why it is not this cause.
fn excluded(one: &Judged) -> RuledOut {
    let because = match &one.verdict {
        Err(Absent(missing)) => missing.clone(),
        Ok(_) => "its part of the lateness is small".to_owned(),
    };
    RuledOut { cause: one.cause.id.to_string(), because }
}

/// What follows from the ticks, then what was noted when they were measured.
fn notes_of(jitter: &Jitter) -> Vec<String> {
    let judged = notes::of(jitter).into_iter().filter(|note| !jitter.notes.contains(note));
    judged.chain(jitter.notes.iter().cloned()).collect()
}

/// Lateness of all ticks together.
fn late_ns(series: &JitterSeries) -> u64 {
    (series.mean_ns().unwrap_or(0.0).abs() * series.intended as f64) as u64
}

fn explanation(run: &Run, judged: &JudgedRun) -> Explanation {
    Explanation {
        run: run.id,
        lost_ns: judged.jitter.series.iter().map(late_ns).sum(),
        findings: judged.jitter.findings.clone(),
        losses: run.losses.by_kind(),
        ..Explanation::default()
    }
}

#[cfg(test)]
mod tests {
    use model::{JitterLaw, Target, Tick};

    use super::*;
    use crate::testing::{FUTEX, RunBuilder, timer_series};

    /// Two sources: one rounds to whole milliseconds, the other is in time.
    fn run() -> Run {
        let asked = |n: u64| 1_000_000 + n * 7_310_777 % 29_000_000;
        let rounded = |n| asked(n).next_multiple_of(1_000_000) - asked(n) + 30_000 + n % 5 * 100;
        let ticks = |late: &dyn Fn(u64) -> u64| -> Vec<(u64, i64)> {
            (0..300).map(|n| (asked(n), late(n) as i64)).collect()
        };
        let mut run = RunBuilder::new().build();
        run.header.target = Target::Jitter(vec!["--source".into(), "all".into()]);
        run.jitter = Some(Jitter {
            jiffy_ns: 4_000_000,
            series: vec![
                timer_series("epoll", 10_000_000, &ticks(&rounded)),
                timer_series("timerfd", 10_000_000, &ticks(&|n| 20_000 + n % 5 * 100)),
            ],
            notes: vec!["7 ticks came faster than they could be counted".to_owned()],
            ..Jitter::default()
        });
        run
    }

    #[test]
    fn each_source_has_its_law_and_its_findings() {
        let judged = timers(&run()).unwrap();
        let laws: Vec<_> = judged.jitter.laws.iter().map(|law| law.best.as_deref()).collect();
        assert_eq!(laws, [Some("stepped 1 ms"), Some("constant")]);
        let findings = &judged.explanation.findings;
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].cause, "timer-ms-rounding");
        assert_eq!(findings[0].chain[0].text.split(" are ").next(), Some("300 ticks of epoll"));
        assert_eq!(findings[0].verify, "whylag jitter --source all");
        assert_eq!(findings[0].doubts, ["it is whylag that asks for whole milliseconds here"]);
        let late_ns = judged.explanation.lost_ns;
        assert!(findings[0].lost_ns < late_ns && findings[0].lost_ns > late_ns * 8 / 10);
        assert_eq!(&judged.jitter.findings, findings);
        assert_eq!(judged.jitter.notes.len(), 1);
        assert!(crate::explain(&run()) == judged.explanation);
    }

    #[test]
    fn what_was_judged_once_is_judged_alike_again() {
        let mut run = run();
        let first = timers(&run).unwrap().jitter;
        run.jitter = Some(first.clone());
        assert!(timers(&run).unwrap().jitter == first);
    }

    #[test]
    fn a_run_that_was_judged_from_more_ticks_than_it_kept_stays_as_it_was_judged() {
        let mut run = run();
        let mut judged = timers(&run).unwrap().jitter;
        judged.series[0].ticks.truncate(15);
        run.jitter = Some(judged.clone());
        assert!(timers(&run).unwrap().jitter == judged);
        let rank = crate::why_not(&run, "timer-ms-rounding").unwrap().standing;
        assert!(matches!(rank, Standing::Finding { rank: 1, .. }), "{rank:?}");
        let because = &judged.findings[0].ruled_out[0];
        let Standing::Absent { missing } = crate::why_not(&run, &because.cause).unwrap().standing
        else {
            panic!("{because:?}")
        };
        assert_eq!(missing, because.because);
    }

    #[test]
    fn a_cause_is_looked_for_only_where_it_can_be_seen() {
        let of = |run: &Run, cause| crate::why_not(run, cause).unwrap().standing;
        let Standing::NotLookedFor { because } = of(&run(), "futex-convoy") else { panic!() };
        assert!(because.contains("'whylag record'"), "{because}");
        let recorded = RunBuilder::new().thread(7, 7, &[(FUTEX, 1_000)]).build();
        let Standing::NotLookedFor { because } = of(&recorded, "timer-slack") else { panic!() };
        assert!(because.contains("'whylag jitter'"), "{because}");
        let Standing::Absent { missing } = of(&run(), "rt-throttling") else { panic!() };
        assert_eq!(missing, "epoll: no thread is real-time; timerfd: no thread is real-time");
        assert!(timers(&recorded).is_none());
    }

    #[test]
    fn a_small_part_of_the_lateness_is_below_the_floor() {
        let mut run = run();
        let jitter = run.jitter.as_mut().unwrap();
        let threads = vec![model::JitterThread {
            policy: "SCHED_FIFO".into(),
            ..model::JitterThread::default()
        }];
        jitter.program = Some(model::JitterProgram { threads, ..model::JitterProgram::default() });
        jitter.series.truncate(1);
        let series = &mut jitter.series[0];
        // Two gaps of 20 ms, a second apart, among ticks that are late by some ms each.
        series.interval_ns = 1_000_000_000;
        for (second, late) in [(8, 20_000_000), (9, 20_000_000)] {
            series.ticks.push(Tick(second * 1_000_000_000, late, 900_000_000));
        }
        (0..10_000).for_each(|_| series.late.record(5_000_000));
        let standing = crate::why_not(&run, "rt-throttling").unwrap().standing;
        let Standing::BelowFloor { because, .. } = standing else { panic!("{standing:?}") };
        assert!(because.contains("of the lateness is less than 5.00 %"), "{because}");
    }

    #[test]
    fn too_few_ticks_have_no_law_and_nothing_is_ruled_out() {
        let mut run = run();
        let jitter = run.jitter.as_mut().unwrap();
        jitter.series = vec![timer_series("timerfd", 10_000_000, &[(10_000_000, 20_000); 5])];
        let judged = timers(&run).unwrap().jitter;
        assert_eq!(judged.ruled_out, []);
        assert!(matches!(&judged.laws[..], [JitterLaw { best: None, n: 0, .. }]));
        let Standing::Absent { missing } = crate::why_not(&run, "timer-slack").unwrap().standing
        else {
            panic!()
        };
        assert!(missing.starts_with("too few ticks"), "{missing}");
    }
}
