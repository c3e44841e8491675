//! Histograms and their course over time, drawn with block characters.

use std::io::{self, Write};

use model::units::{count, duration};
use model::{Histogram, MetricSecond};

use crate::accounts::bar;
use crate::series::carries;
use crate::style::Paint;
use crate::{Style, text};

/// The most rows of a chart with a linear axis, and what a logarithmic one tries to keep to.
const ROWS: usize = 12;

const LOG_TITLE: &str = "logarithmic, from";
const LINEAR_TITLE: &str = "linear, from";

/// Writes a histogram of durations: one line with its quantiles, then the counts over a
/// logarithmic and over a linear value axis side by side. Each row begins at the value shown; a
/// bucket is counted in the row that holds its middle. Quantiles that the count does not carry
/// are shown as `n too small`.
///
/// # Errors
/// Those of `out`.
pub fn histogram(
    out: &mut dyn Write,
    title: &str,
    histogram: &Histogram,
    style: &Style,
) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&text::clean(title)))?;
    write!(out, "{}", text::labelled("  ", 2, &quantiles(histogram), style.width))?;
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else {
        return Ok(());
    };
    let (min, max) = (min.min(max), max.max(min));
    // Two charts with 2 columns before each.
    let width = style.width / 2 - 2;
    let left = rows(histogram, &log_edges(min, max), width);
    let right = rows(histogram, &linear_edges(min, max, histogram.precision()), width);
    let titles = format!("  {LOG_TITLE:<width$}  {LINEAR_TITLE}");
    writeln!(out, "{}", style.dim(&titles))?;
    for n in 0..left.len().max(right.len()) {
        let side = |rows: &[Row]| rows.get(n).cloned().unwrap_or_default();
        let (left, right) = (side(&left), side(&right));
        let gap = width - text::width(&left.label) - text::width(&left.bar) + 2;
        let mut line = format!("  {}{}", left.label, style.paint(Paint::Cyan, &left.bar));
        if !right.label.is_empty() {
            line += &" ".repeat(gap);
            line += &format!("{}{}", right.label, style.paint(Paint::Cyan, &right.bar));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// `n 1,234  min 1.20 us  p50 ...  max ...`.
fn quantiles(histogram: &Histogram) -> String {
    let n = histogram.count();
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else {
        return "n 0".to_owned();
    };
    let mut words = format!("n {}, min {}", count(n), duration(min));
    for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)] {
        words += &match quantile(histogram, q) {
            Some(value) => format!(", {name} {}", duration(value)),
            None if q <= 0.999 => format!(", {name} n too small"),
            None => String::new(),
        };
    }
    words + &format!(", max {}", duration(max))
}

/// The value at `q`, if the count carries it.
pub(crate) fn quantile(histogram: &Histogram, q: f64) -> Option<u64> {
    carries(histogram.count(), q).then(|| histogram.quantile(q)).flatten()
}

/// A row of a chart: where it begins and its count; its bar.
#[derive(Clone, Debug, Default)]
struct Row {
    label: String,
    bar: String,
}

fn rows(histogram: &Histogram, edges: &[u64], width: usize) -> Vec<Row> {
    let mut counts = counts(histogram, edges);
    // The middle of the last bucket may lie before the last edge.
    counts.truncate(counts.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1));
    let largest = counts.iter().copied().max().unwrap_or(0);
    let digits = count(largest).len();
    let labels: Vec<String> = edges.iter().map(|edge| duration(*edge)).collect();
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let columns = width.saturating_sub(label_width + digits + 3);
    std::iter::zip(labels, counts)
        .map(|(label, n)| Row {
            label: format!("{label:>label_width$}  {:>digits$} ", count(n)),
            bar: bar(n, largest, columns),
        })
        .collect()
}

