//! A comparison of two benchmark runs, for people.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use model::units::{count, fine_duration, share, times};
use model::{BenchComparison, FigureComparison, StepComparison, WorkerKind};
use stats::ab::{Change, RUN_NOISE};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Steps that only one of the runs has, one by one.
const UNMATCHED: usize = 6;

/// Writes the summary, what the runs differ in, and a line per step; a second one where waiting
/// between operations says something else than the median of single operations.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, comparison: &BenchComparison, style: &Style) -> io::Result<()> {
    for line in text::wrap(&comparison.summary, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for warning in &comparison.warnings {
        for line in text::labelled("warning:", 9, warning, style.width).lines() {
            writeln!(out, "{}", style.paint(Paint::Yellow, line))?;
        }
    }
    for (run, alone) in [comparison.a, comparison.b].into_iter().zip(&comparison.unmatched) {
        if alone.is_empty() {
            continue;
        }
        let more = alone.len().saturating_sub(UNMATCHED);
        let mut words = alone[..alone.len() - more].join(", ");
        if more > 0 {
            words += &format!(" and {more} more");
        }
        write!(out, "{}", text::labelled(&format!("only run {run}:"), 13, &words, style.width))?;
    }
    for steps in comparison.steps.chunk_by(|a, b| a.case == b.case) {
        writeln!(out)?;
        write_case(out, steps, style)?;
    }
    writeln!(out)?;
    let legend = format!(
        "Figures are medians over rounds of the median operation, the clock included; + waiting: \
         wall time per operation, where it differs. Ratios: run {b} over run {a}. Intervals are of 95 %: rounds \
         resampled, noise of {} between runs and a change of the machine's own speed included. \
         p: Mann-Whitney test over rounds (n), exact without ties, adjusted for all steps by \
         Benjamini and Hochberg. A step is slower or faster if the whole interval and the ratio of \
         the fastest rounds are beyond {} and p is at most 0.05.",
        share(RUN_NOISE),
        share(comparison.threshold),
        a = comparison.a,
        b = comparison.b,
    );
    for line in text::wrap(&legend, style.width) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    Ok(())
}

fn write_case(out: &mut dyn Write, steps: &[StepComparison], style: &Style) -> io::Result<()> {
    let Some(first) = steps.first() else { return Ok(()) };
    writeln!(out, "{}", style.bold(&text::clean(&first.case)))?;
    let right = Align::Right;
    // Lines are short of room: what all steps have in common is left out.
    let same_population = steps.iter().all(|step| step.population == first.population);
    let same_workers =
        steps.iter().all(|step| (step.kind, step.workers) == (first.kind, first.workers));
    let title = match first.kind {
        _ if same_workers && !same_population => "population",
        WorkerKind::Threads if same_population => "threads",
        WorkerKind::Processes if same_population => "processes",
        _ => "",
    };
    let name = |step: &StepComparison| match title {
        "" => step.step.clone(),
        "population" => count(step.population),
        _ => step.workers.to_string(),
    };
    let mut table = Table::new(
        2,
        &[
            (title, Align::Left),
            ("first", right),
            ("second", right),
            ("ratio", right),
            ("interval", right),
            ("p", right),
            ("n", right),
            ("", right),
        ],
    );
    for step in steps {
        table.row(row(&name(step), &step.median));
        reason(&mut table, &step.median);
        if !agree(step) {
            table.row(row("+ waiting", &step.each));
            table.note(1, "on average: other programs on the CPUs do that as well; no verdict");
        }
    }
    table.write(out, style)
}

/// True if the second figure adds nothing.
fn agree(step: &StepComparison) -> bool {
    step.each.verdict == step.median.verdict
        || !matches!(step.each.verdict, Change::Slower | Change::Faster)
}

fn row(name: &str, figure: &FigureComparison) -> [Cell; 8] {
    let ratio =
        |pick: fn(&stats::Interval) -> String| figure.ratio.as_ref().map_or("-".to_owned(), pick);
    let p = match figure.p_adjusted {
        None => "-".to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    };
    let verdict = match figure.verdict {
        Change::Slower => Cell::painted("slower", Paint::Red),
        Change::Faster => Cell::painted("faster", Paint::Green),
        Change::NoDifference => "no difference".into(),
        Change::Insufficient => Cell::painted("insufficient", Paint::Yellow),
    };
    let [a, b] = figure.n;
    [
        name.into(),
        fine_duration(figure.a_ns).into(),
        fine_duration(figure.b_ns).into(),
        ratio(|interval| times(interval.estimate)).into(),
        ratio(|interval| format!("{:.2} to {:.2}", interval.low, interval.high)).into(),
        p.into(),
        format!("{a}+{b}").into(),
        verdict,
    ]
}

fn reason(table: &mut Table, figure: &FigureComparison) {
    if let Some(because) = &figure.because {
        table.note(1, because.as_str());
    }
}
