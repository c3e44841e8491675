//! The answer of `whylag explain` for people.

mod finding;
mod opening;
mod slow;

use std::io::{self, Write};

use model::units::{count, counted, duration, share};
use model::{Explanation, RhythmKind, Run, Unanswered};

use self::opening::own_delay;
use crate::{Style, coincidences, cost, on_cpu, outlier, text, unexplained};

pub(crate) use self::finding::write_finding;
pub use self::opening::{leading, sums};

/// Peers without an answer that are printed.
const UNANSWERED: usize = 3;
/// Events whose rhythm is printed.
const RHYTHMS: usize = 5;

/// Writes the leading cause, each finding with its chain and evidence, what stays unexplained, and
/// the cost of the recorder. Commands are on lines of their own, unbroken.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    explanation: &Explanation,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let own = own_delay(explanation);
    for sentence in own.into_iter().chain([leading(explanation, run)]) {
        for line in text::wrap(&sentence, style.width) {
            writeln!(out, "{}", style.bold(&line))?;
        }
    }
    for line in text::wrap(&sums(explanation, run), style.width) {
        writeln!(out, "{line}")?;
    }
    if let Some(scope) = &explanation.scope {
        let number = scope.outlier.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        if let Some(outlier) = number.and_then(|place| run.outliers.get(place)) {
            for line in text::wrap(&format!("{}.", outlier::sentence(outlier, run)), style.width) {
                writeln!(out, "{line}")?;
            }
        }
        for line in text::wrap(&scope.basis, style.width) {
            writeln!(out, "{}", style.dim(&line))?;
        }
    }
    let unexplained_leads = explanation.leading_account.is_some();
    if explanation.findings.is_empty() || unexplained_leads {
        unexplained::write_all(out, explanation, style)?;
    }
    for (n, finding) in explanation.findings.iter().enumerate() {
        writeln!(out)?;
        write_finding(out, n + 1, finding, style)?;
    }
    if !explanation.findings.is_empty() && !unexplained_leads {
        writeln!(out)?;
        unexplained::write_rest(out, explanation, style)?;
    }
    slow::write(out, explanation, run, style)?;
    write_held_open(out, explanation, style)?;
    write_unanswered(out, explanation, style)?;
    write_below_bar(out, explanation, style)?;
    unexplained::write_idle(out, explanation, style)?;
    on_cpu::write(out, &explanation.on_cpu, style)?;
    write_not_looked_at(out, explanation, style)?;
    write_rhythms(out, explanation, style)?;
    coincidences::write(out, &explanation.coincidences, style)?;
    writeln!(out)?;
    cost::write(out, run, style)?;
    explanation.own_delay.map_or(Ok(()), |own| cost::write_delay(out, own, style))
}

/// Of the requests that nobody worked on, those of the port with most of that time.
fn write_held_open(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
    let Some(held) = explanation.held_open.iter().find(|held| held.matters) else { return Ok(()) };
    let words = format!(
        "{} of {} ({}), mean {}, {} in all: nobody worked on them: long polls, or waits for a row or \
         lock",
        counted(held.count, "request"),
        held.at,
        held.comm,
        duration(held.ns / held.count.max(1)),
        duration(held.ns)
    );
    write!(out, "{}", text::labelled("held open: ", 11, &words, style.width))
}

/// Peers that have not answered, where nothing else is found.
fn write_unanswered(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
    let silent = explanation.unanswered.iter().filter(|silent| silent.matters);
    for silent in silent.clone().take(UNANSWERED) {
        let words = unanswered(silent);
        write!(out, "{}", text::labelled("unanswered: ", 12, &words, style.width))?;
    }
    let more = silent.count().saturating_sub(UNANSWERED) as u64;
    if more > 0 {
        writeln!(out, "            and {} more; --json has all", counted(more, "peer"))?;
    }
    Ok(())
}

fn unanswered(silent: &Unanswered) -> String {
    if silent.packets > 0 {
        return format!(
            "{} (pid {}) has sent {} to {} since {} before the end, and heard nothing: a peer that hangs \
             or is not there, or one that never answers",
            silent.comm,
            silent.tgid,
            counted(silent.packets, "packet"),
            peer(silent),
            duration(silent.ns)
        );
    }
    let never = match silent.never {
        0 => String::new(),
        all if all == silent.connections => " (nothing ever came)".to_owned(),
        some => format!(" (on {} of them nothing ever came)", count(some)),
    };
    format!(
        "{} (pid {}) has sent to {} on {} and heard nothing since{never}, for {} at the end: a peer \
         that hangs, or one that has nothing to tell (a queue, a long poll)",
        silent.comm,
        silent.tgid,
        peer(silent),
        counted(silent.connections, "connection"),
        duration(silent.ns)
    )
}

/// `10.0.0.1:80`, `127.0.0.1:5432 (postgres, pid 81)`, `a local peer`.
pub(crate) fn peer(silent: &Unanswered) -> String {
    let process = match silent.peer {
        Some(pid) => format!(" ({}, pid {pid})", silent.peer_comm),
        None if silent.peer_comm.is_empty() => String::new(),
        None => format!(" ({})", silent.peer_comm),
    };
    match silent.to.is_empty() {
        true => format!("a local socket{process}"),
        false => format!("{}{process}", silent.to),
    }
}

/// Causes with their evidence that explain too little.
fn write_below_bar(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
    if explanation.below_bar.is_empty() {
        return Ok(());
    }
    let below = explanation.below_bar.iter().map(|below| {
        let (lost, part) = (duration(below.lost_ns), share(below.wall_share));
        format!("{}, {part} of the wall time ({lost})", below.cause)
    });
    let words = below.collect::<Vec<_>>().join("; ");
    write!(out, "{}", text::labelled("below the bar: ", 15, &words, style.width))
}

/// Causes that nothing is said about, because their evidence was not recorded.
fn write_not_looked_at(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
    if explanation.not_looked_at.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Not looked at"))?;
    for group in &explanation.not_looked_at {
        let line = format!("{}: {}", group.because, group.causes.join(", "));
        for line in text::wrap(&line, style.width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Repeated events that come at a phase of something.
fn write_rhythms(out: &mut dyn Write, explanation: &Explanation, style: &Style) -> io::Result<()> {
    if explanation.rhythms.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("When they happen"))?;
    for rhythm in explanation.rhythms.iter().take(RHYTHMS) {
        let when = match &rhythm.kind {
            RhythmKind::WallClock { period_ns, phase_ns } => format!(
                "{} after each full {} of the wall clock",
                duration(*phase_ns),
                duration(*period_ns)
            ),
            RhythmKind::Others { events, period_ns, phase_ns } => format!(
                "{} after {events}, which come every {}",
                duration(*phase_ns),
                duration(*period_ns)
            ),
            RhythmKind::OncePerProcess => "exactly once in the life of each process".to_owned(),
        };
        let line = format!("  {}: {when} (n = {}, p = {:.1e})", rhythm.events, rhythm.n, rhythm.p);
        for line in text::wrap(&line, style.width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
