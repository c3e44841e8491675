//! A comparison of two sets of recordings, for people.

use std::io::{self, Write};

use model::units::{count, duration, share, signed_duration, times};
use model::{ComparedSide, Difference, LatencyDelta, LatencyFigure, RunsComparison};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Rows of each table; --json has all.
const MOST: usize = 10;
/// p up to this is painted.
const ALPHA: f64 = 0.05;

/// Writes the summary, what differs around the runs, then accounts, causes and latencies.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, comparison: &RunsComparison, style: &Style) -> io::Result<()> {
    for line in text::wrap(&comparison.summary, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for warning in &comparison.warnings {
        for line in text::labelled("warning:", 9, warning, style.width).lines() {
            writeln!(out, "{}", style.paint(Paint::Yellow, line))?;
        }
    }
    writeln!(out)?;
    for (letter, side) in [("A:", &comparison.a), ("B:", &comparison.b)] {
        write!(out, "{}", text::labelled(letter, 3, &described(side, comparison), style.width))?;
    }
    write_differences(out, &comparison.differences, style)?;
    write_accounts(out, comparison, style)?;
    write_causes(out, comparison, style)?;
    write_latencies(out, &comparison.latencies, style)?;
    writeln!(out)?;
    let legend = "p of accounts: Mann-Whitney test over runs; of causes: Fisher's exact test; of \
                  latencies: largest shift of any quantile, labels of runs exchanged; accounts and \
                  latencies adjusted for their number (Benjamini and Hochberg). B/A of latencies: \
                  geometric means over runs, in bands that hold for all quantiles at once. Change \
                  is B less A; all changes of accounts sum to that of the wall time.";
    for line in text::wrap(legend, style.width) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    Ok(())
}

/// `before: 6 runs (1 to 6), 12.0 s of wall time, 600 times request tcp :80`.
fn described(side: &ComparedSide, comparison: &RunsComparison) -> String {
    let ids: Vec<i64> = side.runs.iter().map(|run| run.0).collect();
    let which = match (ids.iter().min(), ids.iter().max()) {
        (Some(first), Some(last)) if first == last => format!("run {first}"),
        (Some(first), Some(last)) => format!("{} runs, {first} to {last}", ids.len()),
        _ => String::new(),
    };
    let work = match comparison.unit.as_str() {
        "run" => String::new(),
        unit => format!(", {} times {unit}", count(side.units)),
    };
    format!("{} ({which}), {} of wall time{work}", side.name, duration(side.wall_ns))
}

fn heading(out: &mut dyn Write, words: &str, style: &Style) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "{}", style.bold(words))
}

fn write_differences(out: &mut dyn Write, all: &[Difference], style: &Style) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    heading(out, "What else differs", style)?;
    for Difference { what, before, after } in all {
        let line = format!("{what}: {before} in A, {after} in B");
        write!(out, "{}", text::labelled(" ", 2, &line, style.width))?;
    }
    Ok(())
}

fn write_accounts(
    out: &mut dyn Write,
    comparison: &RunsComparison,
    style: &Style,
) -> io::Result<()> {
    let right = Align::Right;
    let columns = [("", Align::Left), ("A", right), ("B", right), ("change", right), ("p", right)];
    let mut table = Table::new(2, &columns);
    let mut row = |name: &str, [a, b]: [f64; 2], p: Option<f64>| {
        let change = signed_duration(b - a);
        let change = match p.filter(|p| *p <= ALPHA) {
            Some(_) if b > a => Cell::painted(change, Paint::Red),
            Some(_) => Cell::painted(change, Paint::Green),
            None => change.into(),
        };
        let text = |ns: f64| duration(ns.round() as u64);
        table.row([name.into(), text(a).into(), text(b).into(), change, p_value(p).into()]);
    };
    for delta in comparison.accounts.iter().take(MOST) {
        row(&delta.account.to_string(), delta.per_unit_ns, delta.p_adjusted);
    }
    let rest = comparison.accounts.iter().skip(MOST);
    let rest = rest.fold([0.0; 2], |sum, delta| {
        [sum[0] + delta.per_unit_ns[0], sum[1] + delta.per_unit_ns[1]]
    });
    if comparison.accounts.len() > MOST {
        row(&format!("{} others", comparison.accounts.len() - MOST), rest, None);
    }
    let all = |side: &ComparedSide| side.per_unit(side.wall_ns);
    row("wall time", [all(&comparison.a), all(&comparison.b)], None);
    heading(out, &format!("Time per {} by account (all threads)", comparison.unit), style)?;
    table.write(out, style)
}