/// The counts of the rows that begin at `edges`.
fn counts(histogram: &Histogram, edges: &[u64]) -> Vec<u64> {
    let mut counts = vec![0u64; edges.len()];
    let (min, max) = (histogram.min().unwrap_or(0), histogram.max().unwrap_or(0));
    for (low, high, n) in histogram.ranges() {
        let (low, high) = (low.max(min), high.min(max));
        let middle = low + high.saturating_sub(low) / 2;
        let row = edges.partition_point(|edge| *edge <= middle).saturating_sub(1);
        if let Some(sum) = counts.get_mut(row) {
            *sum = sum.saturating_add(n);
        }
    }
    counts
}

/// Edges at 1, 2 and 5 of each decade, or 1 and 3, or 1 only: the finest that keeps to the rows.
fn log_edges(min: u64, max: u64) -> Vec<u64> {
    let mut edges = Vec::new();
    for steps in [[1, 2, 5].as_slice(), &[1, 3], &[1]] {
        let mut all: Vec<u64> = vec![0];
        for exponent in 0..=max.max(1).ilog10() {
            let decade = 10u64.pow(exponent);
            all.extend(steps.iter().filter_map(|step| decade.checked_mul(*step)));
        }
        let first = all.partition_point(|edge| *edge <= min).saturating_sub(1);
        let end = all.partition_point(|edge| *edge <= max);
        edges = all[first..end].to_vec();
        if edges.len() <= ROWS {
            break;
        }
    }
    edges
}

/// Edges at equal steps of 1, 2 or 5 times a power of ten, no finer than the buckets are at the
/// maximum.
fn linear_edges(min: u64, max: u64, precision: u8) -> Vec<u64> {
    let finest = (max.saturating_sub(min) / (ROWS as u64 - 2)).max(max >> precision).max(1);
    let decade = 10u64.pow(finest.ilog10());
    let step = [1, 2, 5, 10]
        .into_iter()
        .filter_map(|factor| decade.checked_mul(factor))
        .find(|step| *step >= finest)
        .unwrap_or(finest);
    let first = min / step;
    (first..=max / step).map(|n| n * step).collect()
}

/// Writes two strips, one character a second (or more seconds if the line is too short for all):
/// how many values, and their p99, or their maximum where there are too few for a p99.
///
/// `seconds` belong to one metric and one precision; `start_ns` is the start of the run.
///
/// # Errors
/// Those of `out`.
pub fn over_time(
    out: &mut dyn Write,
    seconds: &[&MetricSecond],
    start_ns: u64,
    style: &Style,
) -> io::Result<()> {
    let second = |s: &MetricSecond| (s.start_ns.saturating_sub(start_ns) / 1_000_000_000) as usize;
    let Some(last) = seconds.iter().map(|s| second(s)).max() else {
        return Ok(());
    };
    let columns = style.width.saturating_sub(40).max(10);
    let per_cell = last / columns + 1;
    let mut cells: Vec<Option<Histogram>> = vec![None; last / per_cell + 1];
    for s in seconds {
        match &mut cells[second(s) / per_cell] {
            Some(cell) if cell.precision() == s.histogram.precision() => cell.merge(&s.histogram),
            Some(_) => {}
            empty => *empty = Some(s.histogram.clone()),
        }
    }
    let each = if per_cell == 1 { "per s".to_owned() } else { format!("per {per_cell} s") };
    let counts: Vec<u64> =
        cells.iter().map(|cell| cell.as_ref().map_or(0, Histogram::count)).collect();
    let high = |cell: &Histogram| quantile(cell, 0.99).or(cell.max()).unwrap_or(0);
    let highs: Vec<u64> = cells.iter().map(|cell| cell.as_ref().map_or(0, high)).collect();
    let few = cells.iter().flatten().any(|cell| !carries(cell.count(), 0.99));
    let name = if few { "p99 or max" } else { "p99" };
    strip(out, &format!("count {each}"), &counts, count, style)?;
    strip(out, &format!("{name} {each}"), &highs, duration, style)
}

