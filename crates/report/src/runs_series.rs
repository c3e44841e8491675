//! `whylag series`, for people.

use std::io::{self, Write};

use model::units::{duration, share, times};
use model::{MetricChange, Series, SeriesChange, SeriesKind, WeekChange};

use crate::runs::utc;
use crate::style::Paint;
use crate::{Style, text};

/// Figures of a change, and facts, that are shown; --json has all.
const MOST: usize = 6;
/// p up to this is shown of the week.
const ALPHA: f64 = 0.05;
/// Of the week, smaller changes are not shown.
const LEAST_CHANGE: f64 = 0.02;

/// Writes each series: its changes, oldest first, and this week over last.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, all: &[Series], style: &Style) -> io::Result<()> {
    for (n, series) in all.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        write_series(out, series, style)?;
    }
    writeln!(out)?;
    let legend = "Dates are UTC. Levels are medians of the runs between two changes; p: how often \
                  chance alone makes such a change anywhere in runs as correlated as these, times \
                  what was looked at. Latencies count from 2 % on, shares of the wall time from 1 \
                  percentage point. A date may be a run off. This week over last: pairs of the same \
                  weekday and hour, exact signed-rank test, adjusted (Benjamini and Hochberg).";
    for line in text::wrap(legend, style.width) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    Ok(())
}