fn write_causes(out: &mut dyn Write, comparison: &RunsComparison, style: &Style) -> io::Result<()> {
    if comparison.causes.is_empty() {
        return Ok(());
    }
    let right = Align::Right;
    let columns = [
        ("", Align::Left),
        ("runs of A", right),
        ("of B", right),
        ("wall time A", right),
        ("B", right),
        ("p", right),
    ];
    let mut table = Table::new(2, &columns);
    let all = [comparison.a.runs.len(), comparison.b.runs.len()];
    for cause in comparison.causes.iter().take(MOST) {
        let of = |side: usize| format!("{} of {}", cause.runs[side], all[side]);
        table.row([
            cause.cause.as_str().into(),
            of(0).into(),
            of(1).into(),
            share(cause.share[0]).into(),
            share(cause.share[1]).into(),
            p_value(cause.p).into(),
        ]);
    }
    heading(out, "Causes", style)?;
    table.write(out, style)
}

fn write_latencies(out: &mut dyn Write, all: &[LatencyDelta], style: &Style) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let right = Align::Right;
    let columns = [("", Align::Left), ("p50 B/A", right), ("p99 B/A", right), ("p", right)];
    let mut table = Table::new(2, &columns);
    for delta in all.iter().take(MOST) {
        let at = |place: usize| match delta.shift.get(place) {
            None => "-".to_owned(),
            Some(shifted) => match shifted.band {
                Some([low, high]) => {
                    format!("{} ({} to {})", times(shifted.ratio), times(low), times(high))
                }
                None => times(shifted.ratio),
            },
        };
        table.row([
            delta.name.as_str().into(),
            at(LatencyFigure::P50).into(),
            at(LatencyFigure::P99).into(),
            p_value(delta.p).into(),
        ]);
        table.note(0, format!("  n = {} and {}", count(delta.count[0]), count(delta.count[1])));
    }
    heading(out, "Latencies", style)?;
    table.write(out, style)
}

fn p_value(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Account, AccountDelta, CauseDelta, RunId, Shifted};

    #[test]
    fn it_fits_and_has_the_sum_of_all_accounts() {
        let side = |name: &str, runs: std::ops::Range<i64>, wall_ns| ComparedSide {
            name: name.to_owned(),
            runs: runs.map(RunId).collect(),
            wall_ns,
            units: 2,
        };
        let delta = |account, ns: [u64; 2], p_adjusted| AccountDelta {
            account,
            ns,
            per_unit_ns: ns.map(|ns| ns as f64 / 2.0),
            p_adjusted,
        };
        let shifted = |probability| Shifted { probability, ratio: 1.5, band: Some([1.25, 1.75]) };
        let comparison = RunsComparison {
            summary: "after has 50 % more time per run than before.".to_owned(),
            a: side("before", 1..7, 3_000_000_000),
            b: side("after", 7..8, 4_500_000_000),
            unit: "run".to_owned(),
            differences: vec![Difference {
                what: "clocksource.current".to_owned(),
                before: "tsc".to_owned(),
                after: "hpet".to_owned(),
            }],
            accounts: vec![
                delta(Account::User, [2_000_000_000, 3_500_000_000], Some(0.002)),
                delta(Account::HardIrq, [1_000_000_000, 1_000_000_000], Some(1.0)),
            ],
            causes: vec![CauseDelta {
                cause: "slow-clocksource".to_owned(),
                runs: [0, 1],
                share: [0.0, 0.4],
                p: None,
            }],
            latencies: vec![LatencyDelta {
                name: "syscall:clock_gettime".to_owned(),
                count: [1_000, 2_000_000],
                shift: LatencyFigure::PROBABILITIES.into_iter().map(shifted).collect(),
                p: Some(0.0005),
            }],
            warnings: vec!["6 and 1 runs".to_owned()],
        };
        let text = sample::written(|out| write(out, &comparison, &Style::default()));
        sample::assert_fits(&text, 80);
        for part in [
            "6 runs, 1 to 6",
            "(run 7)",
            "tsc in A, hpet in B",
            "750 ms  0.002",
            "wall time",
            "1.50 s",
            "2.25 s",
            "0 of 6",
            "1.50x (1.25x to 1.75x)",
            "<0.001",
            "n = 1,000 and 2,000,000",
            "warning: 6 and 1 runs",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
