//! Real-time throttling: what keeps ordinary threads alive beside a real-time thread that never
//! sleeps takes the CPU from it once a second, which looks like a beat of the application.

use std::fs;

use model::{Evidence, Finding, Tick};

use super::causes::Source;
use super::finding::{blank, chain, finish};
use crate::facts::is_real_time;
use crate::words::time;

/// Gaps so long are looked at: both mechanisms take 50 ms unless configured otherwise.
const SHORTEST_NS: f64 = 15e6;
const LONGEST_NS: f64 = 900e6;
/// They come once a second; the time a thread sleeps does not count.
const APART_NS: std::ops::Range<f64> = 0.9e9..1.6e9;

/// A time during which the thread did not run.
struct Gap {
    at: f64,
    ns: f64,
}

/// Named from gaps of tens of milliseconds, a second apart, in a real-time thread.
pub fn finding(source: &Source) -> Option<Finding> {
    let thread = source.judged.threads.iter().find(|thread| is_real_time(thread))?;
    let gaps = gaps(source);
    let apart: Vec<f64> = gaps.windows(2).map(|two| two[1].at - two[0].at).collect();
    let usual = stats::quantile::median(&apart)?;
    let length = stats::quantile::median(&gaps.iter().map(|gap| gap.ns).collect::<Vec<_>>())?;
    if !APART_NS.contains(&usual) {
        return None;
    }
    let fix = "let the thread sleep or block for a few per cent of every second; or give it a CPU \
               of its own (isolcpus) where nothing else has to run";
    let mut finding = blank(
        "rt-throttling",
        &format!("a real-time thread that never sleeps loses {} every second", time(length)),
        fix,
    );
    let lost: f64 = gaps.iter().map(|gap| gap.ns).sum();
    let all: f64 = source.series.iter().map(|(series, _)| series.late.sum() as f64).sum();
    // A gap of length g makes all the ticks within it late, by g / 2 on average.
    let ticks: f64 = gaps
        .iter()
        .flat_map(|gap| source.series.iter().map(move |(s, _)| (gap, s.interval_ns.max(1))))
        .map(|(gap, interval)| gap.ns * (gap.ns / interval as f64 + 1.0) / 2.0)
        .sum();
    finding.share = (ticks / all.max(1.0)).clamp(0.0, 1.0);
    finding.confidence = if gaps.len() >= 4 { 0.95 } else { 0.8 };
    finding.chain = chain(
        source,
        "the kernel keeps 5 % of each second of a CPU for ordinary threads: the fair server \
         (since 6.12) or real-time throttling (sched_rt_runtime_us) takes it from real-time ones",
        Some("it comes once a second whatever the application does: no beat of its own".to_owned()),
    );
    finding.evidence = vec![
        Evidence {
            text: format!(
                "{} gaps of {} (median), {} apart (median), {} together",
                gaps.len(),
                time(length),
                time(usual),
                time(lost)
            ),
            source: "intended and actual times".to_owned(),
        },
        Evidence {
            text: format!("tid {} is {} {}", thread.tid, thread.policy, thread.priority),
            source: format!("/proc/{}/stat", thread.tid),
        },
        Evidence {
            text: limits(),
            source: "/proc/sys/kernel/sched_rt_runtime_us, sched_rt_period_us".to_owned(),
        },
    ];
    Some(finish(source, finding))
}

/// Why it is not that.
pub fn why_not(source: &Source) -> String {
    if !source.judged.threads.iter().any(is_real_time) {
        return "no thread is real-time".to_owned();
    }
    let n = gaps(source).len();
    format!("{n} gaps of more than {}, none a second after another", time(SHORTEST_NS))
}

fn limits() -> String {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    format!(
        "real-time threads get {} us of each {} us",
        read("sched_rt_runtime_us"),
        read("sched_rt_period_us")
    )
}

/// Each row of ticks that were late because of one gap: the first of them is the latest.
fn gaps(source: &Source) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (_, ticks) in source.series {
        let mut served_until = 0.0f64;
        for Tick(intended, late, _) in ticks.iter().copied() {
            let (intended, late) = (intended as f64, late as f64);
            if (SHORTEST_NS..LONGEST_NS).contains(&late) && intended > served_until {
                gaps.push(Gap { at: intended, ns: late });
            }
            if late >= SHORTEST_NS {
                served_until = served_until.max(intended + late);
            }
        }
    }
    gaps
}