fn write_series(out: &mut dyn Write, series: &Series, style: &Style) -> io::Result<()> {
    let [from, to] = series.from_to_unix_ns.map(day);
    let heading = format!(
        "{}: {} runs from {from} to {to}, {} latencies, accounts and causes",
        series.group, series.runs, series.tried
    );
    for line in text::wrap(&heading, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    if series.changes.is_empty() {
        writeln!(out, "  No change beyond what runs differ by anyway.")?;
    }
    for change in &series.changes {
        write!(out, "{}", text::labelled("  -", 4, &in_words(change), style.width))?;
    }
    match &series.week {
        None => Ok(()),
        Some(week) => write_week(out, week, style),
    }
}

/// `2026-05-12` of nanoseconds since 1970.
fn day(unix_ns: i64) -> String {
    utc(unix_ns).split(' ').next().unwrap_or_default().to_owned()
}

/// `since 2026-05-12 09:00 (run 41): syscall:read p50 +310 %, ...; that day clocksource.current
/// tsc -> hpet`.
pub fn in_words(change: &SeriesChange) -> String {
    let mut metrics: Vec<String> = change.metrics.iter().take(MOST).map(metric).collect();
    if change.metrics.len() > MOST {
        metrics.push(format!("{} more", change.metrics.len() - MOST));
    }
    let started = utc(change.started_unix_ns);
    let dismissed = if change.dismissed { ", dismissed" } else { "" };
    let p = change.metrics.iter().map(|metric| metric.p).fold(1.0, f64::min);
    let mut words = format!(
        "since {} (run {}{dismissed}): {} (p = {p:.1e})",
        &started[..started.len().min(16)],
        change.run,
        metrics.join(", ")
    );
    if change.facts.is_empty() {
        return words + "; no fact of the host or the program changed then";
    }
    let facts = change.facts.iter().take(MOST);
    let mut facts: Vec<String> =
        facts.map(|fact| format!("{} {} -> {}", fact.what, fact.before, fact.after)).collect();
    if change.facts.len() > MOST {
        facts.push(format!("{} more", change.facts.len() - MOST));
    }
    words += "; then changed, too: ";
    words + &facts.join(", ")
}

fn metric(change: &MetricChange) -> String {
    let MetricChange { kind, name, before, after, p99, .. } = change;
    if *kind == SeriesKind::Latency {
        let moved = |[before, after]: [f64; 2]| signed(after / before.max(1.0) - 1.0);
        let middle = format!(
            "{name} p50 {} ({} to {})",
            moved([*before, *after]),
            duration(*before as u64),
            duration(*after as u64)
        );
        return match p99 {
            Some(p99) => format!("{middle}, p99 {}", moved(*p99)),
            None => middle,
        };
    }
    match (before, after) {
        _ if *before == 0.0 => format!("{name} appears ({} of the wall time)", share(*after)),
        _ if *after == 0.0 => format!("{name} goes (it was {} of the wall time)", share(*before)),
        _ => format!("{name} {} to {} of the wall time", share(*before), share(*after)),
    }
}

/// `+310.0 %`.
fn signed(part: f64) -> String {
    let sign = if part < 0.0 { "-" } else { "+" };
    format!("{sign}{}", share(part.abs()))
}

fn write_week(out: &mut dyn Write, week: &[WeekChange], style: &Style) -> io::Result<()> {
    let matters = |change: &&WeekChange| {
        change.p_adjusted <= ALPHA && (change.ratio.estimate - 1.0).abs() >= LEAST_CHANGE
    };
    let shown: Vec<&WeekChange> = week.iter().filter(matters).take(MOST).collect();
    let pairs = week.first().map_or(0, |change| change.pairs);
    if shown.is_empty() {
        let line = format!("This week is as last week ({pairs} pairs of runs).");
        return writeln!(out, "  {line}");
    }
    writeln!(out, "  {}", style.bold(&format!("This week over last ({pairs} pairs of runs):")))?;
    for change in shown {
        let ratio = &change.ratio;
        let line = format!(
            "{}: {} ({} to {}), p = {:.1e}",
            change.name,
            times(ratio.estimate),
            times(ratio.low),
            times(ratio.high),
            change.p_adjusted
        );
        let line = text::labelled("  -", 4, &line, style.width);
        let paint = if ratio.estimate > 1.0 { Paint::Yellow } else { Paint::Green };
        for line in line.lines() {
            writeln!(out, "{}", style.paint(paint, line))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Difference, RunId};
    use stats::Interval;

    #[test]
    fn a_change_is_a_sentence_with_its_date_and_its_facts() {
        let metric = |kind, name: &str, before, after, p99| MetricChange {
            kind,
            name: name.to_owned(),
            before,
            after,
            p99,
            p: 1e-5,
        };
        let ratio = Interval { estimate: 1.5, low: 1.25, high: 1.75, confidence: 0.95 };
        let week = |name: &str, p_adjusted| WeekChange {
            name: name.to_owned(),
            ratio,
            p_adjusted,
            pairs: 28,
        };
        let series = Series {
            group: "./server --port 80, a".to_owned(),
            runs: 60,
            from_to_unix_ns: [1_772_359_203_000_000_000, 1_778_000_000_000_000_000],
            tried: 12,
            changes: vec![SeriesChange {
                run: RunId(41),
                started_unix_ns: 1_775_000_000_000_000_000,
                metrics: vec![
                    metric(SeriesKind::Latency, "syscall:read", 1e5, 4.1e5, Some([1e6, 2e6])),
                    metric(SeriesKind::Cause, "slow-clocksource", 0.0, 0.4, None),
                    metric(SeriesKind::Account, "user", 0.5, 0.25, None),
                ],
                facts: vec![Difference {
                    what: "clocksource.current".to_owned(),
                    before: "tsc".to_owned(),
                    after: "hpet".to_owned(),
                }],
                dismissed: false,
            }],
            week: Some(vec![week("length", 0.01), week("p50 of syscall:read", 0.5)]),
        };
        let text =
            sample::written(|out| write(out, std::slice::from_ref(&series), &Style::default()));
        sample::assert_fits(&text, 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "60 runs from 2026-03-01 to 2026-05-05",
            "since 2026-03-31 23:33 (run 41): syscall:read p50 +310.0 % (100 us to 410 us), p99 +100.0 %",
            "slow-clocksource appears (40.0 % of the wall time)",
            "user 50.0 % to 25.0 % of the wall time (p = 1.0e-5)",
            "clocksource.current tsc -> hpet",
            "This week over last (28 pairs of runs): - length: 1.50x (1.25x to 1.75x), p = 1.0e-2",
        ] {
            assert!(words.contains(part), "{part}\n{text}");
        }
        assert!(!words.contains("p50 of syscall:read:"));
        let quiet = Series { changes: Vec::new(), week: None, ..series };
        let text = sample::written(|out| write(out, &[quiet], &Style::default()));
        assert!(text.contains("No change beyond"));
    }
}
