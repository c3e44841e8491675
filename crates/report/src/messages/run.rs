//! The messages of a stored run.

use std::io::{self, Write};

use model::units::{count, counted, duration};
use model::{MessageFlow, Run, SlowMessages, TraceState, TracedProgram};

use super::{breakdown, requests};
use crate::style::Paint;
use crate::{Style, text};

/// Writes counts and histograms of each flow, what slow messages have that the others lack, the
/// `most` slowest, and those that never ended. Nothing if no program traced.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    run: &Run,
    name: &str,
    messages: &SlowMessages,
    most: usize,
    style: &Style,
) -> io::Result<()> {
    requests::write(out, run, style)?;
    for program in run.messages.programs.iter().filter(|program| requests::is_traced(program)) {
        write_program(out, run, program, style)?;
    }
    for (flow, contrasts) in
        messages.contrasts.iter().filter(|(_, contrasts)| !contrasts.is_empty())
    {
        writeln!(out)?;
        breakdown::write_contrast(out, &requests::noun(run, flow), contrasts, style)?;
    }
    for (n, message) in messages.slowest.iter().take(most).enumerate() {
        writeln!(out)?;
        breakdown::write(out, n + 1, message, run, style)?;
    }
    let left = run.messages.slow_count.saturating_sub(messages.slowest.len().min(most) as u64);
    if left > 0 {
        let noun = if requests::are_all(run) { "more slow request" } else { "more slow message" };
        writeln!(out, "{}", style.dim(&format!("  and {}", counted(left, noun))))?;
    }
    if run.messages.slow_count > 0 && !run.threads.is_empty() {
        let name = text::clean(name);
        let option = if requests::are_all(run) { "--request" } else { "--message" };
        let hint = format!("  'whylag explain {name} {option} N' explains one of them alone");
        writeln!(out, "{}", style.dim(&hint))?;
    }
    Ok(())
}

fn write_program(
    out: &mut dyn Write,
    run: &Run,
    program: &TracedProgram,
    style: &Style,
) -> io::Result<()> {
    let state = match program.state {
        TraceState::Running => "was running at the end",
        TraceState::Closed => "ended its tracing",
        TraceState::Crashed => "crashed, or made an exec",
    };
    let who = format!("Messages of pid {} ({} tracer; {state})", program.tgid, program.language);
    writeln!(out, "{}", style.bold(&text::clean(&who)))?;
    for flow in &program.flows {
        write!(out, "{}", text::labelled("  ", 2, &counts(flow), style.width))?;
        let length = run
            .length_ns()
            .min(run.heartbeat_ns.max(run.header.started_ns).saturating_sub(program.from_ns));
        let of = |metric| run.messages.histogram(program.program, flow.flow, metric);
        super::write_metrics(out, flow, of, Some(length), style)?;
    }
    super::write_losses(out, program, style)?;
    if !program.refused.is_empty() {
        let why = format!("not read any further: {}", program.refused);
        for line in text::wrap(&why, style.width.saturating_sub(2)) {
            writeln!(out, "  {}", style.paint(Paint::Red, &line))?;
        }
    }
    program.unfinished.iter().try_for_each(|m| super::write_stuck(out, program, m, style))
}

