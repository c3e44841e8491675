//! Requests that were seen at sockets: by port, and calls by peer.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use model::units::{count, counted, duration, share};
use model::{Call, FlowKind, Histogram, MessageFlow, MessageMetric, Run, Service, TracedProgram};

use super::breakdown::FlowNoun;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, chart, text};

/// Ports and peers that are listed, those with most time first.
const LISTED: usize = 12;

/// True of a program that reported its messages itself.
pub(super) fn is_traced(program: &TracedProgram) -> bool {
    program.flows.iter().all(|flow| flow.kind == FlowKind::Traced)
}

/// True if no program reported messages itself.
pub(crate) fn are_all(run: &Run) -> bool {
    !run.messages.programs.iter().any(is_traced)
}

/// What the messages of the flow of this name are.
pub(super) fn noun<'a>(run: &Run, flow: &'a str) -> FlowNoun<'a> {
    let mut flows = run.messages.programs.iter().flat_map(|program| &program.flows);
    let is_request = flows.any(|of| of.name == flow && of.kind == FlowKind::Request);
    FlowNoun { name: flow, noun: if is_request { "slow request" } else { "slow message" } }
}

/// A port or a peer with what was counted of it.
struct Line<'a> {
    program: &'a TracedProgram,
    flow: &'a MessageFlow,
    total: Histogram,
}

/// Writes what was seen of requests, of calls after that. Nothing if there were none.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let requests = lines(run, FlowKind::Request);
    if !requests.is_empty() {
        writeln!(out, "{}", style.bold("Requests, as sockets show them"))?;
        for line in requests.iter().take(LISTED) {
            write_port(out, run, line, style)?;
        }
        left_out(out, requests.len(), "port", style)?;
    }
    let calls = lines(run, FlowKind::Call);
    if calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.bold("Calls, until the answer arrived"))?;
    write_calls(out, run, &calls, style)?;
    write_peers(out, run, &calls, style)?;
    left_out(out, calls.len(), "peer", style)
}

fn left_out(out: &mut dyn Write, all: usize, noun: &str, style: &Style) -> io::Result<()> {
    let left = all.saturating_sub(LISTED) as u64;
    if left == 0 {
        return Ok(());
    }
    writeln!(out, "{}", style.dim(&format!("  and {}", counted(left, &format!("more {noun}")))))
}

/// Those that were used, with most time first.
fn lines(run: &Run, kind: FlowKind) -> Vec<Line<'_>> {
    let flows = run.messages.programs.iter().flat_map(|program| {
        program.flows.iter().filter(|flow| flow.kind == kind).map(move |flow| (program, flow))
    });
    let line = |(program, flow): (&'_ TracedProgram, &'_ MessageFlow)| {
        run.messages.histogram(program.program, flow.flow, MessageMetric::Total)
    };
    let mut lines: Vec<Line<'_>> = flows
        .map(|(program, flow)| Line { program, flow, total: line((program, flow)) })
        .filter(|line| line.flow.ended > 0)
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.total.sum()));
    lines
}

fn write_port(out: &mut dyn Write, run: &Run, line: &Line<'_>, style: &Style) -> io::Result<()> {
    let (program, flow) = (line.program, line.flow);
    let length = run.length_ns().max(1);
    let of = |metric| run.messages.histogram(program.program, flow.flow, metric);
    let summary = summary(run, line, &of(MessageMetric::Logic), length);
    write!(out, "{}", text::labelled("  ", 4, &summary, style.width))?;
    super::write_metrics(out, flow, of, Some(length), style)?;
    Ok(())
}

/// `port 6379 (redis-server): 60,000 requests, 20,012/s; 20 connections, 3.4 requests at once`.
fn summary(run: &Run, line: &Line<'_>, worked: &Histogram, length: u64) -> String {
    let n = line.flow.ended;
    let mut summary = format!(
        "{} ({}): {}, {}/s",
        line.flow.name,
        run.comm(line.program.tgid),
        counted(n, "request"),
        count((n as f64 * 1e9 / length as f64).round() as u64),
    );
    let mean = |sum: u64| sum as f64 / length as f64;
    if let Some(service) = service(run, line.program.program) {
        summary += &format!("; {}", counted(service.connections, "connection"));
    }
    summary += &format!(
        "; on average {:.2} at once, {:.2} of them worked on",
        mean(line.total.sum()),
        mean(worked.sum())
    );
    summary += &workers(run, line, worked, length);
    if line.flow.slow > 0 {
        summary += &format!(
            "; {} slow (from {} on)",
            count(line.flow.slow),
            duration(line.flow.threshold_ns)
        );
    }
    let Some(service) = service(run, line.program.program) else { return summary };
    if service.several > 0 {
        summary += &format!(
            "; {} came before the one before on their connection was answered",
            count(service.several)
        );
        if service.several > n / 2 {
            summary += ", so most connections had several at once: times are those of answers";
        }
    }
    if service.pushed > 0 {
        summary += &format!("; {} that no request asked for", counted(service.pushed, "send"));
    }
    if let Some(oldest_ns) = service.oldest_ns {
        let end_ns = run.header.started_ns.saturating_add(run.length_ns());
        summary += &format!(
            "; {} had no answer at the end, the oldest came {} before it",
            count(service.open),
            duration(end_ns.saturating_sub(oldest_ns))
        );
    }
    if service.left_out > 0 {
        summary += &format!("; {} not kept", counted(service.left_out, "slow request"));
    }
    summary
}

