//! What `whylag prove` says, for people.

use std::io::{self, Write};

use model::units::{count, duration, number, share, times};
use model::{
    AccountChange, CauseProof, Difference, LatencyChange, LatencyFigure, Measured, Proof,
    ProofVerdict,
};
use stats::Interval;

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Rows of each table.
const MOST: usize = 8;

/// Writes the summary, then the figures that it rests on.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, proof: &Proof, style: &Style) -> io::Result<()> {
    for line in text::wrap(&proof.summary, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for warning in &proof.warnings {
        for line in text::labelled("warning:", 9, warning, style.width).lines() {
            writeln!(out, "{}", style.paint(Paint::Yellow, line))?;
        }
    }
    writeln!(out)?;
    write!(out, "{}", text::labelled("Change:", 9, &proof.change, style.width))?;
    write_measured(out, proof, style)?;
    write_causes(out, proof, style)?;
    write_accounts(out, &proof.accounts, style)?;
    write_latencies(out, &proof.latencies, style)?;
    write_differences(out, &proof.differences, style)?;
    writeln!(out)?;
    for line in text::wrap(&legend(proof), style.width) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    Ok(())
}

/// A heading, if there are rows.
fn heading(out: &mut dyn Write, words: &str, style: &Style) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "{}", style.bold(words))
}

fn write_measured(out: &mut dyn Write, proof: &Proof, style: &Style) -> io::Result<()> {
    let right = Align::Right;
    let columns = [
        ("", Align::Left),
        ("before", right),
        ("after", right),
        ("after/before", right),
        ("p", right),
        ("pairs", right),
    ];
    let mut table = Table::new(2, &columns);
    let mut row = |name: &str, measured: &Measured| {
        let [before, after, ratio, p, pairs] = measured_words(measured);
        let ratio = match measured.verdict {
            ProofVerdict::Better => Cell::painted(ratio, Paint::Green),
            ProofVerdict::Worse => Cell::painted(ratio, Paint::Red),
            _ => ratio.into(),
        };
        table.row([name.into(), before.into(), after.into(), ratio, p.into(), pairs.into()]);
    };
    row(&proof.measured.what, &proof.measured);
    if let Some(unrecorded) = &proof.unrecorded {
        row("without whylag", unrecorded);
    }
    heading(out, "Figure (medians)", style)?;
    table.write(out, style)?;
    let Some(cost) = recording(proof) else { return Ok(()) };
    writeln!(out, "{}", style.dim(&format!("  {cost}")))
}

/// What recording cost both sides, if that was measured.
pub fn recording(proof: &Proof) -> Option<String> {
    let [before, after] = proof.recording?;
    let unrecorded = proof.unrecorded.as_ref().map_or(0, |measured| measured.pairs);
    Some(format!(
        "Recorded it takes {} as long before, {} after (medians, n = {} and {unrecorded}).",
        times(before),
        times(after),
        proof.measured.pairs
    ))
}

/// A value of the figure: the program's own has no unit.
pub fn figure(measured: &Measured, value: f64) -> String {
    match measured.what.as_str() {
        "wall time" => duration((value * 1e9) as u64),
        _ => number(value),
    }
}

/// Before, after, after over before, p and pairs.
pub fn measured_words(measured: &Measured) -> [String; 5] {
    [
        figure(measured, measured.before),
        figure(measured, measured.after),
        measured.ratio.as_ref().map_or_else(|| "-".to_owned(), with_bounds),
        measured.p.map_or_else(|| "-".to_owned(), p_value),
        measured.pairs.to_string(),
    ]
}

/// The cause, runs before, after, wall time before, after, and p.
pub fn cause_words(cause: &CauseProof) -> [String; 6] {
    let of = |(with, all): (usize, usize)| format!("{with} of {all}");
    [
        cause.cause.clone(),
        of(cause.before),
        of(cause.after),
        share(cause.share_before),
        share(cause.share_after),
        p_value(cause.p),
    ]
}

