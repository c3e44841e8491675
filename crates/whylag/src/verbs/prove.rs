//! `whylag prove`: executes a program with and without a change, in pairs, and says whether it became
//! better and whether the cause is gone.

mod change;
mod executed;
mod stored_runs;
mod undone;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};
use explain::ProofQuestion;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Better, Proof, ProofVerdict, Trial, TrialSide};
use regex::Regex;
use stats::paired::LEAST_PAIRS;

use self::change::Change;
use self::executed::{Executor, Manner};
use crate::failure::Failure;
use crate::output::{self, tell};
use crate::signals::Asked;
use crate::stored::{RunName, StoreOptions};

/// Options of `prove`.
#[derive(Args)]
#[command(
    group(ArgGroup::new("what").args(["fix", "before", "runs"]).required(true)),
    group(ArgGroup::new("figure").args(["metric", "ticks"])),
    override_usage = "\
whylag prove [OPTIONS] --fix NAME=VALUE -- CMD...
       whylag prove [OPTIONS] --fix CMD --undo CMD -- CMD...
       whylag prove [OPTIONS] --before CMD --after CMD
       whylag prove [OPTIONS] RUN... -- RUN...",
    after_help = "\
Each pair executes the program once without the change and once with it, in random
order. All but a few pairs are recorded, into the store. With --undo the program is
executed once more, before the first --fix, to see later whether --undo restores what
was there. Ctrl-C ends it; the pairs that are complete are judged. The program's own
output is not shown. With --expect the exit status is 3 if the outcome is another.

Example:
  whylag prove --fix LD_BIND_NOW=1 -- ./server-test
  whylag prove --before './db --mmap' --after './db --read' --pairs 20
  whylag prove --fix 'LD_BIND_NOW=1' --metric 'p99: ([0-9.]+) ms' -- ./load
  whylag prove --fix ./apply.sh --undo ./revert.sh -- ./server-test
  whylag prove --fix A=1 --time 10s --metric 'rate: ([0-9]+)' --higher-is-better -- ./server
  whylag prove --fix A=1 --cause lazy-binding --expect better --seed 7 -- ./nightly-test
  whylag prove --ticks --before './timers --slack 5ms' --after ./timers
  whylag prove 12 13 14 15 16 17 -- 18 19 20 21 22 23
  whylag prove before -- after           sets, as 'record --set' named them
  whylag prove build=41 -- build=42      runs with these labels"
)]
pub struct Options {
    /// The change: environment variables, NAME=VALUE, or a command that makes it, with --undo
    #[arg(long, value_name = "CHANGE", requires = "command")]
    fix: Option<String>,
    /// The command that takes back what --fix does
    #[arg(long, value_name = "CMD", requires = "fix")]
    undo: Option<String>,
    /// The program as it was, a line for the shell
    #[arg(long, value_name = "CMD", requires = "after", conflicts_with = "command")]
    before: Option<String>,
    /// The program with the change, a line for the shell
    #[arg(long, value_name = "CMD", requires = "before")]
    after: Option<String>,
    /// Stored runs, as 'whylag runs' lists them (also 3..7), files of them, or sets of them by name
    /// or label: those before the change; behind -- as many with it, paired in this order, 6 pairs
    /// at least
    #[arg(value_name = "RUN", requires = "command")]
    runs: Vec<RunName>,
    /// The program; or runs with the change
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// Recorded pairs
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = pairs)]
    pairs: usize,
    /// Judge a figure that the program prints, instead of its wall time: the first group of this
    /// regular expression (or all of it), of its last match
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    metric: Option<Regex>,
    /// Large values of --metric are better
    #[arg(long, requires = "metric")]
    higher_is_better: bool,
    /// Judge how far the ticks that the program prints, as 'whylag jitter' reads them, are from their
    /// time, instead of its wall time, and the causes of late ticks
    #[arg(long, conflicts_with_all = ["runs", "follow"])]
    ticks: bool,
    /// Record the program's children, too
    #[arg(long, conflicts_with = "runs")]
    follow: bool,
    /// End each execution after this long, such as 10s: for a program that does not end by itself.
    /// It is sent SIGTERM, and judged by --metric or --ticks
    #[arg(long, value_name = "D", requires = "figure", conflicts_with = "runs",
          value_parser = model::units::parse_duration)]
    time: Option<u64>,
    /// The cause that should be gone [default: the leading one before the change]
    #[arg(long, value_name = "ID")]
    cause: Option<String>,
    /// Seed of the random order, to have the same order again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Exit with status 3 if the outcome is not this one
    #[arg(long, value_name = "OUTCOME")]
    expect: Option<Outcome>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What may be expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// The program became better.
    Better,
    /// It did not become worse: it is better, or the same.
    NotWorse,
}

