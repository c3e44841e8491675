//! What every finding about timers has.

use model::{Evidence, Finding, Link, Role};
use stats::law::Fit;

use super::causes::Source;
use crate::words::time;

/// Mean lateness of all ticks, ns; not zero.
pub fn mean_late(source: &Source) -> f64 {
    let means = source.series.iter().filter_map(|(s, _)| Some((s.mean_ns()?, s.intended)));
    let (sum, n) = means.fold((0.0, 0), |(sum, n), (mean, of)| (sum + mean * of as f64, n + of));
    let mean = sum / n.max(1) as f64;
    if mean.abs() < 1.0 { 1.0 } else { mean }
}

pub fn blank(cause: &str, title: &str, fix: &str) -> Finding {
    Finding {
        cause: cause.to_owned(),
        title: title.to_owned(),
        share: 0.0,
        lost_ns: 0,
        confidence: 0.0,
        doubts: Vec::new(),
        chain: Vec::new(),
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        excluded: Vec::new(),
        not_ruled_out: Vec::new(),
        fix: fix.to_owned(),
        reproduce: format!("whylag jitter -- mysteries/bin/{cause}-faulty 5"),
        verify: String::new(),
    }
}

pub fn chain(source: &Source, mechanism: &str, trigger: Option<String>) -> Vec<Link> {
    let ticks: u64 = source.series.iter().map(|(series, _)| series.intended).sum();
    let symptom = format!(
        "{ticks} ticks of {} are {} late on average",
        source.judged.law.source,
        time(mean_late(source))
    );
    let link = |role, text: String| Link { role, cause: None, text };
    let mut chain = vec![link(Role::Symptom, symptom), link(Role::Mechanism, mechanism.to_owned())];
    chain.extend(trigger.map(|text| link(Role::Trigger, text)));
    chain
}

pub fn law_evidence(source: &Source, fit: &Fit) -> Evidence {
    let law = &source.judged.law;
    let text = format!(
        "lateness is {}; {} ticks at {} different times asked for; it leaves {} of a tick",
        law.text,
        law.n,
        law.intervals,
        time(fit.left)
    );
    Evidence { text, source: "intended and actual times, CLOCK_MONOTONIC".to_owned() }
}

/// The share in nanoseconds.
pub fn finish(source: &Source, mut finding: Finding) -> Finding {
    let ticks: u64 = source.series.iter().map(|(series, _)| series.intended).sum();
    finding.lost_ns = (finding.share * mean_late(source).abs() * ticks as f64) as u64;
    finding
}
