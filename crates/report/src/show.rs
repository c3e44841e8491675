//! Everything about one run for people: `whylag show RUN`.

use std::io::{self, Write};

use model::units::{count, counted, duration};
use model::{Annotations, Capability, Metric, OutlierKind, Run, RunStatus};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{
    Style, accounts, bench, chart, coincidences, cost, jitter, messages, on_cpu, outlier, runs,
    sampled_calls, series, sockets, text, waits,
};

/// Metrics in the table, and of these the ones that are drawn.
const METRICS: usize = 30;
const CHARTS: usize = 4;

/// Outliers in full.
const OUTLIERS: usize = 8;

/// Slow messages in full.
const MESSAGES: usize = 5;

/// Groups of facts that are long and rarely read; they are in the JSON.
const DETAILS: [&str; 3] = ["sysctl.", "env.", "rlimit."];

/// Writes the header and facts, what benchmarks measured, the messages of traced programs, the
/// accounts (of all and of each thread), the histograms with most time, the slowest outliers in
/// full, who waited for whom, the sockets, the cost of the recorder, and which other programs ran when repeated events
/// came, and what busy threads ran. What is left out is counted. `notes` is what explain reads in the run, `name` what a verb
/// takes to find it again: its number, or its file.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    run: &Run,
    name: &str,
    notes: &Annotations,
    style: &Style,
) -> io::Result<()> {
    write_run(out, run, name, notes, style)?;
    sampled_calls::write(out, notes.sampled_calls.as_ref(), run.length_ns(), style)?;
    on_cpu::write(out, &notes.on_cpu, style)?;
    coincidences::write(out, &notes.coincidences, style)
}

fn write_run(
    out: &mut dyn Write,
    run: &Run,
    name: &str,
    notes: &Annotations,
    style: &Style,
) -> io::Result<()> {
    write_header(out, run, style)?;
    write_facts(out, run, style)?;
    writeln!(out)?;
    if run.bench.is_some() {
        bench::write(out, run, &notes.ladders, false, style)?;
        // Nothing was recorded unless it was asked for.
        if run.threads.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
    }
    if let Some(jitter) = &run.jitter {
        jitter::write(out, jitter, style)?;
        if run.threads.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
    }
    if !run.messages.is_empty() {
        messages::write(out, run, name, &notes.messages, MESSAGES, style)?;
        if run.threads.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
    }
    accounts::write_summary(out, run, style)?;
    writeln!(out)?;
    accounts::write_threads(out, run, style)?;
    write_histograms(out, run, style)?;
    write_outliers(out, run, name, style)?;
    waits::write(out, run, style)?;
    sockets::write(out, run, style)?;
    writeln!(out)?;
    cost::write(out, run, style)
}

fn write_header(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&format!("Run {}", run.id)))?;
    let header = &run.header;
    let children = if header.follow { ", and its children" } else { "" };
    let status = match run.status {
        RunStatus::Recording => "being recorded",
        RunStatus::Complete => "complete",
        RunStatus::Interrupted => "interrupted: complete up to the last second",
    };
    let mut lines = vec![
        ("target", format!("{}{children}", header.target)),
        ("started", format!("{} UTC", runs::utc(header.started_unix_ns))),
        ("length", duration(run.length_ns())),
        ("status", status.to_owned()),
    ];
    if let Some(end) = &run.end {
        let exit = end.exit_status.map_or_else(String::new, |exit| format!("; exit status {exit}"));
        lines.push(("ended", format!("{}{exit}", end.reason)));
    }
    if !runs::is_unrecorded(&header.target, run.thread_count()) {
        let how = if header.sampled { ", states sampled from /proc: estimates" } else { "" };
        lines.push(("outliers", format!("from {} on{how}", duration(header.threshold_ns))));
    }
    lines.push(("recorder", format!("whylag {}, pid {}", header.version, header.recorder_pid)));
    for (label, text) in lines {
        write!(out, "{}", text::labelled(&format!("  {label}"), 13, &text, style.width))?;
    }
    Ok(())
}

fn write_facts(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let is_detail = |name: &str| DETAILS.iter().any(|prefix| name.starts_with(prefix));
    let (details, shown): (Vec<_>, Vec<_>) =
        run.facts.iter().partition(|fact| is_detail(&fact.name));
    if shown.is_empty() && details.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Facts"))?;
    let mut table = Table::new(2, &[("", Align::Left), ("", Align::Left)]);
    for fact in shown {
        table.row([fact.name.as_str().into(), fact.value.as_str().into()]);
    }
    table.write(out, style)?;
    if !details.is_empty() {
        let more =
            format!("  and {} under sysctl, env and rlimit", counted(details.len() as u64, "fact"));
        writeln!(out, "{}", style.dim(&more))?;
    }
    Ok(())
}

