//! The answer of `whylag doctor` for people, and what differs between two of them.

mod differences;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::units::{count, counted};
use model::{Check, CheckResult, Checkup, Subject, Unbound};

pub use differences::write as write_diff;
pub use watch::{Took, bound, clock};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Column in which the text of an unbound library begins.
const INDENT: usize = 4;

/// Writes a table for each subject, and how many checks came out how. Why a check matters is
/// written for those that are not good; with `why` for all.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, checkup: &Checkup, why: bool, style: &Style) -> io::Result<()> {
    for checks in checkup.checks.chunk_by(|a, b| a.subject == b.subject) {
        let subject = checks.first().map_or(Subject::Process, |check| check.subject);
        writeln!(out, "{}", style.bold(title(subject)))?;
        match subject {
            Subject::Recorder => write_recorder(out, checks, style)?,
            _ => write_checks(out, checks, why, style)?,
        }
        writeln!(out)?;
    }
    for line in text::wrap(&summary(checkup), style.width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The heading of a subject.
pub fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Time => "Time",
        Subject::KernelLog => "Kernel log",
        Subject::Cpu => "CPU",
        Subject::Memory => "Memory",
        Subject::Io => "Disks and consoles",
        Subject::Network => "Network",
        Subject::Populations => "Populations",
        Subject::Process => "Process",
        Subject::Recorder => "whylag record here",
    }
}

/// A result in a word or two.
pub fn word(verdict: CheckResult) -> &'static str {
    match verdict {
        CheckResult::Good => "good",
        CheckResult::Unknown => "unknown here",
        CheckResult::Attention => "attention",
        CheckResult::Bad => "bad",
    }
}

fn cell(verdict: CheckResult) -> Cell {
    let paint = match verdict {
        CheckResult::Good => Paint::Green,
        CheckResult::Unknown => Paint::Dim,
        CheckResult::Attention => Paint::Yellow,
        CheckResult::Bad => Paint::Red,
    };
    Cell::painted(word(verdict), paint)
}

/// What a check found.
pub fn fact(check: &Check) -> String {
    match check.detail.as_str() {
        "" => check.fact.clone(),
        detail => format!("{} ({detail})", check.fact),
    }
}

fn columns() -> Table {
    Table::new(2, &[("", Align::Left), ("", Align::Left), ("", Align::Left)])
}

fn write_checks(out: &mut dyn Write, checks: &[Check], why: bool, style: &Style) -> io::Result<()> {
    let mut table = columns();
    for check in checks {
        table.row([cell(check.verdict), check.id.as_str().into(), fact(check).into()]);
        if why || matches!(check.verdict, CheckResult::Attention | CheckResult::Bad) {
            table.note(1, format!("why: {}", check.why));
        }
        if !check.advice.is_empty() {
            table.note(1, format!("do: {}", check.advice));
        }
    }
    table.write(out, style)
}

/// Causes and parts that stand alike share a row.
fn write_recorder(out: &mut dyn Write, checks: &[Check], style: &Style) -> io::Result<()> {
    let mut groups: BTreeMap<(CheckResult, &str, &str), Vec<&str>> = BTreeMap::new();
    for check in checks {
        let key = (check.verdict, check.fact.as_str(), check.advice.as_str());
        groups.entry(key).or_default().push(&check.id);
    }
    let mut table = columns();
    for ((verdict, fact, advice), ids) in groups {
        let name =
            |id: &&str| id.trim_start_matches("cause-").trim_start_matches("part-").to_owned();
        let ids = ids.iter().map(name).collect::<Vec<_>>();
        table.row([cell(verdict), fact.into(), ids.join(", ").into()]);
        if !advice.is_empty() {
            table.note(1, format!("do: {advice}"));
        }
    }
    table.write(out, style)
}

/// `host: 41 checks: 2 bad, 3 attention, 4 unknown here, 32 good.`
pub fn summary(checkup: &Checkup) -> String {
    let verdicts =
        [CheckResult::Bad, CheckResult::Attention, CheckResult::Unknown, CheckResult::Good];
    let counts = verdicts.map(|verdict| format!("{} {}", checkup.count(verdict), word(verdict)));
    let of = match checkup.pid {
        Some(pid) => format!("{} and process {pid}", checkup.host),
        None => checkup.host.clone(),
    };
    format!("{of}: {}: {}.", counted(checkup.checks.len() as u64, "check"), counts.join(", "))
}

/// Writes each library with calls that are not bound yet, and their names, most first; then those
/// of which nothing is known.
///
/// # Errors
/// Those of `out`.
pub fn write_unbound(out: &mut dyn Write, unbound: &[Unbound], style: &Style) -> io::Result<()> {
    writeln!(out, "{}", style.bold("Calls that are not bound yet"))?;
    let mut waiting: Vec<&Unbound> = unbound.iter().filter(|one| !one.symbols.is_empty()).collect();
    waiting.sort_by_key(|one| std::cmp::Reverse(one.symbols.len()));
    for library in &waiting {
        let (left, all) = (count(library.symbols.len() as u64), count(library.slots as u64));
        writeln!(out, "  {}: {left} of {all} slots", text::clean(&library.library))?;
        for line in text::wrap(&library.symbols.join(" "), style.width.saturating_sub(INDENT)) {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
    }
    let unknown: Vec<&Unbound> =
        unbound.iter().filter(|one| !one.unknown_because.is_empty()).collect();
    for library in &unknown {
        let line = format!("{}: unknown here: {}", library.library, library.unknown_because);
        writeln!(out, "  {}", text::clean(&line))?;
    }
    let done = unbound.len() - waiting.len() - unknown.len();
    writeln!(out, "  {done} with all slots bound; files without slots are not counted")
}
