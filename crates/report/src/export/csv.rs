//! The histograms of a run per second, or the steps of a benchmark, as CSV.

use std::io::{self, Write};

use model::{Bench, BenchStep, Histogram, Run, WorkerKind};

use crate::text;

const TITLES: &str = "second,tgid,comm,metric,count,sum_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns";

const STEP_TITLES: &str = "case,kind,workers,population,operations,wall_ns,user_ns,system_ns,net_ns,\
                           n,min_ns,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,rounds,ended_early";

/// Writes a benchmark as one line per step, with its figures; else one line per process, metric and second. `second` counts from the start of the run;
/// `tgid` 0 is the host, without a name. Quoted as in RFC 4180, lines end in `\n`.
///
/// The quantiles describe the values of that second, to within a bucket (3.1 %); whether they say
/// more is for the reader to judge by `count`. Count, sum, minimum and maximum are exact.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    if let Some(bench) = &run.bench {
        return steps(out, bench);
    }
    writeln!(out, "{TITLES}")?;
    for second in &run.seconds {
        let comm = if second.tgid == 0 { "" } else { run.comm(second.tgid) };
        let start_ns = second.start_ns.saturating_sub(run.header.started_ns);
        let metric = second.metric.to_string();
        line(out, start_ns, second.tgid, comm, &metric, &second.histogram)?;
    }
    messages(out, run)
}

/// The same of messages: the metric is `message:FLOW:` and what was measured.
fn messages(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    for second in &run.messages.seconds {
        let Some(program) = run.messages.program(second.program) else { continue };
        let Some(flow) = run.messages.flow(second.program, second.flow) else { continue };
        let metric = format!("message:{}:{}", flow.name, flow.metric_name(second.metric));
        let start_ns = second.start_ns.saturating_sub(run.header.started_ns);
        let comm = run.comm(program.tgid);
        line(out, start_ns, program.tgid, comm, &metric, &second.histogram)?;
    }
    Ok(())
}

fn line(
    out: &mut dyn Write,
    start_ns: u64,
    tgid: u32,
    comm: &str,
    metric: &str,
    histogram: &Histogram,
) -> io::Result<()> {
    let quantile = |q| histogram.quantile(q).unwrap_or(0);
    writeln!(
        out,
        "{},{tgid},{},{},{},{},{},{},{},{},{}",
        start_ns / 1_000_000_000,
        quoted(comm),
        quoted(metric),
        histogram.count(),
        histogram.sum(),
        histogram.min().unwrap_or(0),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        histogram.max().unwrap_or(0),
    )
}

/// Writes one line per step, the empty operation first. Operations and times are those of all
/// workers and rounds; `n` and the quantiles are of single operations with the clock's own cost,
/// `net_ns` is the median without it.
fn steps(out: &mut dyn Write, bench: &Bench) -> io::Result<()> {
    writeln!(out, "{STEP_TITLES}")?;
    step(out, "empty", &bench.empty)?;
    for case in &bench.cases {
        case.steps.iter().try_for_each(|of| step(out, &case.id, of))?;
    }
    Ok(())
}

fn step(out: &mut dyn Write, case: &str, step: &BenchStep) -> io::Result<()> {
    let kind = match step.kind {
        WorkerKind::Threads => "threads",
        WorkerKind::Processes => "processes",
    };
    let quantile = |q| step.single.quantile(q).unwrap_or(0);
    writeln!(
        out,
        "{},{kind},{},{},{},{},{},{},{:.1},{},{},{},{},{},{},{},{},{}",
        quoted(case),
        step.workers,
        step.population,
        step.operations,
        step.wall_ns,
        step.user_ns,
        step.system_ns,
        step.net_ns,
        step.single.count(),
        step.single.min().unwrap_or(0),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999),
        step.single.max().unwrap_or(0),
        step.rounds.len(),
        step.ended_early,
    )
}

/// The field, in quotes if it needs them.
fn quoted(field: &str) -> String {
    let field = text::clean(field);
    // As OWASP's page on CSV injection has it.
    let is_formula = field.starts_with(['=', '+', '-', '@']);
    let field = if is_formula { format!("'{field}") } else { field };
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn another_reader_finds_the_same_values() {
        let mut run = sample::run();
        let odd = "a \"b\", c\nd";
        run.processes[0].comm = odd.into();
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), TITLES);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), run.seconds.len());
        for (row, second) in rows.iter().zip(&run.seconds) {
            let number = |n: usize| row[n].parse::<u64>().unwrap();
            let at = second.start_ns - run.header.started_ns;
            assert_eq!(number(0), at / 1_000_000_000);
            assert_eq!(number(1), u64::from(second.tgid));
            assert_eq!(&row[2], if second.tgid == 77 { r#"a "b", c\nd"# } else { "" });
            assert_eq!(row[3], second.metric.to_string());
            assert_eq!(number(4), second.histogram.count());
            assert_eq!(number(5), second.histogram.sum());
            assert_eq!(Some(number(6)), second.histogram.min());
            assert_eq!(Some(number(9)), second.histogram.quantile(0.99));
            assert_eq!(Some(number(10)), second.histogram.max());
        }
        assert!(rows.iter().any(|row| row[3].contains("i_rwsem, ext4")));
    }

    #[test]
    fn a_benchmark_has_a_line_per_step() {
        let run = sample::bench_run();
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let bench = run.bench.unwrap();
        let steps: Vec<&BenchStep> = std::iter::once(&bench.empty)
            .chain(bench.cases.iter().flat_map(|case| &case.steps))
            .collect();
        assert_eq!(rows.len(), steps.len());
        for (row, step) in rows.iter().zip(steps) {
            assert_eq!(row[2].parse::<u32>().unwrap(), step.workers);
            assert_eq!(row[3].parse::<u64>().unwrap(), step.population);
            assert_eq!(row[4].parse::<u64>().unwrap(), step.operations);
            assert_eq!(row[9].parse::<u64>().unwrap(), step.single.count());
            assert_eq!(row[13].parse::<u64>().ok(), step.single.quantile(0.99));
        }
    }
}