/// `; 2 threads read them, and had one to work on for 93 % of the time`.
fn workers(run: &Run, line: &Line<'_>, worked: &Histogram, length: u64) -> String {
    let readers = run.messages.readers(line.program.program, line.flow.flow).len() as u64;
    if readers == 0 {
        return String::new();
    }
    match utilisation(readers, worked, length) {
        Some(used) => format!(
            "; {} read them, and had one to work on for {} of the time",
            counted(readers, "thread"),
            share(used)
        ),
        None => format!("; {} read them, several at a time", counted(readers, "thread")),
    }
}

/// The part of the time in which each of so many threads had a request to work on, 0 to 1; `None` if
/// they work on several at a time.
pub(super) fn utilisation(readers: u64, worked: &Histogram, length: u64) -> Option<f64> {
    let used = worked.sum() as f64 / readers.max(1) as f64 / length.max(1) as f64;
    (readers > 0 && used <= 1.0).then_some(used)
}

/// Calls of a request that are printed, the longest; and the deepest of their calls, in columns.
const CALLS: usize = 4;
const DEEPEST: usize = 14;

/// The calls that a request made, each with what its peer did if that is known.
pub(super) fn write_calls_of(
    out: &mut dyn Write,
    run: &Run,
    calls: &[Call],
    indent: usize,
    style: &Style,
) -> io::Result<()> {
    let mut longest: Vec<&Call> = calls.iter().collect();
    longest.sort_by_key(|call| std::cmp::Reverse(call.ns()));
    for call in longest.into_iter().take(CALLS) {
        let name = run.messages.flow(call.program, 1).map_or("a peer", |flow| &flow.name);
        let mut line = format!("called {name}: {}", duration(call.ns()));
        let waited = call.read_ns.saturating_sub(call.arrived_ns);
        if waited > 0 {
            line += &format!(", then the answer waited {} to be read", duration(waited));
        }
        if let Some(answer) = &call.answer {
            line += &format!(
                "; there {} in the socket's queue, {} worked on by {} (tid {})",
                duration(answer.read_ns.saturating_sub(answer.arrived_ns)),
                duration(answer.served_ns.saturating_sub(answer.read_ns)),
                comm_of(run, answer.tid),
                answer.tid,
            );
        }
        let margin = " ".repeat(indent);
        write!(out, "{}", text::labelled(&margin, indent + 2, &line, style.width))?;
        if let Some(answer) = call.answer.as_ref().filter(|_| indent < DEEPEST) {
            write_calls_of(out, run, &answer.calls, indent + 2, style)?;
        }
    }
    Ok(())
}

fn comm_of(run: &Run, tid: u32) -> &str {
    run.threads.iter().find(|thread| thread.tid == tid).map_or("?", |thread| thread.comm.as_str())
}

fn service(run: &Run, program: u32) -> Option<&Service> {
    run.sums.services.iter().find(|service| service.program == program)
}

/// Which processes of this host the peers are.
fn write_peers(
    out: &mut dyn Write,
    run: &Run,
    lines: &[Line<'_>],
    style: &Style,
) -> io::Result<()> {
    for Line { program, flow, .. } in lines.iter().take(LISTED) {
        let peer = service(run, program.program).and_then(|service| service.peer.as_ref());
        if let Some(peer) = peer {
            let line = format!("{}: {} (pid {})", flow.name, peer.comm, peer.tgid);
            write!(out, "{}", text::labelled("  ", 4, &line, style.width))?;
        }
    }
    Ok(())
}

fn write_calls(
    out: &mut dyn Write,
    run: &Run,
    lines: &[Line<'_>],
    style: &Style,
) -> io::Result<()> {
    let columns = [
        ("peer", Align::Left),
        ("by", Align::Left),
        ("n", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ];
    let mut table = Table::new(2, &columns);
    for Line { program, flow, total } in lines.iter().take(LISTED) {
        let quantile = |q| match chart::quantile(total, q) {
            Some(value) => Cell::from(duration(value)),
            None => Cell::painted("n too small", Paint::Dim),
        };
        table.row([
            flow.name.as_str().into(),
            run.comm(program.tgid).into(),
            count(total.count()).into(),
            duration(total.mean().unwrap_or(0.0).round() as u64).into(),
            quantile(0.5),
            quantile(0.99),
            duration(total.max().unwrap_or(0)).into(),
        ]);
    }
    table.write(out, style)
}
