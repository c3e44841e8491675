//! The tables of a case: what the rungs cost together, and how long single operations took.

use std::io::{self, Write};

use model::units::{compact, count, duration, fine_duration, seconds, times};
use model::{Along, BenchCase, BenchStep, WorkerKind};

use crate::accounts::bar;
use crate::chart::quantile;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

const RIGHT: Align = Align::Right;

/// The most columns of a bar.
const BAR: usize = 40;

/// Writes the rungs, those with the same population together if workers grow as well.
pub fn write(
    out: &mut dyn Write,
    case: &BenchCase,
    empty: &BenchStep,
    style: &Style,
) -> io::Result<()> {
    let (sizes, workers) = (case.populations(), case.worker_counts());
    if sizes.len() < 2 || workers.len() < 2 {
        let along = if sizes.len() > 1 { Along::Population } else { Along::Workers };
        let all: Vec<&BenchStep> = case.steps.iter().collect();
        let alone = all.first().filter(|_| workers.len() == 1 && sizes.len() > 1);
        if let Some(step) = alone {
            write_title(out, &step.kind.count_in_words(step.workers), case, style)?;
        } else if let (Some(of), Some(size)) = (&case.population_of, sizes.first()) {
            write_title(out, &format!("with {} {of}", count(*size)), case, style)?;
        }
        return group(out, along, &all, empty, style);
    }
    for size in sizes {
        let of = case.population_of.as_deref().unwrap_or("objects");
        write_title(out, &format!("with {} {of}", count(size)), case, style)?;
        let steps: Vec<&BenchStep> =
            case.steps.iter().filter(|step| step.population == size).collect();
        group(out, Along::Workers, &steps, empty, style)?;
    }
    Ok(())
}

fn write_title(
    out: &mut dyn Write,
    title: &str,
    case: &BenchCase,
    style: &Style,
) -> io::Result<()> {
    let objects = case.population_of.as_deref().filter(|of| !title.contains(*of));
    let beside = objects.map_or(String::new(), |of| format!(", with {of}"));
    let line = text::clean(&format!("{title}{beside}:"));
    writeln!(out, "  {}", style.dim(&line))
}

fn group(
    out: &mut dyn Write,
    along: Along,
    steps: &[&BenchStep],
    empty: &BenchStep,
    style: &Style,
) -> io::Result<()> {
    let Some(first) = steps.first() else { return Ok(()) };
    let rung_title = match (along, first.kind) {
        (Along::Population, _) => "population",
        (Along::Workers, WorkerKind::Threads) => "threads",
        (Along::Workers, WorkerKind::Processes) => "processes",
    };
    let rung = |step: &BenchStep| match along {
        Along::Population => count(step.population),
        Along::Workers => step.workers.to_string(),
    };
    costs(out, along, rung_title, &rung, steps, style)?;
    single_times(out, rung_title, &rung, steps, empty, style)
}

/// Operations and seconds, and the curve of the ladder: throughput of all workers together, or the
/// cost of an operation with a growing population.
fn costs(
    out: &mut dyn Write,
    along: Along,
    title: &'static str,
    rung: &dyn Fn(&BenchStep) -> String,
    steps: &[&BenchStep],
    style: &Style,
) -> io::Result<()> {
    let Some(first) = steps.first() else { return Ok(()) };
    let figure = |step: &BenchStep| match along {
        Along::Workers => step.rate(),
        Along::Population => step.net_ns,
    };
    let each = |step: &BenchStep| step.rate() / f64::from(step.workers.max(1));
    let largest = steps.iter().map(|step| figure(step)).fold(0.0, f64::max);
    let (change, curve) = match along {
        Along::Workers => ("each", "throughput"),
        Along::Population => ("cost", "cost"),
    };
    let curve = if steps.len() > 1 { curve } else { "" };
    let mut table = Table::new(
        2,
        &[
            (title, RIGHT),
            ("operations", RIGHT),
            ("wall", RIGHT),
            ("user", RIGHT),
            ("system", RIGHT),
            ("per s", RIGHT),
            (change, RIGHT),
            (curve, Align::Left),
        ],
    );
    // What is left of the line next to the other columns, at their usual widths.
    let columns = style.width.saturating_sub(66).clamp(8, BAR);
    for step in steps {
        let workers = f64::from(step.workers.max(1));
        let ratio = match along {
            Along::Workers => each(step) / each(first),
            Along::Population => step.net_ns / first.net_ns,
        };
        let drawn = if steps.len() > 1 {
            // Bars need integers; a thousandth of the largest is finer than they are drawn.
            bar((figure(step) / largest.max(f64::MIN_POSITIVE) * 1e3) as u64, 1_000, columns)
        } else {
            String::new()
        };
        table.row([
            rung(step).into(),
            count(step.operations).into(),
            seconds(step.wall_ns as f64).into(),
            seconds(step.user_ns as f64 / workers).into(),
            seconds(step.system_ns as f64 / workers).into(),
            compact(step.rate()).into(),
            if ratio.is_finite() { times(ratio) } else { "-".to_owned() }.into(),
            Cell::painted(drawn, Paint::Cyan),
        ]);
    }
    table.write(out, style)
}

/// Quantiles of single operations, the empty operation first.
fn single_times(
    out: &mut dyn Write,
    title: &'static str,
    rung: &dyn Fn(&BenchStep) -> String,
    steps: &[&BenchStep],
    empty: &BenchStep,
    style: &Style,
) -> io::Result<()> {
    let titles = [title, "net", "median", "p99", "p99.9", "max", "n"];
    let mut table = Table::new(2, &titles.map(|title| (title, RIGHT)));
    table.row(single_row("empty".into(), empty));
    for step in steps {
        table.row(single_row(rung(step), step));
    }
    table.write(out, style)
}

fn single_row(rung: String, step: &BenchStep) -> [Cell; 7] {
    let quantile = |q| match quantile(&step.single, q) {
        Some(ns) => Cell::from(duration(ns)),
        None => Cell::painted("n too small", Paint::Dim),
    };
    [
        rung.into(),
        fine_duration(step.net_ns).into(),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        step.single.max().map_or("-".to_owned(), duration).into(),
        count(step.single.count()).into(),
    ]
}

/// A rung in words: its median, p99 and n.
pub fn in_a_line(step: &BenchStep) -> String {
    let quantile = |name: &str, q| match quantile(&step.single, q) {
        Some(ns) => format!("{name} {}", duration(ns)),
        None => format!("{name} n too small"),
    };
    format!(
        "{}, {}, {} (n {}): what clock and harness cost, in every row but net",
        quantile("median", 0.5),
        quantile("p99", 0.99),
        quantile("p99.9", 0.999),
        count(step.single.count()),
    )
}
