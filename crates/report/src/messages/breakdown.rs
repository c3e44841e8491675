//! A message with its parts, and what its threads did in each; and what slow messages have that
//! the others lack.

use std::io::{self, Write};

use model::units::{count, counted, duration, fine_duration, moment, share_of};
use model::{
    ContrastPart, FlowKind, Message, MessageBreakdown, MessageContrast, MessagePart, MessageTime,
    Run,
};

use super::requests;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Times of a part that are printed; the rest are summed.
const TIMES: usize = 4;

/// Of parts that are shorter than one in so many of the message only the length is printed.
const LEAST: u64 = 50;

/// Writes a message in full; `number` is its place among the slow ones.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    number: usize,
    broken_down: &MessageBreakdown,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let message = &broken_down.message;
    let into = message.t0_ns.saturating_sub(run.header.started_ns);
    let is_request =
        run.messages.flow_of(message).is_some_and(|flow| flow.kind == FlowKind::Request);
    let (what, came) = match is_request {
        true => (format!("{} request", broken_down.flow), "arrived"),
        false => (broken_down.flow.clone(), "received"),
    };
    let mut heading = format!(
        "{number}. {what} {}: {}, {came} {} into the run",
        message.id,
        duration(message.total_ns()),
        moment(into),
    );
    if let Some(depth) = message.depth {
        heading += &format!("; {} waited behind it", count(u64::from(depth)));
    }
    writeln!(out, "{}", style.bold(&text::clean(&heading)))?;
    let halves = [
        ("infrastructure", message.infrastructure_ns(), true),
        ("logic", message.logic_ns(), false),
    ];
    if is_request {
        write_parts(out, message, broken_down.parts.iter(), style)?;
        let calls = message.at_socket.as_ref().map_or(&[][..], |at| &at.calls);
        return requests::write_calls_of(out, run, calls, 3, style);
    }
    for (name, ns, infrastructure) in halves {
        let share = share_of(ns, message.total_ns());
        writeln!(out, "   {name} {} ({share})", duration(ns))?;
        let of_it = |p: &&MessagePart| p.segment.is_infrastructure() == infrastructure;
        write_parts(out, message, broken_down.parts.iter().filter(of_it), style)?;
    }
    Ok(())
}

/// A line for each part: how long, what it is and whose, and what was done in it.
fn write_parts<'a>(
    out: &mut dyn Write,
    message: &Message,
    parts: impl Iterator<Item = &'a MessagePart>,
    style: &Style,
) -> io::Result<()> {
    let mut table = Table::new(5, &[("", Align::Right), ("", Align::Left), ("", Align::Left)]);
    for part in parts {
        let thread = if part.comm.is_empty() {
            part.name.clone()
        } else {
            format!("{} ({})", part.name, part.comm)
        };
        table.row([
            duration(part.ns).into(),
            thread.into(),
            if part.ns >= message.total_ns() / LEAST {
                sentence(&part.time, message.kept_ns).into()
            } else {
                "".into()
            },
        ]);
    }
    table.write(out, style)
}

/// `3.70 ms waiting for the disk in fsync (jbd2_log_wait_commit, woken by jbd2/vda1-8), ...`.
pub(crate) fn sentence(time: &[MessageTime], kept_ns: u64) -> String {
    let mut words: Vec<String> = time
        .iter()
        .take(TIMES)
        .map(|time| format!("{} {}", duration(time.ns), what(time, kept_ns)))
        .collect();
    let rest = time.iter().skip(TIMES).fold(0u64, |sum, time| sum.saturating_add(time.ns));
    if rest > 0 {
        words.push(format!("{} of {} others", duration(rest), time.len() - TIMES));
    }
    words.join(", ")
}

fn what(time: &MessageTime, kept_ns: u64) -> String {
    let Some(account) = time.account else { return short(kept_ns) };
    let mut what = account.describe();
    let is_in_it = matches!(account, model::Account::Syscall(_));
    if let Some(call) = time.call.filter(|_| !is_in_it) {
        what += &format!(" in {call}");
    }
    let more: Vec<&str> =
        [&time.place, &time.by].into_iter().flatten().map(String::as_str).collect();
    if !more.is_empty() {
        what += &format!(" ({})", more.join(", "));
    }
    what
}

/// What is in no interval.
fn short(kept_ns: u64) -> String {
    match kept_ns {
        0 => "unaccounted (nothing was recorded)".to_owned(),
        _ => format!("running, or waits under {}", duration(kept_ns)),
    }
}

/// Rows of the comparison.
const CONTRASTS: usize = 6;

/// What the messages of a flow are called.
pub struct FlowNoun<'a> {
    /// Name of the flow.
    pub name: &'a str,
    /// `slow message`.
    pub noun: &'static str,
}

/// What slow messages of a flow have more of than its control group.
///
/// # Errors
/// Those of `out`.
pub fn write_contrast(
    out: &mut dyn Write,
    flow: &FlowNoun<'_>,
    contrasts: &[MessageContrast],
    style: &Style,
) -> io::Result<()> {
    let Some(first) = contrasts.first() else { return Ok(()) };
    let title = format!(
        "What {} of {} {} more of than {} that {} not slow",
        counted(first.slow.n, flow.noun),
        text::clean(flow.name),
        if first.slow.n == 1 { "has" } else { "have" },
        count(first.fast.n),
        if first.fast.n == 1 { "was" } else { "were" },
    );
    write!(out, "{}", text::labelled("", 0, &title, style.width))?;
    let columns = [
        ("slow mean", Align::Right),
        ("in", Align::Right),
        ("others", Align::Right),
        ("in", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(2, &columns);
    for contrast in contrasts.iter().take(CONTRASTS) {
        let what = match contrast.account {
            None if contrast.part == ContrastPart::Queued => contrast.part.to_string(),
            None => format!("{}: running, or short waits", contrast.part),
            Some(account) => {
                let is_in_it = matches!(account, model::Account::Syscall(_));
                let call = contrast.call.filter(|_| !is_in_it);
                let call = call.map_or_else(String::new, |call| format!(" in {call}"));
                format!("{}: {}{call}", contrast.part, account.describe())
            }
        };
        let with =
            |side: &model::ContrastSide| Cell::painted(share_of(side.with, side.n), Paint::Dim);
        table.row([
            fine_duration(contrast.slow.mean_ns).into(),
            with(&contrast.slow),
            fine_duration(contrast.fast.mean_ns).into(),
            with(&contrast.fast),
            what.into(),
        ]);
    }
    table.write(out, style)
}
