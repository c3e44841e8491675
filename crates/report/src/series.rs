//! Histograms per second, brought together by metric.

use std::collections::BTreeMap;

use model::{Histogram, Metric, MetricSecond, Run};

/// One metric over a whole run, all processes together.
pub struct Series<'a> {
    pub metric: &'a Metric,
    /// All seconds merged.
    pub total: Histogram,
    pub seconds: Vec<&'a MetricSecond>,
}

/// The metrics of a run, the one with most time first, but for what windows show (see
/// `sampled_calls`). Histograms of unequal precision cannot be
/// merged and make series of their own.
pub fn by_metric(run: &Run) -> Vec<Series<'_>> {
    let mut series: BTreeMap<(&Metric, u8), Series> = BTreeMap::new();
    for second in run.seconds.iter().filter(|second| !second.metric.is_of_windows()) {
        let precision = second.histogram.precision();
        let series = series.entry((&second.metric, precision)).or_insert_with(|| Series {
            metric: &second.metric,
            total: Histogram::new(precision),
            seconds: Vec::new(),
        });
        series.total.merge(&second.histogram);
        series.seconds.push(second);
    }
    let mut series: Vec<Series> = series.into_values().collect();
    series.sort_by_key(|series| std::cmp::Reverse(series.total.sum()));
    series
}

/// True if `count` values carry quantile `q`: a finite upper bound for it at 97.5 % needs
/// `q^count <= 0.025` (368 values for p99, 3,688 for p99.9, 36,887 for p99.99).
pub fn carries(count: u64, q: f64) -> bool {
    count as f64 * q.ln() <= 0.025f64.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_quantile_needs_its_number_of_values() {
        for (q, needed) in [(0.5, 6), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)] {
            assert!(carries(needed, q) && !carries(needed - 1, q), "{q}");
        }
    }

    #[test]
    fn metrics_are_merged_over_the_run_with_most_time_first() {
        let run = sample::run();
        let series = by_metric(&run);
        assert_eq!(series[0].metric.to_string(), "syscall:mmap");
        assert!(series.windows(2).all(|pair| pair[0].total.sum() >= pair[1].total.sum()));
        let counts: u64 = series.iter().map(|series| series.total.count()).sum();
        assert_eq!(counts, run.seconds.iter().map(|s| s.histogram.count()).sum::<u64>());
    }

    #[test]
    fn unequal_precisions_do_not_meet() {
        let mut run = sample::run();
        let mut other = run.seconds[0].clone();
        other.histogram = Histogram::new(7);
        other.histogram.record(5);
        let before = by_metric(&run).len();
        run.seconds.push(other);
        assert_eq!(by_metric(&run).len(), before + 1);
    }
}