fn write_histograms(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let series = series::by_metric(run);
    if series.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Durations (those with most time first)"))?;
    let mut table = Table::new(
        2,
        &[
            ("metric", Align::Left),
            ("n", Align::Right),
            ("sum", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
        ],
    );
    for series in series.iter().take(METRICS) {
        let quantile = |q| match chart::quantile(&series.total, q) {
            Some(value) => Cell::from(duration(value)),
            None => Cell::painted("n too small", Paint::Dim),
        };
        table.row([
            series.metric.to_string().into(),
            count(series.total.count()).into(),
            duration(series.total.sum()).into(),
            quantile(0.5),
            quantile(0.99),
            duration(series.total.max().unwrap_or(0)).into(),
        ]);
    }
    table.write(out, style)?;
    more(out, style, series.len() as u64, METRICS.min(series.len()), "metric")?;
    for given_up in given_up(run, series.iter().map(|series| series.metric)) {
        let words = format!("of {} there is only a part here: {}", given_up.part, given_up.because);
        write!(out, "{}", text::labelled("  ", 2, &words, style.width))?;
    }
    for series in series.iter().take(CHARTS) {
        writeln!(out)?;
        chart::histogram(out, &series.metric.to_string(), &series.total, style)?;
        chart::over_time(out, &series.seconds, run.header.started_ns, style)?;
    }
    Ok(())
}

/// The parts of the recorder of which some of these metrics are and that did not last as long as the run.
fn given_up<'a>(run: &'a Run, metrics: impl Iterator<Item = &'a Metric>) -> Vec<&'a Capability> {
    let mut parts: Vec<&Capability> = metrics.filter_map(|metric| run.given_up(metric)).collect();
    parts.sort_by_key(|capability| capability.part);
    parts.dedup();
    parts
}

fn write_outliers(out: &mut dyn Write, run: &Run, name: &str, style: &Style) -> io::Result<()> {
    let of_kind = |kind| run.outliers.iter().filter(|outlier| outlier.kind == kind).count();
    let kinds = [
        (OutlierKind::Syscall, "in system calls"),
        (OutlierKind::OffCpu, "off the CPU"),
        (OutlierKind::RunQueue, "in the run queue"),
        (OutlierKind::LockHold, "holding mmap_lock"),
        (OutlierKind::FirstCall, "in first calls"),
    ];
    let threshold = duration(run.header.threshold_ns);
    let heading = format!("{} from {threshold} on", counted(run.outlier_count, "outlier"));
    writeln!(out, "\n{}", style.bold(&heading))?;
    if run.outliers.is_empty() {
        return Ok(());
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, name)| (of_kind(kind), name))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{} {name}", count(n as u64)))
        .collect();
    let longest = count(run.outliers.len() as u64);
    let kept = format!("the longest {longest}: {}", kinds.join(", "));
    write!(out, "{}", text::labelled("  ", 2, &kept, style.width))?;
    for (n, outlier) in run.outliers.iter().take(OUTLIERS).enumerate() {
        writeln!(out)?;
        outlier::write(out, n + 1, outlier, run, style)?;
    }
    more(out, style, run.outlier_count, run.outliers.len().min(OUTLIERS), "outlier")?;
    let name = text::clean(name);
    let hint = format!("  'whylag explain {name} --outlier N' explains one of them alone");
    writeln!(out, "{}", style.dim(&hint))
}

/// Says how many were not shown, if any.
pub(crate) fn more(
    out: &mut dyn Write,
    style: &Style,
    all: u64,
    shown: usize,
    noun: &str,
) -> io::Result<()> {
    let left = all.saturating_sub(shown as u64);
    if left == 0 {
        return Ok(());
    }
    let left = counted(left, &format!("more {noun}"));
    writeln!(out, "{}", style.dim(&format!("  and {left}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn durations_of_a_part_of_the_run_are_said_to_be() {
        let mut run = sample::run();
        let shown = |run: &Run| {
            sample::written(|out| write(out, run, "x", &Annotations::default(), &Style::default()))
        };
        assert!(!shown(&run).contains("only a part here"));
        let part = model::RecorderPart::SystemCalls;
        run.capabilities.retain(|capability| capability.part != part);
        let because = "recorded for the first 2.00 s".to_owned();
        run.capabilities.push(Capability { part, on: false, because });
        let text = shown(&run).split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "of system calls there is only a part here: recorded for the first 2.00 s";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn a_run_is_shown_in_full_within_80_columns() {
        let run = sample::run();
        let text = sample::written(|out| {
            write(out, &run, "x.whylag", &Annotations::default(), &Style::default())
        });
        sample::assert_fits(&text, 80);
        assert!(!text.contains('\x1b'));
        for part in [
            "Run 12\n",
            "started    2026-03-01 10:00:03 UTC",
            "kernel.release",
            "and 2 facts under sysctl",
            "Threads (",
            "syscall:mmap",
            "logarithmic, from",
            "linear, from",
            "p99.9 n too small",
            "count per s",
            "2,000 outliers from 1.00 ms on",
            "and 1,998 more outliers",
            "'whylag explain x.whylag --outlier N' explains",
            "whylag itself:",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("sysctl.vm.swappiness"), "{text}");
    }

    #[test]
    fn an_empty_run_is_shown_without_a_panic() {
        let run = sample::empty_run();
        let text = sample::written(|out| {
            write(out, &run, "x.whylag", &Annotations::default(), &Style { color: true, width: 60 })
        });
        assert!(text.contains("unaccounted"), "{text}");
    }

    #[test]
    fn names_cannot_send_escape_codes() {
        let mut run = sample::run();
        let evil = "\x1b]0;x\x07\r\n".to_owned();
        run.threads[0].comm.clone_from(&evil);
        run.outliers[0].comm.clone_from(&evil);
        run.outliers[0].ran_instead[0].comm.clone_from(&evil);
        run.facts[0].value.clone_from(&evil);
        run.header.target = model::Target::Command(vec![evil.clone()]);
        run.capabilities[0].because.clone_from(&evil);
        for stack in run.stacks.values_mut() {
            stack.frames[0].symbol = Some(evil.clone());
        }
        let text = sample::written(|out| {
            write(out, &run, "x.whylag", &Annotations::default(), &Style::default())
        });
        assert!(!text.contains(['\x1b', '\x07', '\r']), "{text}");
    }
}
