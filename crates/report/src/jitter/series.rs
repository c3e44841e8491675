//! The ticks of each series: how late they were, their beat, the latest ones.

use std::io::{self, Write};

use model::units::{count, counted, duration, moment, signed_duration};
use model::{Histogram, Jitter, JitterSeries, LateTick, Period};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, chart, text};

/// Late ticks that are listed for each series.
const WORST: usize = 5;

/// `timerfd 20.0 ms: 1,234 ticks, mean 57.1 us late, max 1.20 ms, 3 over`.
pub fn in_one_line(series: &JitterSeries) -> String {
    let over =
        if series.over > 0 { format!(", {} over", count(series.over)) } else { String::new() };
    format!(
        "{} {}: {}, mean {} late, max {}{over}",
        series.source,
        duration(series.interval_ns),
        counted(series.intended, "tick"),
        signed_duration(series.mean_ns().unwrap_or(0.0)),
        duration(series.late.max().unwrap_or(0))
    )
}

/// The ticks since the last report.
pub fn recent(late: &Histogram, early: u64, over: u64, over_ns: Option<u64>) -> String {
    let n = late.count() + early;
    let quantile = |q| chart::quantile(late, q).map_or_else(|| "-".to_owned(), duration);
    let early = if early > 0 { format!(", {} early", count(early)) } else { String::new() };
    let over = over_ns
        .map(|limit| format!(", {} over {}", count(over), duration(limit)))
        .unwrap_or_default();
    format!(
        "{}{early}{over}: p50 {}, p99 {}, max {}",
        counted(n, "tick"),
        quantile(0.5),
        quantile(0.99),
        duration(late.max().unwrap_or(0))
    )
}

pub fn write_table(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    let mut table = Table::new(
        0,
        &[
            ("source", Align::Left),
            ("interval", Align::Right),
            ("ticks", Align::Right),
            ("mean late", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
        ],
    );
    for series in &jitter.series {
        let quantile = |q| match chart::quantile(&series.late, q) {
            Some(value) => Cell::from(duration(value)),
            None => Cell::painted("n small", Paint::Dim),
        };
        table.row([
            series.source.as_str().into(),
            duration(series.interval_ns).into(),
            count(series.intended).into(),
            series.mean_ns().map_or_else(|| "-".to_owned(), signed_duration).into(),
            quantile(0.5),
            quantile(0.99),
            series.late.max().map_or_else(|| "-".to_owned(), duration).into(),
        ]);
        if series.missed > 0 {
            let text = "had passed when they were waited for; each counts with its own lateness";
            table.note(1, format!("{} of them {text}", count(series.missed)));
        }
        if let Some(early) = series.early.max() {
            let n = count(series.early.count());
            table.note(1, format!("{n} of them early, by up to {}", duration(early)));
        }
        if let Some(over) = jitter.over_ns {
            let n = count(series.over);
            table.note(1, format!("{n} of them late by more than {}", duration(over)));
        }
    }
    table.write(out, style)
}

pub fn write_series(
    out: &mut dyn Write,
    series: &JitterSeries,
    drawn: bool,
    style: &Style,
) -> io::Result<()> {
    let name = format!("{} {}", series.source, duration(series.interval_ns));
    if drawn && series.late.count() > 0 {
        writeln!(out)?;
        chart::histogram(out, &format!("Lateness, {name}"), &series.late, style)?;
    }
    if let Some(pairs) = &series.pairs {
        let every = pairs
            .every_ns
            .map(|ns| format!(", one every {}", signed_duration(ns)))
            .unwrap_or_default();
        let text = format!(
            "{name}: {} in which a tick comes {} earlier than the one before and the next {} \
             later: net {}{every}",
            counted(pairs.pairs, "pair"),
            signed_duration(-pairs.early_ns),
            signed_duration(pairs.late_ns),
            signed_duration(pairs.net_ns)
        );
        write!(out, "{}", text::labelled("pairs", 7, &text, style.width))?;
    }
    for period in &series.periods {
        let text = format!("{name}: {}", beat(period));
        write!(out, "{}", text::labelled("beat", 7, &text, style.width))?;
    }
    if drawn {
        write_worst(out, &series.worst, series.started_ns, style)?;
    }
    Ok(())
}

/// A beat in words.
fn beat(period: &Period) -> String {
    let wall = match period.period_ns {
        1_000_000_000 => "after the second of the wall clock".to_owned(),
        other => format!("into {} of the wall clock", duration(other)),
    };
    format!(
        "unusual ticks come every {}, {} {wall} (concentration {:.2}; Rayleigh's test p {:.1e}, n \
         {})",
        duration(period.period_ns),
        duration(period.phase_ns),
        period.concentration,
        period.p,
        count(period.n)
    )
}

fn write_worst(
    out: &mut dyn Write,
    worst: &[LateTick],
    started_ns: u64,
    style: &Style,
) -> io::Result<()> {
    for tick in worst.iter().take(WORST) {
        let at = tick.intended_ns.saturating_sub(started_ns);
        let mut text = format!("{} late at {}", signed_duration(tick.late_ns as f64), moment(at));
        let legs: Vec<String> = tick
            .legs
            .iter()
            .map(|leg| format!("{} {}", leg.what, signed_duration(leg.ns as f64)))
            .collect();
        if !legs.is_empty() {
            text += &format!(" = {}", legs.join(" + "));
        }
        if !tick.because.is_empty() {
            text += &format!(": {}", tick.because.join("; "));
        }
        write!(out, "{}", text::labelled("  late", 8, &text, style.width))?;
    }
    Ok(())
}