/// The account, its mean time of a run before, after, and p.
pub fn account_words(change: &AccountChange) -> [String; 4] {
    [
        change.account.to_string(),
        duration(change.before_ns as u64),
        duration(change.after_ns as u64),
        change.p_adjusted.map_or_else(|| "-".to_owned(), p_value),
    ]
}

/// The latency, how its median and its p99 changed, and n before and after.
pub fn latency_words(change: &LatencyChange) -> [String; 5] {
    let at = |place: usize| {
        change.shift.get(place).map_or_else(|| "-".to_owned(), |(_, ratio)| with_bounds(ratio))
    };
    [
        change.name.clone(),
        at(LatencyFigure::P50),
        at(LatencyFigure::P99),
        count(change.count[0]),
        count(change.count[1]),
    ]
}

fn write_causes(out: &mut dyn Write, proof: &Proof, style: &Style) -> io::Result<()> {
    let causes: Vec<&CauseProof> = proof.cause.iter().chain(&proof.other_causes).collect();
    if causes.is_empty() {
        return Ok(());
    }
    let right = Align::Right;
    let columns = [
        ("", Align::Left),
        ("runs before", right),
        ("after", right),
        ("wall time before", right),
        ("after", right),
        ("p", right),
    ];
    let mut table = Table::new(2, &columns);
    for cause in causes.iter().take(MOST) {
        table.row(cause_words(cause).map(Cell::from));
    }
    heading(out, "Causes", style)?;
    table.write(out, style)
}

fn write_accounts(out: &mut dyn Write, all: &[AccountChange], style: &Style) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let right = Align::Right;
    let columns = [("", Align::Left), ("before", right), ("after", right), ("p", right)];
    let mut table = Table::new(2, &columns);
    for change in all.iter().take(MOST) {
        table.row(account_words(change).map(Cell::from));
    }
    heading(out, "Accounts that changed (mean of a run, all threads)", style)?;
    table.write(out, style)
}

fn write_latencies(out: &mut dyn Write, all: &[LatencyChange], style: &Style) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let right = Align::Right;
    let columns =
        [("", Align::Left), ("p50", right), ("p99", right), ("n before", right), ("after", right)];
    let mut table = Table::new(2, &columns);
    for change in all.iter().take(MOST) {
        table.row(latency_words(change).map(Cell::from));
    }
    heading(out, "Latencies that changed (after over before)", style)?;
    table.write(out, style)
}

fn write_differences(out: &mut dyn Write, all: &[Difference], style: &Style) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    heading(out, "What else differs", style)?;
    for difference in all {
        let line = difference_words(difference);
        write!(out, "{}", text::labelled(" ", 2, &line, style.width))?;
    }
    Ok(())
}

/// What differs, in a line.
pub fn difference_words(Difference { what, before, after }: &Difference) -> String {
    format!("{what}: {before} before, {after} after")
}

/// `0.57x (0.55x to 0.59x)`.
fn with_bounds(ratio: &Interval) -> String {
    format!("{} ({} to {})", times(ratio.estimate), times(ratio.low), times(ratio.high))
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// What the figures are, and of which runs.
pub fn legend(proof: &Proof) -> String {
    let runs: Vec<i64> =
        proof.trials.iter().filter_map(|trial| trial.run).map(|run| run.0).collect();
    let which = match (runs.iter().min(), runs.iter().max()) {
        (Some(first), Some(last)) if last - first + 1 == runs.len() as i64 => {
            format!("Runs {first} to {last} of the store. ")
        }
        _ => String::new(),
    };
    let seed = proof.seed.map_or_else(String::new, |seed| {
        format!("The order inside pairs was drawn by lot (--seed {seed}). ")
    });
    format!(
        "{which}{seed}Ratios: median of pairs (Hodges-Lehmann), 95 % interval; p: exact signed-rank \
         test over pairs, of causes Fisher's exact test over runs, of accounts and latencies \
         adjusted for their number (Benjamini and Hochberg); intervals of latencies hold for all \
         quantiles at once. A change counts from 1 % on."
    )
}

#[cfg(test)]
mod tests;
