//! A benchmark run: what the operations cost, rung by rung, and what the ladders say together.

mod rungs;
#[cfg(test)]
mod tests;
mod tour;

use std::io::{self, Write};

use model::bench::merged_warnings;
use model::units::{duration, moment};
use model::{Bench, BenchCase, BenchStep, LadderVerdict, Run};
use serde_json::{Value, json};

use crate::style::Paint;
use crate::{Style, chart, text};

/// The longest operations of a case that are listed.
const LONGEST: usize = 3;

const LEGEND: &str = "wall, user, system: seconds, the CPU times of a worker on average. each: \
    throughput of a worker against the first line's. cost: net against the first \
    line's. net: median without the clock's own cost. \
    empty: no operation at all. Quantiles are of single operations, the clock included, within \
    0.8 %; intervals are of 95 %, from rounds that took turns.";

/// Writes the empty operation and every case: its rungs, its longest operations, what its ladders
/// say (`ladders`, case by case), warnings; with `histograms` the distribution of every rung on both
/// axes. Many cases without histograms are written in a line each.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    run: &Run,
    ladders: &[Vec<LadderVerdict>],
    histograms: bool,
    style: &Style,
) -> io::Result<()> {
    let Some(bench) = &run.bench else { return Ok(()) };
    write_head(out, bench, cpus(run), style)?;
    if bench.cases.len() >= tour::CASES && !histograms {
        writeln!(out)?;
        return tour::write(out, bench, style);
    }
    for (n, case) in bench.cases.iter().enumerate() {
        writeln!(out)?;
        write_case(out, bench, case, ladders.get(n).map_or(&[], Vec::as_slice), run, style)?;
        if histograms {
            for step in &case.steps {
                writeln!(out)?;
                let title = format!("{}: {}", case.id, case.step_name(step));
                chart::histogram(out, &title, &step.single, style)?;
            }
        }
    }
    writeln!(out)?;
    paragraph(out, LEGEND, style)
}

/// What was measured, for machines, with what the ladders of each case say.
pub fn json(run: &Run, ladders: &[Vec<LadderVerdict>]) -> Value {
    let Some(bench) = &run.bench else { return Value::Null };
    let mut value = json!(bench);
    for (verdicts, into) in ladders.iter().zip(value["cases"].as_array_mut().into_iter().flatten())
    {
        into["verdicts"] = json!(verdicts);
    }
    value["run"] = json!(run.id);
    value["cpus"] = json!(cpus(run));
    value
}

/// CPUs of the host, by its facts.
fn cpus(run: &Run) -> Option<u32> {
    run.fact_number("cpu.count").and_then(|count| count.try_into().ok())
}

fn write_head(
    out: &mut dyn Write,
    bench: &Bench,
    cpus: Option<u32>,
    style: &Style,
) -> io::Result<()> {
    let cpus = cpus.map_or("on an unknown number of CPUs".to_owned(), |cpus| match cpus {
        1 => "on 1 CPU".to_owned(),
        more => format!("on {more} CPUs"),
    });
    let bound = if bench.pinned { "each bound to a CPU" } else { "bound to no CPU" };
    let lines = [
        ("clock", bench.clock.clone()),
        ("workers", format!("{bound}, {cpus}")),
        ("empty", rungs::in_a_line(&bench.empty)),
    ];
    for (label, line) in lines {
        write!(out, "{}", text::labelled(label, 9, &line, style.width))?;
    }
    write_warnings(out, &[(String::new(), &bench.empty)], style)
}

fn write_case(
    out: &mut dyn Write,
    bench: &Bench,
    case: &BenchCase,
    ladders: &[LadderVerdict],
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let title = format!("{}: {}", case.id, case.measures);
    for line in text::wrap(&title, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    rungs::write(out, case, &bench.empty, style)?;
    for verdict in ladders {
        for (n, sentence) in verdict.sentences.iter().enumerate() {
            for line in
                text::labelled("  ", if n == 0 { 2 } else { 4 }, sentence, style.width).lines()
            {
                let line = if n == 0 { style.paint(Paint::Bold, line) } else { line.to_owned() };
                writeln!(out, "{line}")?;
            }
        }
    }
    if let Some(shape) = &case.shape {
        let present = if shape.present { "present" } else { "absent" };
        let sentence = format!("the reported shape is {present}: {}", shape.text);
        write!(out, "{}", text::labelled("  ", 2, &sentence, style.width))?;
    }
    if let Some(stopped) = &case.stopped {
        let label = if case.steps.is_empty() { "not measured: " } else { "stopped: " };
        let sentence = format!("{label}{stopped}");
        for line in text::labelled("  ", 2, &sentence, style.width).lines() {
            writeln!(out, "{}", style.paint(Paint::Yellow, line))?;
        }
    }
    write_longest(out, case, run, style)?;
    let steps: Vec<(String, &BenchStep)> =
        case.steps.iter().map(|step| (case.step_name(step), step)).collect();
    write_warnings(out, &steps, style)
}

/// The longest operations of all rungs, with the time since the run began.
fn write_longest(
    out: &mut dyn Write,
    case: &BenchCase,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let mut longest: Vec<_> = case
        .steps
        .iter()
        .flat_map(|step| step.outliers.iter().map(move |outlier| (step, outlier)))
        .collect();
    longest.sort_by_key(|(_, outlier)| std::cmp::Reverse(outlier.ns));
    let words: Vec<String> = longest
        .iter()
        .take(LONGEST)
        .map(|(step, outlier)| {
            let at = outlier.start_ns.saturating_sub(run.header.started_ns);
            format!("{} ({}, at {})", duration(outlier.ns), case.step_name(step), moment(at))
        })
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    paragraph(out, &format!("  longest: {}", words.join(", ")), style)
}

fn write_warnings(
    out: &mut dyn Write,
    steps: &[(String, &BenchStep)],
    style: &Style,
) -> io::Result<()> {
    for (place, warning) in merged_warnings(steps) {
        let place = if place.is_empty() { place } else { format!("{place}: ") };
        let sentence = format!("{place}{warning}");
        for line in text::labelled("  warning:", 11, &sentence, style.width).lines() {
            writeln!(out, "{}", style.paint(Paint::Yellow, line))?;
        }
    }
    Ok(())
}

/// Dim text; lines after the first keep its indent.
fn paragraph(out: &mut dyn Write, words: &str, style: &Style) -> io::Result<()> {
    let indent = words.len() - words.trim_start().len();
    for line in text::labelled("", indent, words, style.width).lines() {
        writeln!(out, "{}", style.dim(line))?;
    }
    Ok(())
}
