//! What `whylag trace -p` prints while the program runs.

use std::io::{self, Write};

use model::units::{count, counted, duration};
use model::{
    Histogram, Message, MessageSecond, TraceState, TracedProgram, UnfinishedMessage,
    histogram::PRECISION_KERNEL,
};

use super::slow::sentence;
use crate::style::Paint;
use crate::{Style, text};

/// What was counted in one interval, a table per flow.
///
/// # Errors
/// Those of `out`.
pub fn write_interval(
    out: &mut dyn Write,
    program: &TracedProgram,
    seconds: &[MessageSecond],
    length_ns: u64,
    style: &Style,
) -> io::Result<()> {
    for flow in &program.flows {
        let of_flow = || seconds.iter().filter(|second| second.flow == flow.flow);
        let mut heading = format!(
            "{}: {} ended, {} slow (from {} on)",
            flow.name,
            count(flow.ended),
            count(flow.slow),
            duration(flow.threshold_ns)
        );
        let open = flow.begun.saturating_sub(flow.ended).saturating_sub(flow.abandoned);
        for (n, what) in [(open, "under way"), (flow.abandoned, "abandoned")] {
            if n > 0 {
                heading += &format!(", {} {what}", count(n));
            }
        }
        writeln!(out, "{}", style.bold(&text::clean(&heading)))?;
        if of_flow().next().is_none() {
            writeln!(out, "{}", style.dim("  none ended in this interval"))?;
            continue;
        }
        let histogram = |metric| {
            let found = of_flow().find(|second| second.metric == metric);
            found.map_or_else(|| Histogram::new(PRECISION_KERNEL), |s| s.histogram.clone())
        };
        super::write_metrics(out, flow, histogram, Some(length_ns), style)?;
    }
    super::write_losses(out, program, style)?;
    Ok(())
}

/// A slow message with its parts, the moment it was read.
///
/// # Errors
/// Those of `out`.
pub fn write_slow(
    out: &mut dyn Write,
    program: &TracedProgram,
    message: &Message,
    style: &Style,
) -> io::Result<()> {
    let Some(flow) = program.flows.iter().find(|flow| flow.flow == message.flow) else {
        return Ok(());
    };
    let line = sentence(message, flow, &program.flows);
    let mut lines = text::wrap(&line, style.width.saturating_sub(7)).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "{} {first}", style.paint(Paint::Yellow, "slow"))?;
    lines.try_for_each(|line| writeln!(out, "       {line}"))
}

/// A message whose logic does not end.
///
/// # Errors
/// Those of `out`.
pub fn write_stuck(
    out: &mut dyn Write,
    program: &TracedProgram,
    message: &UnfinishedMessage,
    style: &Style,
) -> io::Result<()> {
    let flow = program.flows.iter().find(|flow| flow.flow == message.flow);
    let since = |ns: u64| duration(message.read_ns.saturating_sub(ns));
    let last = match &message.last_name {
        Some(name) => format!("published {name} {} ago", since(message.last_ns)),
        None => "published nothing that has a name".to_owned(),
    };
    let line = format!(
        "{} {}: received {} ago, in its logic for {} (tid {}), {last}",
        flow.map_or("message", |flow| &flow.name),
        message.id,
        since(message.t0_ns),
        since(message.logic_start_ns),
        message.tid,
    );
    let label = if program.state == TraceState::Running { "stuck" } else { "never ended" };
    let indent = label.len() + 1;
    let mut lines = text::wrap(&line, style.width.saturating_sub(indent)).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "{} {first}", style.paint(Paint::Red, label))?;
    lines.try_for_each(|line| writeln!(out, "{:indent$}{line}", ""))
}

/// How the program ended.
///
/// # Errors
/// Those of `out`.
pub fn write_end(out: &mut dyn Write, program: &TracedProgram, style: &Style) -> io::Result<()> {
    let ended: u64 = program.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.ended));
    let slow: u64 = program.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.slow));
    let how = match program.state {
        TraceState::Running => "still runs",
        TraceState::Closed => "ended its tracing",
        TraceState::Crashed => "is gone and left its trace: 'whylag trace harvest' keeps it",
    };
    let messages = counted(ended, "message");
    let line = format!("pid {} {how}; {messages} ended, {} slow", program.tgid, count(slow));
    writeln!(out, "{}", style.bold(&line))
}

#[cfg(test)]
mod tests {
    use model::{MessageFlow, MessageMetric, MessagePoint, MessagePublish};

    use super::*;
    use crate::sample;

    fn program() -> TracedProgram {
        TracedProgram {
            tgid: 12,
            flows: vec![MessageFlow {
                flow: 1,
                name: "order".into(),
                points: vec!["journalled".into()],
                publishes: vec!["trade-report".into()],
                threshold_ns: 100_000,
                begun: 1207,
                ended: 1200,
                slow: 3,
                ..MessageFlow::default()
            }],
            ..TracedProgram::default()
        }
    }

    fn message() -> Message {
        Message {
            program: 0,
            flow: 1,
            id: 8123,
            sample: None,
            t0_ns: 1_000_000,
            logic_start_ns: 1_100_000,
            end_ns: 5_100_000,
            tid: 13,
            points: vec![MessagePoint { point: 0, time_ns: 1_090_000, tid: Some(14) }],
            published: vec![MessagePublish { publish: Some(0), time_ns: 5_000_000 }],
            publishes: 1,
            longest_gap_ns: 3_900_000,
            depth: Some(3),
            ahead: Vec::new(),
            kept_ns: 0,
            at_socket: None,
        }
    }

    #[test]
    fn an_interval_has_a_row_per_metric_that_has_values() {
        let mut histogram = Histogram::new(PRECISION_KERNEL);
        (0..1200).for_each(|n| histogram.record(20_000 + 10 * n));
        let second = |metric| MessageSecond {
            program: 0,
            flow: 1,
            metric,
            start_ns: 0,
            histogram: histogram.clone(),
        };
        let seconds = [second(MessageMetric::Total), second(MessageMetric::ToPublish(0))];
        let style = Style::default();
        let text =
            sample::written(|out| write_interval(out, &program(), &seconds, 500_000_000, &style));
        sample::assert_fits(&text, 80);
        assert!(
            text.contains("order: 1,200 ended, 3 slow (from 100 us on), 7 under way"),
            "{text}"
        );
        assert!(text.contains("total                1,200  2,400  26.0 us"), "{text}");
        assert!(text.contains("gap to trade-report"), "{text}");
        assert!(!text.contains("infrastructure"), "{text}");
    }

    #[test]
    fn a_slow_message_is_told_by_its_parts() {
        let text =
            sample::written(|out| write_slow(out, &program(), &message(), &Style::default()));
        sample::assert_fits(&text, 80);
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>().join(" "),
            "slow order 8123: 4.10 ms; infrastructure 100 us (to journalled 90.0 us, to logic \
             start 10.0 us); logic 4.00 ms (gap to trade-report 3.90 ms, to the end 100 us); 3 \
             waited behind it"
        );
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut program = program();
        program.flows[0].name = "\x1b[2J".into();
        let text = sample::written(|out| {
            write_slow(out, &program, &message(), &Style::default())?;
            write_interval(out, &program, &[], 1, &Style::default())
        });
        assert!(!text.contains('\x1b'), "{text}");
    }
}