/// `order: 1,234 begun, 1,230 ended, 12 slow (from 100 us on)`.
fn counts(flow: &MessageFlow) -> String {
    let mut text = format!(
        "{}: {} begun, {} ended, {} slow (from {} on)",
        flow.name,
        count(flow.begun),
        count(flow.ended),
        count(flow.slow),
        duration(flow.threshold_ns)
    );
    for (n, what) in [(flow.abandoned, "abandoned"), (flow.undeclared, "undeclared marks")] {
        if n > 0 {
            text += &format!(", {} {what}", count(n));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use model::{
        Account, Blocked, ContrastSide, MessageBreakdown, MessageContrast, MessagePart,
        MessageSegment, MessageTime, SegmentKind, UnfinishedMessage,
    };

    use super::*;
    use crate::sample;

    const DISK: Account = Account::Blocked(Blocked::Disk);

    fn broken_down(start: u64) -> MessageBreakdown {
        let message = sample::message(start);
        let part = |name: &str, kind, from_ns, to_ns, time| MessagePart {
            name: name.into(),
            segment: MessageSegment { kind, from_ns, to_ns, tid: Some(82) },
            ns: to_ns - from_ns,
            comm: "logic".into(),
            time,
        };
        let time = |account, ns, place: Option<&str>, by: Option<&str>| MessageTime {
            account,
            ns,
            call: model::Syscall::named("fsync").filter(|_| account.is_some()),
            place: place.map(str::to_owned),
            by: by.map(str::to_owned),
            by_timer: false,
        };
        let parts = vec![
            part(
                "queued behind order 8122",
                SegmentKind::ToLogic,
                start,
                start + 100_000,
                vec![time(None, 100_000, None, None)],
            ),
            part(
                "to the end",
                SegmentKind::ToEnd,
                start + 100_000,
                start + 4_100_000,
                vec![
                    time(
                        Some(DISK),
                        3_800_000,
                        Some("jbd2_log_wait_commit"),
                        Some("woken by jbd2/vda1-8 (tid 99)"),
                    ),
                    time(None, 200_000, None, None),
                ],
            ),
        ];
        MessageBreakdown { message, flow: "order".into(), parts }
    }

    fn traced() -> (Run, SlowMessages) {
        let mut run = sample::run();
        let one = broken_down(run.header.started_ns + 1_500_000_000);
        run.messages.programs.push(TracedProgram {
            tgid: 77,
            language: "C".into(),
            state: TraceState::Crashed,
            flows: vec![MessageFlow {
                flow: 1,
                name: "order".into(),
                threshold_ns: 100_000,
                begun: 1_235,
                ended: 1_234,
                slow: 12,
                ..MessageFlow::default()
            }],
            unfinished: vec![UnfinishedMessage {
                flow: 1,
                id: 9,
                tid: 82,
                t0_ns: 0,
                logic_start_ns: 1_000_000,
                last_ns: 1_000_000,
                last_name: None,
                read_ns: 3_000_000_000,
            }],
            missed: 4,
            ..TracedProgram::default()
        });
        run.messages.slow.push(one.message.clone());
        run.messages.slow_count = 12;
        let side = |with, mean_ns| ContrastSide { n: 12, with, mean_ns };
        let contrast = MessageContrast {
            part: model::ContrastPart::Named("to the end".into()),
            account: Some(DISK),
            call: model::Syscall::named("fsync"),
            slow: side(11, 3_500_000.0),
            fast: side(0, 0.0),
        };
        let contrasts = vec![("order".to_owned(), vec![contrast])];
        (run, SlowMessages { slowest: vec![one], contrasts })
    }

    #[test]
    fn a_run_tells_its_messages_within_80_columns() {
        let (run, slow) = traced();
        let text = sample::written(|out| write(out, &run, "x.whylag", &slow, 5, &Style::default()));
        sample::assert_fits(&text, 80);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Messages of pid 77 (C tracer; crashed, or made an exec)",
            "order: 1,235 begun, 1,234 ended, 12 slow (from 100 us on)",
            "never ended order 9: received 3.00 s ago",
            "4 slow messages could not be read in time",
            "What 12 slow messages of order have more of than 12 that were not slow",
            "3.50 ms 91.7 % 0 ns 0.0 %",
            "1. order 8123: 4.10 ms, received 1.500 s into the run; 3 waited behind it",
            "logic 4.00 ms (97.6 %)",
            "and 11 more slow messages",
        ] {
            assert!(flat.contains(part), "{part}\n{text}");
        }
        assert!(text.contains("jbd2_log_wait_commit"), "{text}");
    }
}