fn strip(
    out: &mut dyn Write,
    label: &str,
    values: &[u64],
    show: fn(u64) -> String,
    style: &Style,
) -> io::Result<()> {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().copied().max().unwrap_or(0).max(1);
    let height = |value: u64| match value {
        0 => ' ',
        value => HEIGHTS[((value as f64 / largest as f64 * 7.0).round() as usize).min(7)],
    };
    let line: String = values.iter().map(|value| height(*value)).collect();
    let line = style.paint(Paint::Cyan, &line);
    writeln!(out, "  {label:<20} |{line}| to {}", show(largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::Metric;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new(5);
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    fn drawn(h: &Histogram) -> String {
        sample::written(|out| histogram(out, "t", h, &Style::default()))
    }

    #[test]
    fn both_axes_hold_every_value() {
        for h in [
            recorded((1..2_000).map(|v| v * v * 100)),
            recorded([0, 0, 1, u64::MAX]),
            recorded([5]),
            recorded([1_000_000, 1_000_001]),
            recorded((0..40).map(|bit| 1 << bit)),
        ] {
            let (min, max) = (h.min().unwrap(), h.max().unwrap());
            for edges in [log_edges(min, max), linear_edges(min, max, 5)] {
                assert!(edges.len() <= 21 && edges[0] <= min, "{edges:?}");
                assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "{edges:?}");
                assert_eq!(counts(&h, &edges).iter().sum::<u64>(), h.count());
            }
            sample::assert_fits(&drawn(&h), 80);
        }
    }

    #[test]
    fn axes_step_at_round_values() {
        assert_eq!(log_edges(150, 3_000), [100, 200, 500, 1_000, 2_000]);
        assert_eq!(linear_edges(150, 3_000, 5)[..3], [0, 500, 1_000]);
        assert_eq!(
            counts(&recorded([150, 150, 2_500]), &[100, 200, 500, 1_000, 2_000]),
            [2, 0, 0, 0, 1]
        );
    }

    #[test]
    fn quantiles_that_n_does_not_carry_are_not_printed() {
        let n = |n: u64| quantiles(&recorded((0..n).map(|v| 1_000 + v)));
        assert!(n(100).contains("p99 n too small"), "{}", n(100));
        assert!(n(368).contains("p99 1.") && n(368).contains("p99.9 n too small"), "{}", n(368));
        assert!(n(3_688).contains("p99.9 4.") && !n(3_688).contains("p99.99"), "{}", n(3_688));
        assert!(n(36_887).contains("p99.99 "), "{}", n(36_887));
        assert_eq!(n(0), "n 0");
    }

    #[test]
    fn the_largest_count_has_the_longest_bar() {
        let text = drawn(&recorded([1_000; 90].into_iter().chain([900_000; 10])));
        let longest = text.lines().max_by_key(|line| line.matches('█').count()).unwrap();
        assert!(longest.contains(" 90 "), "{text}");
        assert!(text.contains(" 10 ▏") || text.contains(" 10 █"), "{text}");
    }

    #[test]
    fn strips_fit_and_show_gaps() {
        let second = |at: u64, h: Histogram| MetricSecond {
            tgid: 1,
            metric: Metric::OffCpu,
            start_ns: at * 1_000_000_000,
            histogram: h,
        };
        let few = [second(0, recorded([10; 8])), second(2, recorded([20]))];
        let few: Vec<&MetricSecond> = few.iter().collect();
        let text = sample::written(|out| over_time(out, &few, 0, &Style::default()));
        assert!(text.contains("count per s          |█ ▂| to 8"), "{text}");
        assert!(text.contains("p99 or max per s     |▅ █| to 20 ns"), "{text}");

        let many: Vec<MetricSecond> = (0..5_000).map(|at| second(at, recorded([at]))).collect();
        let many: Vec<&MetricSecond> = many.iter().collect();
        let text = sample::written(|out| over_time(out, &many, 0, &Style::default()));
        sample::assert_fits(&text, 80);
        assert!(text.contains("per 125 s"), "{text}");
        assert!(text.contains("to 125"), "{text}");
    }
}