/// Pairs that are executed without being recorded: the change has to hold without whylag.
const UNRECORDED: usize = 2;

fn pairs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(pairs) if (LEAST_PAIRS..=1000).contains(&pairs) => Ok(pairs),
        _ => Err(format!(
            "{LEAST_PAIRS} to 1000 pairs: with fewer nothing can be shown at 5 %, whatever they say"
        )),
    }
}

/// Proves.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    check_cause(options.cause.as_deref())?;
    let proof = if options.runs.is_empty() {
        execute(options, store)?
    } else {
        let after = options.command.iter().cloned().map(RunName::from).collect::<Vec<_>>();
        let (trials, figure) = stored_runs::trials(store, &options.runs, &after)?;
        let words =
            |names: &[RunName]| names.iter().map(RunName::to_string).collect::<Vec<_>>().join(" ");
        let question = ProofQuestion {
            change: format!("runs {} before, {} after", words(&options.runs), words(&after)),
            cause: options.cause.clone(),
            ..figure
        };
        explain::prove(&question, trials)
    };
    keep(&proof, options, store);
    let (mut out, style) = output::stdout();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &proof).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::proof::write(&mut out, &proof, &style)?;
    }
    out.flush()?;
    Ok(exit_code(options.expect, &proof))
}

/// Stores it beside its runs, so that their page has it. Runs of files are in no store.
fn keep(proof: &Proof, options: &Options, store: &StoreOptions) {
    let after = options.command.iter().cloned().map(RunName::from);
    let mut judged = options.runs.iter().cloned().chain(after);
    let is_of_files = !options.runs.is_empty()
        && judged.any(|name| matches!(&name, RunName::File(path) if path.exists()));
    if is_of_files {
        return;
    }
    let kept = store.open_to_write().and_then(|mut store| Ok(store.put_proof(proof)?));
    if let Err(error) = kept {
        tell(format_args!("the proof is not on the pages of its runs: {error}"));
    }
}

fn check_cause(cause: Option<&str>) -> Result<(), Failure> {
    let Some(cause) = cause else { return Ok(()) };
    explain::page(cause).map(|_| ()).map_err(|error| Failure::Usage(error.to_string()))
}

