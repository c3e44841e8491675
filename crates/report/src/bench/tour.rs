//! The tour of all cases: a line for each.

use std::io::{self, Write};

use model::units::{compact, count, duration, times};
use model::{Bench, BenchCase, BenchStep};

use crate::Style;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};

/// From so many cases on they are written in a line each.
pub const CASES: usize = 20;

const LEGEND: &str = "net: median of one worker's operations without the clock's own cost. cost: \
    how much longer an operation takes, on average, for each of so many workers at once, or \
    with so many objects. whylag bench CASE has the rest.";

/// Writes a line per case, and below it what there is to say of it: the shape of its story, where
/// it is there, and why it ended early.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, bench: &Bench, style: &Style) -> io::Result<()> {
    let mut table = Table::new(
        0,
        &[
            ("case", Align::Left),
            ("net", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
            ("n", Align::Right),
            ("cost", Align::Right),
            ("with", Align::Left),
        ],
    );
    for case in &bench.cases {
        add(&mut table, case);
    }
    table.write(out, style)?;
    super::paragraph(out, LEGEND, style)
}

fn add(table: &mut Table, case: &BenchCase) {
    match case.steps.first() {
        Some(step) => table.row(row(case, step)),
        None => table.row([Cell::painted(case.id.as_str(), Paint::Yellow)]),
    }
    if let Some(shape) = case.shape.as_ref().filter(|shape| shape.present) {
        table.note(1, format!("the reported shape is present: {}", shape.text));
    }
    if let Some(stopped) = &case.stopped {
        table.note(1, stopped.as_str());
    }
}

fn row(case: &BenchCase, step: &BenchStep) -> [Cell; 7] {
    let (cost, at) = second_rung(case, step).unwrap_or_default();
    let quantile = |q| match stats::quantile::carries(step.single.count(), q) {
        true => step.single.quantile(q).map_or("-".to_owned(), duration),
        false => "-".to_owned(),
    };
    [
        case.id.as_str().into(),
        duration(step.net_ns.round() as u64).into(),
        quantile(0.99).into(),
        step.single.max().map_or("-".to_owned(), duration).into(),
        compact(step.single.count() as f64).into(),
        cost.into(),
        at.into(),
    ]
}

/// What an operation costs on the second rung against the first, and what differs there.
fn second_rung(case: &BenchCase, first: &BenchStep) -> Option<(String, String)> {
    let more = |step: &&BenchStep| step.workers > first.workers;
    let step = case.steps.iter().find(more).or(case.steps.get(1))?;
    let each = |step: &BenchStep| stats::quantile::median(&step.each_ns());
    let ratio = each(step)? / each(first)?;
    let words = match step.workers > first.workers {
        true => step.kind.count_in_words(step.workers),
        false => format!("{} objects", count(step.population)),
    };
    Some((times(ratio), words))
}
