//! One run on the page.

use std::collections::BTreeMap;

use model::units::{count, duration};
use model::{Explanation, Fact, Outlier, Run, Target};
use serde::Serialize;

use crate::accounts::{AccountRow, Group, OverTime};
use crate::chain::Picture;
use crate::flame::Flames;
use crate::heat::Latency;
use crate::recorder::Recorder;
use crate::requests::Requests;
use crate::scope::SecondMaps;
use crate::timeline::{Origin, Timeline};
use crate::{accounts, chain, flame, heat, recorder, requests, scope, timeline};

/// A run that was loaded for the page.
#[derive(Debug)]
pub struct Loaded {
    /// What commands call it: its number, or the file that it is in.
    pub name: String,
    /// The run.
    pub run: Run,
    /// Its longest intervals, longest first: more than a loaded run has.
    pub intervals: Vec<Outlier>,
}

/// Intervals that a page draws, at most: so many are seen within a second, and pan smoothly.
pub const INTERVALS: usize = 1_000_000;

impl Loaded {
    /// The run of this number.
    ///
    /// # Errors
    /// Those of the store.
    pub fn from_store(
        store: &store::Sqlite,
        id: model::RunId,
        name: String,
    ) -> Result<Loaded, store::StoreError> {
        let run = store::Store::load(store, id)?;
        let intervals = store.longest(id, INTERVALS)?;
        Ok(Loaded { name, run, intervals })
    }
}

/// Why there is nothing to explain or to draw: a run of benchmarks without the recorder, and what a
/// crashed program left, have no threads.
pub fn not_recorded(run: &Run, name: &str) -> Option<String> {
    let id = run.id;
    if matches!(run.header.target, Target::Trace(_)) {
        return Some(format!(
            "run {id} is what a program traced before it died, nothing was recorded with it: \
             'whylag show {name}' has its messages"
        ));
    }
    (run.bench.is_some() && run.threads.is_empty()).then(|| {
        format!(
            "run {id} is a benchmark that was not recorded: 'whylag show {name}' has its figures, \
             and 'whylag bench --with-kernel' records the workers"
        )
    })
}

/// One run, as each view of the page shows it. Times are ns since its start.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunPage {
    /// What commands call it.
    pub name: String,
    /// What was recorded.
    pub target: String,
    /// Wall-clock start, ms since 1970-01-01 UTC.
    pub started_unix_ms: f64,
    /// Length of the recording.
    pub length_ns: u64,
    /// The same in words, with the number of threads and the threshold.
    pub about: String,
    /// Names and values that the user gave it.
    pub labels: BTreeMap<String, String>,
    /// The leading cause, or that there is none, in the words of `explain`.
    pub headline: String,
    /// How the wall time divides, in a sentence.
    pub sums: String,
    /// What `explain --json` says.
    pub explanation: Explanation,
    /// For each finding that an interval shows: who waited for whom.
    pub pictures: Vec<Picture>,
    /// Accounts of all threads.
    pub accounts: Vec<AccountRow>,
    /// Accounts by process, most wall time first.
    pub groups: Vec<Group>,
    /// Time off the CPU by class over the run.
    pub over_time: OverTime,
    /// What was measured, by metric.
    pub latencies: Vec<Latency>,
    /// When threads were off the CPU, by the part of a second.
    pub scope: SecondMaps,
    /// Intervals kept whole.
    pub timeline: Timeline,
    /// Stacks of time off the CPU.
    pub flames: Flames,
    /// Slow requests and messages.
    pub requests: Requests,
    /// What recording cost and lost.
    pub recorder: Recorder,
    /// Host and program, by the names of the facts.
    pub facts: Vec<Fact>,
    /// Commands that show the same on a terminal.
    pub commands: Vec<Command>,
}

/// A command to copy.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Command {
    /// What it shows.
    pub shows: String,
    /// The command.
    pub command: String,
}

impl RunPage {
    /// Of a loaded run.
    pub fn of(loaded: &Loaded) -> RunPage {
        let (run, name) = (&loaded.run, shell_word(&loaded.name));
        let explanation = explain::explain(run);
        let pictures = chain::pictures(run, &explanation, &name);
        let origin = Origin(run.header.started_ns);
        RunPage {
            target: run.header.target.to_string(),
            started_unix_ms: run.header.started_unix_ns as f64 / 1e6,
            length_ns: run.length_ns(),
            about: about(run),
            labels: run.header.labels.clone(),
            headline: report::explanation::leading(&explanation, run),
            // A run of timers has no threads.
            sums: match run.jitter {
                Some(_) => String::new(),
                None => report::explanation::sums(&explanation, run),
            },
            accounts: accounts::rows(run),
            groups: accounts::groups(run),
            over_time: accounts::over_time(run, &loaded.intervals),
            latencies: heat::latencies(run, &loaded.intervals),
            scope: scope::scope(run, &loaded.intervals, origin),
            timeline: timeline::timeline(run, &loaded.intervals, &pictures, &name, origin),
            flames: flame::flames(run),
            requests: requests::requests(run, &name),
            recorder: recorder::recorder(run, origin),
            facts: facts(run),
            commands: commands(run, &name),
            pictures,
            explanation,
            name,
        }
    }
}

/// What is drawn of a run that has more intervals than are loaded; empty of any other.
pub(crate) fn left_out(run: &Run, intervals: &[Outlier]) -> String {
    let drawn = intervals.len() as u64;
    let Some(shortest) = intervals.last().filter(|_| drawn < run.outlier_count) else {
        return String::new();
    };
    format!(
        "; of {} such intervals the {} longest are drawn, none under {}",
        count(run.outlier_count),
        count(drawn),
        duration(shortest.duration_ns)
    )
}

/// `1.02 s, 17 threads, intervals from 1.00 ms on kept whole`.
fn about(run: &Run) -> String {
    let kept = match run.header.sampled {
        _ if run.jitter.is_some() => return duration(run.length_ns()),
        true => "sampled from /proc, not recorded: shares are estimates".to_owned(),
        false => format!("intervals from {} on kept whole", duration(run.header.threshold_ns)),
    };
    let threads = model::units::counted(run.thread_count(), "thread");
    let number = count(run.outlier_count);
    format!("{}, {threads}, {kept} ({number} of them)", duration(run.length_ns()))
}

fn facts(run: &Run) -> Vec<Fact> {
    let mut facts = run.facts.clone();
    facts.sort_by(|a, b| a.name.cmp(&b.name));
    facts
}

fn commands(run: &Run, name: &str) -> Vec<Command> {
    let flame =
        ("the flame graph as SVG", format!("whylag export {name} --format svg -o offcpu.svg"));
    let all = [
        ("these findings", format!("whylag explain {name}")),
        ("the same as JSON", format!("whylag explain {name} --json")),
        ("all tables", format!("whylag show {name}")),
    ];
    let flame = (!run.sums.stack_sums.is_empty()).then_some(flame);
    let command = |(shows, command): (&str, String)| Command { shows: shows.to_owned(), command };
    all.into_iter().chain(flame).map(command).collect()
}

/// A word as a shell takes it.
fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}