fn exit_code(expected: Option<Outcome>, proof: &Proof) -> ExitCode {
    let verdict = proof.measured.verdict;
    let is_met = match expected {
        None => true,
        Some(Outcome::Better) => verdict == ProofVerdict::Better,
        Some(Outcome::NotWorse) => {
            matches!(verdict, ProofVerdict::Better | ProofVerdict::SameWithin(_))
        }
    };
    if is_met { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

/// Executes all pairs, or those until somebody asks to end, and judges them.
fn execute(options: &Options, store: &StoreOptions) -> Result<Proof, Failure> {
    let change = Change::of(
        options.fix.as_deref(),
        options.undo.as_deref(),
        options.before.as_deref().zip(options.after.as_deref()),
        &options.command,
    )?;
    // Short enough for readers of JSON whose numbers are all floating-point.
    let seed = options.seed.unwrap_or_else(|| fastrand::u32(..).into());
    let signal = Asked::listen()?;
    let question = ProofQuestion {
        change: change.in_words(),
        meant: change.facts(),
        metric: figure(options),
        ticks: options.ticks,
        better: if options.higher_is_better { Better::Higher } else { Better::Lower },
        cause: options.cause.clone(),
        seed: Some(seed),
    };
    let mut order = order(options.pairs, seed);
    if change.is_outside() {
        order.insert(0, FIRST_LOOK);
    }
    let progress = progress(order.len());
    let manner = Manner {
        metric: options.metric.clone(),
        better: question.better,
        limit_ns: options.time,
        follow: options.follow,
        ticks: options.ticks,
    };
    let mut executor = Executor::new(store, change, manner)?;
    let mut trials = Vec::new();
    let mut failed = None;
    for planned in order {
        if signal.reason().is_some() {
            break;
        }
        match executor.execute(&planned, &signal) {
            Ok(Some(trial)) if planned.pair.is_some() => trials.push(trial),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        progress.set_message(so_far(&question, &trials));
        progress.inc(1);
    }
    progress.finish_and_clear();
    let undone = executor.end();
    if let Some(error) = failed {
        tell_what_is_kept(&trials);
        if let Err(undone) = undone {
            tell(format_args!("the change is still made, or a part of it: {undone}"));
        }
        return Err(error);
    }
    undone?;
    if let Some(reason) = signal.reason() {
        tell(format_args!("{reason}: the pairs that are whole are judged"));
    }
    tell(format_args!(
        "the recorded runs are stored: 'whylag prove {} -- {}' judges them again",
        executor.set(TrialSide::Before),
        executor.set(TrialSide::After)
    ));
    let mut proof = explain::prove(&question, trials);
    proof.warnings.extend(executor.warning());
    Ok(proof)
}

/// What is judged of programs that print their ticks, in seconds.
const TICKS: &str = "mean distance of ticks from their time, in s";

/// What is judged, by its name; `None`: wall time.
fn figure(options: &Options) -> Option<String> {
    let metric = options.metric.as_ref().map(|metric| metric.as_str().to_owned());
    metric.or_else(|| options.ticks.then(|| TICKS.to_owned()))
}

/// The runs are in the store, whatever came after them.
fn tell_what_is_kept(trials: &[Trial]) {
    let runs: Vec<String> =
        trials.iter().filter_map(|trial| trial.run).map(|run| run.to_string()).collect();
    if !runs.is_empty() {
        tell(format_args!("recorded so far and kept: runs {}", runs.join(", ")));
    }
}

/// An execution that is to be made.
struct Planned {
    side: TrialSide,
    /// None of a pair: executed for its facts alone.
    pair: Option<usize>,
    is_recorded: bool,
}

/// Once as all is before the first --fix, whatever the lot says: else nobody could know later that
/// --undo takes nothing back.
const FIRST_LOOK: Planned = Planned { side: TrialSide::Before, pair: None, is_recorded: true };

/// Recorded pairs with some unrecorded ones among them, all in an order drawn by lot.
fn order(recorded: usize, seed: u64) -> Vec<Planned> {
    let mut lot = fastrand::Rng::with_seed(seed);
    let mut is_recorded = vec![true; recorded];
    is_recorded.extend([false; UNRECORDED]);
    lot.shuffle(&mut is_recorded);
    let pairs = is_recorded.into_iter().enumerate();
    pairs
        .flat_map(|(pair, is_recorded)| {
            let mut sides = [TrialSide::Before, TrialSide::After];
            lot.shuffle(&mut sides);
            sides.map(|side| Planned { side, pair: Some(pair), is_recorded })
        })
        .collect()
}

fn progress(executions: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(executions as u64);
    let template = "whylag: execution {pos} of {len}, about {eta} left; {msg}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The ratio so far, which is no verdict.
fn so_far(question: &ProofQuestion, trials: &[Trial]) -> String {
    let measured = explain::measured(question, trials);
    match measured.ratio {
        Some(ratio) => format!(
            "{} so far {:.2} ({:.2} to {:.2}) of that before",
            measured.what, ratio.estimate, ratio.low, ratio.high
        ),
        None => format!("{} whole recorded pairs", measured.pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_its_seed_and_has_both_sides_of_every_pair() {
        let sides =
            |seed| order(10, seed).iter().map(|one| (one.pair, one.side)).collect::<Vec<_>>();
        assert_eq!(sides(7), sides(7));
        assert_ne!(sides(7), sides(8));
        let planned = order(10, 7);
        assert_eq!(planned.len(), 2 * (10 + UNRECORDED));
        for two in planned.chunks_exact(2) {
            assert_eq!(two[0].pair, two[1].pair);
            assert_ne!(two[0].side, two[1].side);
            assert_eq!(two[0].is_recorded, two[1].is_recorded);
        }
        let before_first = planned.chunks_exact(2).filter(|two| two[0].side == TrialSide::Before);
        assert!((1..12).contains(&before_first.count()), "not always the same side first");
    }
}
