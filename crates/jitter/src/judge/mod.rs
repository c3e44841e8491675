//! From ticks to laws, beats and named causes.

mod beat;
mod causes;
mod finding;
mod law;
mod recorded;
mod throttled;

use model::{Conversion, Estimate, Jitter, JitterControl, JitterProgram, JitterSeries, Tick};

use crate::drift::Drift;
use crate::series::JUDGED;
use crate::{Series, conversion, words};

/// Single ticks that a run keeps, all series together.
const KEPT: usize = 20_000;
/// NTP corrects this much without anything being wrong.
const DRIFT_PPM: f64 = 100.0;

/// Everything that was measured.
pub struct Measured {
    /// One per source and interval.
    pub series: Vec<Series>,
    /// The program that was judged.
    pub program: Option<JitterProgram>,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW.
    pub drift: Drift,
    /// whylag's own timer at the intervals that were asked for.
    pub controls: Vec<JitterControl>,
    /// What was changed on request.
    pub changed: Vec<String>,
    /// `--over`.
    pub over_ns: Option<u64>,
    /// `--factor`.
    pub conversion: Option<Conversion>,
}

/// Judges.
pub fn judge(measured: Measured) -> Jitter {
    let jiffy_ns = clock::jiffy_ns();
    let mut jitter = Jitter {
        program: measured.program,
        changed: measured.changed,
        over_ns: measured.over_ns,
        jiffy_ns,
        drift_ppm: estimate(&measured.drift.parts_per_million()),
        controls: measured.controls,
        conversion: measured.conversion,
        ..Jitter::default()
    };
    let share = KEPT / measured.series.len().max(1);
    let mut ticks: Vec<Vec<Tick>> = Vec::new();
    for Series { mut summary, ticks: all, .. } in measured.series {
        if summary.interval_ns == 0 {
            summary.interval_ns = usual_interval(&all);
        }
        summary.periods = beat::periods(&summary, &all, measured.over_ns, jiffy_ns);
        summary.pairs = beat::pairs(&summary, &all);
        summary.ticks = all[..all.len().min(share)].to_vec();
        if all.len() == JUDGED {
            jitter.notes.push(format!(
                "law, beats and pairs of {} are those of its first {} ticks, the distribution is of \
                 all {}",
                summary.source,
                all.len(),
                summary.intended
            ));
        }
        jitter.series.push(summary);
        ticks.push(all);
    }
    for source in sources(&jitter.series) {
        let of_source: Vec<(&JitterSeries, &[Tick])> = jitter
            .series
            .iter()
            .zip(ticks.iter().map(Vec::as_slice))
            .filter(|(series, _)| series.source == source)
            .collect();
        let judged = law::of(&source, &of_source, &jitter);
        let (findings, ruled_out) = causes::name(&causes::Source {
            judged: &judged,
            series: &of_source,
            program: jitter.program.as_ref(),
            controls: &jitter.controls,
            jiffy_ns: jiffy_ns as f64,
        });
        jitter.findings.extend(findings);
        jitter.ruled_out.extend(ruled_out);
        jitter.laws.push(judged.law);
    }
    jitter.findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    if !jitter.findings.is_empty() {
        jitter.ruled_out.clear();
    }
    complete(&mut jitter);
    jitter
}

/// What follows from all of it.
fn complete(jitter: &mut Jitter) {
    let factor = jitter
        .laws
        .iter()
        .filter(|law| law.best.as_deref() == Some("proportional"))
        .find_map(|law| law.models.first()?.figures.iter().find(|(what, _)| what == "factor"))
        .map(|(_, factor)| factor.value);
    if let (Some(conversion), Some(factor)) = (&mut jitter.conversion, factor)
        && conversion.true_ns.is_none()
    {
        *conversion = conversion::inferred(conversion, factor);
    }
    if let Some(program) = &jitter.program {
        if program.threads.iter().any(|thread| thread.slack_ns.is_none()) {
            jitter.notes.push(
                "timer slack of another process can be read only with CAP_SYS_NICE: run as root \
                 to have it named"
                    .to_owned(),
            );
        }
        if jitter.series.iter().all(|series| series.intended == 0) {
            jitter.notes.push(format!(
                "no line was a tick ({} others): print 'intended_ns actual_ns' in ns of \
                 CLOCK_MONOTONIC, a line each",
                program.other_lines
            ));
        }
    }
    if let Some(drift) = &jitter.drift_ppm
        && drift.value.abs() > DRIFT_PPM
    {
        jitter.notes.push(format!(
            "CLOCK_MONOTONIC runs {} ppm {} than CLOCK_MONOTONIC_RAW: lateness measured with it \
             has this error, and whoever compares with another clock sees it as proportional",
            words::three_digits(drift.value.abs()),
            if drift.value > 0.0 { "faster" } else { "slower" }
        ));
    }
}

/// Sources in the order they were measured.
fn sources(series: &[JitterSeries]) -> Vec<String> {
    let mut names: Vec<String> = series.iter().map(|series| series.source.clone()).collect();
    names.dedup();
    names
}

/// The median time between intended ticks.
fn usual_interval(ticks: &[Tick]) -> u64 {
    let gaps: Vec<f64> = ticks.windows(2).map(|two| two[1].0.abs_diff(two[0].0) as f64).collect();
    stats::quantile::median(&gaps).unwrap_or(0.0).round() as u64
}

/// Mean of independent values with its 95 % interval.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let mean = |values: &[f64]| Some(values.iter().sum::<f64>() / values.len() as f64);
    let interval = stats::resample::interval(values, 0.95, mean)?;
    Some(Estimate { value: interval.estimate, low: interval.low, high: interval.high })
}
