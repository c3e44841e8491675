//! `whylag forget`: removes runs, and gives their space back.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use model::outside::brief;
use model::units::{bytes, counted};
use model::{RunStatus, RunSummary};
use store::{Sqlite, Store};

use crate::failure::Failure;
use crate::output;
use crate::selection::age;
use crate::stored::StoreOptions;

/// Options of `forget`.
#[derive(Args)]
#[command(
    group(ArgGroup::new("which").required(true).multiple(true)
        .args(["runs", "older", "keep", "size"])),
    after_help = "\
Runs that any of the options name are removed, without a question: see --dry-run. A run
that is being recorded stays.

Example:
  whylag forget 7             run 7
  whylag forget 3..7 12       five runs and another one
  whylag forget --older 30d   those that ended over 30 days ago
  whylag forget --keep 20     all but the newest 20
  whylag forget --size 2GB    the oldest ones, until the rest has less than 2 GB
  whylag forget --older 30d --dry-run   which ones these would be"
)]
pub struct Options {
    /// Numbers of runs, as 'whylag runs' lists them, or ranges such as 3..7
    #[arg(value_name = "RUN", value_parser = range)]
    runs: Vec<Range>,
    /// Runs that ended longer ago than this, such as 30d or 12h
    #[arg(long, value_name = "D", value_parser = age)]
    older: Option<u64>,
    /// All but the newest N
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// The oldest runs, until the others take no more than this, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = model::units::parse_size)]
    size: Option<u64>,
    /// Change nothing, say what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Numbers of runs, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(i64, i64);

fn range(text: &str) -> Result<Range, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|number| *number > 0);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Range(first, last)),
        _ => Err("write the number of a run, as 7, or a range, as 3..7".to_owned()),
    }
}

/// Removes.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    // Reading first: where there is no store, none is made.
    let runs = store.open_to_read()?.runs()?;
    let chosen = chosen(options, &runs, clock::unix_ns())?;
    if options.dry_run {
        return tell(&chosen, &format!("{} would be removed", sum(&chosen)));
    }
    let mut store = store.open_to_write()?;
    let before = store.file_size();
    for run in &chosen {
        store.forget(run.id)?;
    }
    let left = shrunk(&mut store, before);
    tell(&chosen, &format!("{} removed; {left}", sum(&chosen)))
}

/// Gives the space back, and says how much.
fn shrunk(store: &mut Sqlite, before: u64) -> String {
    let shrunk = store.shrink();
    let after = store.file_size();
    match shrunk {
        Ok(()) => format!(
            "{} came free, the store has {}",
            bytes(before.saturating_sub(after)),
            bytes(after)
        ),
        Err(error) => format!(
            "the store keeps its {} for later runs, because it could not be made smaller: {error}",
            bytes(after)
        ),
    }
}

fn sum(chosen: &[&RunSummary]) -> String {
    let size = chosen.iter().fold(0u64, |sum, run| sum.saturating_add(run.bytes));
    format!("{} of about {}", counted(chosen.len() as u64, "run"), bytes(size))
}

/// The runs that the options name, oldest first.
fn chosen<'a>(
    options: &Options,
    runs: &'a [RunSummary],
    now_unix_ns: i64,
) -> Result<Vec<&'a RunSummary>, Failure> {
    let mut chosen = BTreeSet::new();
    for Range(first, last) in &options.runs {
        let named = runs.iter().filter(|run| (*first..=*last).contains(&run.id.0));
        let before = chosen.len();
        chosen.extend(named.map(|run| run.id));
        if chosen.len() == before && !runs.iter().any(|run| run.id.0 == *first) {
            return Err(Failure::Usage(format!(
                "there is no run {first}{}: 'whylag runs' lists what there is",
                if first == last { String::new() } else { format!(" to {last}") }
            )));
        }
    }
    if let Some(age) = options.older {
        let since = now_unix_ns.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
        chosen.extend(runs.iter().filter(|run| ended_unix_ns(run) < since).map(|run| run.id));
    }
    if let Some(keep) = options.keep {
        chosen.extend(runs.iter().rev().skip(keep).map(|run| run.id));
    }
    if let Some(size) = options.size {
        let mut sum = 0u64;
        for run in runs.iter().rev() {
            sum = sum.saturating_add(run.bytes);
            if sum > size {
                chosen.insert(run.id);
            }
        }
    }
    let is_chosen =
        |run: &&RunSummary| chosen.contains(&run.id) && run.status != RunStatus::Recording;
    Ok(runs.iter().filter(is_chosen).collect())
}

fn ended_unix_ns(run: &RunSummary) -> i64 {
    let length = i64::try_from(run.length_ns).unwrap_or(i64::MAX);
    run.header.started_unix_ns.saturating_add(length)
}

fn tell(chosen: &[&RunSummary], sum: &str) -> Result<ExitCode, Failure> {
    /// Characters of what was watched.
    const TARGET: usize = 60;
    let (mut out, _) = output::stdout();
    for run in chosen {
        let target = run.header.target.to_string();
        writeln!(out, "run {}: {}, {}", run.id, bytes(run.bytes), brief(&target, TARGET))?;
    }
    writeln!(out, "{sum}")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{RunHeader, RunId};

    const DAY: i64 = 86_400_000_000_000;

    /// Ten runs of 1 MB, one a day; the last one is being recorded.
    fn runs() -> Vec<RunSummary> {
        let run = |id: i64| RunSummary {
            id: RunId(id),
            header: RunHeader { started_unix_ns: id * DAY, ..RunHeader::default() },
            status: if id == 10 { RunStatus::Recording } else { RunStatus::Complete },
            length_ns: 1,
            threads: 1,
            outliers: 1,
            bytes: 1_000_000,
            leading_cause: None,
            origin: None,
        };
        (1..=10).map(run).collect()
    }

    fn none() -> Options {
        Options { runs: Vec::new(), older: None, keep: None, size: None, dry_run: false }
    }

    fn numbers(options: &Options) -> Option<Vec<i64>> {
        let runs = runs();
        let chosen = chosen(options, &runs, 10 * DAY).ok()?;
        Some(chosen.iter().map(|run| run.id.0).collect())
    }

    #[test]
    fn each_option_names_its_runs_and_never_one_that_is_being_recorded() {
        let named = |text: &str| vec![range(text).unwrap()];
        assert_eq!(numbers(&Options { runs: named("3..5"), ..none() }), Some(vec![3, 4, 5]));
        assert_eq!(numbers(&Options { runs: named("9..99"), ..none() }), Some(vec![9]));
        assert_eq!(numbers(&Options { runs: named("11"), ..none() }), None);
        let older = Some(age("7d").unwrap());
        assert_eq!(numbers(&Options { older, ..none() }), Some(vec![1, 2]));
        assert_eq!(numbers(&Options { keep: Some(7), ..none() }), Some(vec![1, 2, 3]));
        assert_eq!(numbers(&Options { keep: Some(0), ..none() }), Some((1..10).collect()));
        assert_eq!(numbers(&Options { size: Some(8_500_000), ..none() }), Some(vec![1, 2]));
        let both = Options { runs: named("2..3"), keep: Some(8), ..none() };
        assert_eq!(numbers(&both), Some(vec![1, 2, 3]));
    }

    #[test]
    fn ranges() {
        assert_eq!(range("3..7"), Ok(Range(3, 7)));
        for text in ["", "0", "-1", "7..3", "a", "1..", "..2", "1..2..3"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
