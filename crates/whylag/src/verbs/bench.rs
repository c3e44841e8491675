//! `whylag bench`: what operations of the kernel cost here, over ladders.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bench::cases::{self, Benchmark};
use bench::ladder::Settings;
use bench::{Report, Session};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use model::{
    Batch, Bench, BenchCase, BenchStep, RunEnd, RunHeader, Target, ThreadAccounts, WorkerKind,
};
use observe::{Detail, Recorder, SlowRequests, Timers, Watch, WatchTarget};
use store::Store;

use crate::failure::Failure;
use crate::keeper::{Keeper, Kept};
use crate::stored::StoreOptions;
use crate::{output, stored};

/// Options of `bench`.
#[derive(Args)]
#[command(after_help = "\
Without a case: a fast tour of all of them, under 3 minutes.

Example:
  whylag bench --list
  whylag bench sem-sysv --processes 1,2,4
  whylag bench unix-socket --population 0,1k,10k
  whylag bench futex-wake --threads 1,2 --pin --histogram")]
pub struct Options {
    /// The cases, as --list names them
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Say what each case measures
    #[arg(long)]
    list: bool,
    /// Measure with so many threads, one after the other, such as 1,2,4
    #[arg(long, value_name = "N,..", value_delimiter = ',', conflicts_with = "processes")]
    threads: Vec<u32>,
    /// Measure with so many processes, one after the other
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    processes: Vec<u32>,
    /// Measure with so many objects, such as 0,1k,10k
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = size)]
    population: Vec<u64>,
    /// How long to measure each case, all steps together [default: 2s; less in the tour]
    #[arg(long, value_name = "D", value_parser = model::units::parse_duration)]
    time: Option<u64>,
    /// Bind each worker to a CPU
    #[arg(long)]
    pin: bool,
    /// Show the distribution of each step, on a linear and on a logarithmic axis
    #[arg(long)]
    histogram: bool,
    /// Record the workers meanwhile, to see where slow operations wait
    #[arg(long)]
    with_kernel: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// For all cases of the tour together; making populations takes some more.
const TOUR_TIME: Duration = Duration::from_secs(130);
/// For a case that was asked for.
const CASE_TIME: Duration = Duration::from_secs(2);
/// The most workers of a step: more only wait for each other.
const MOST_WORKERS: u32 = 1024;
/// The most rungs of a ladder.
const MOST_RUNGS: usize = 32;
/// How often data of the recorder is stored.
const STEP: Duration = Duration::from_secs(1);
/// With the kernel: operations and waits of at least this length are kept whole.
const THRESHOLD_NS: u64 = 1_000_000;

/// Measures.
pub fn run(options: &Options, store: &StoreOptions, started: Instant) -> Result<ExitCode, Failure> {
    if options.list {
        return list();
    }
    let settings = settings(options)?;
    // Forks, so it comes before anything that starts a thread.
    let mut session = Session::start(&settings).map_err(anyhow::Error::from)?;
    let store = store.open_to_write()?;
    let recorder = recorder(options, &session, started)?;
    let target = Target::Bench(words(options));
    let header = match &recorder {
        Some(recorder) => RunHeader { target, ..recorder.header().clone() },
        None => stored::header(target),
    };
    let keeper = Keeper::begin(store, &header);
    session.go().map_err(anyhow::Error::from)?;
    let mut measuring = Measuring {
        clock: String::new(),
        empty: None,
        cases: Vec::new(),
        progress: progress(settings.cases.len()),
        keeper,
        recorded: BTreeMap::new(),
        recorder,
        stored: Instant::now(),
    };
    let ended = measuring.receive(&mut session);
    measuring.progress.finish_and_clear();
    drop(session);
    measuring.finish(ended, options)
}

fn list() -> Result<ExitCode, Failure> {
    let (mut out, style) = output::stdout();
    let cases = cases::ALL.iter().map(|case| (case.id, case.measures));
    report::cases::write(&mut out, cases, &style)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn settings(options: &Options) -> Result<Settings, Failure> {
    let tour = options.cases.is_empty();
    let named = |id: &String| {
        cases::named(id).map_err(|near| {
            let near = near.join(", ");
            Failure::Usage(format!("there is no case '{id}'; nearest: {near} (--list has all)"))
        })
    };
    let cases: Vec<&'static Benchmark> = match tour {
        true => cases::ALL.to_vec(),
        false => options.cases.iter().map(named).collect::<Result<_, _>>()?,
    };
    let workers = match (options.threads.as_slice(), options.processes.as_slice()) {
        ([], []) => None,
        (threads, []) => Some((WorkerKind::Threads, rungs(threads)?)),
        (_, processes) => Some((WorkerKind::Processes, rungs(processes)?)),
    };
    if options.population.len() > MOST_RUNGS {
        return Err(Failure::Usage(format!("a ladder has at most {MOST_RUNGS} steps")));
    }
    let has_population = |case: &&&'static Benchmark| case.ladder.population.is_some();
    if !options.population.is_empty()
        && let Some(case) = cases.iter().find(|case| !has_population(case))
    {
        return Err(Failure::Usage(format!(
            "{} has no population: leave out --population",
            case.id
        )));
    }
    let time = options.time.map(Duration::from_nanos);
    if time.is_some_and(|time| time < Duration::from_millis(10) || time > Duration::from_secs(3600))
    {
        return Err(Failure::Usage("--time is for a whole case: from 10ms to 1h".to_owned()));
    }
    Ok(Settings {
        cases,
        tour,
        workers,
        population: (!options.population.is_empty()).then(|| ascending(&options.population)),
        time: time.unwrap_or(if tour { TOUR_TIME / cases::ALL.len() as u32 } else { CASE_TIME }),
        pin: options.pin,
    })
}

fn rungs(workers: &[u32]) -> Result<Vec<u32>, Failure> {
    match workers.iter().find(|n| !(1..=MOST_WORKERS).contains(*n)) {
        Some(n) => {
            Err(Failure::Usage(format!("{n} workers: from 1 to {MOST_WORKERS} are possible")))
        }
        None if workers.len() > MOST_RUNGS => {
            Err(Failure::Usage(format!("a ladder has at most {MOST_RUNGS} steps")))
        }
        None => Ok(ascending(workers)),
    }
}

fn ascending<T: Ord + Copy>(rungs: &[T]) -> Vec<T> {
    let mut rungs = rungs.to_vec();
    rungs.sort_unstable();
    rungs.dedup();
    rungs
}

/// A count as typed: `0`, `1k`, `20k`, `1M`.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1_000_000)),
    };
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    whole.ok_or_else(|| format!("'{text}' is no count: write 0, 500, 10k or 1M"))
}

/// The command line again, as words.
fn words(options: &Options) -> Vec<String> {
    let mut words = options.cases.clone();
    let mut list = |name: &str, values: Vec<String>| {
        if !values.is_empty() {
            words.extend([name.to_owned(), values.join(",")]);
        }
    };
    list("--threads", options.threads.iter().map(u32::to_string).collect());
    list("--processes", options.processes.iter().map(u32::to_string).collect());
    list("--population", options.population.iter().map(u64::to_string).collect());
    list(
        "--time",
        options.time.iter().map(|ns| model::units::duration(*ns).replace(' ', "")).collect(),
    );
    words.extend(options.pin.then(|| "--pin".to_owned()));
    words.extend(options.with_kernel.then(|| "--with-kernel".to_owned()));
    words
}

fn recorder(
    options: &Options,
    session: &Session,
    started: Instant,
) -> Result<Option<Recorder>, Failure> {
    if !options.with_kernel {
        return Ok(None);
    }
    let watch = Watch {
        target: WatchTarget::Process(session.pid()),
        follow: true,
        threshold_ns: THRESHOLD_NS,
        budget_percent: None,
        detail: Detail::All,
        timers: Timers::Off,
        keep_secrets: false,
        requests: SlowRequests::Off,
        pipe_stdout: false,
    };
    let recorder = Recorder::start(&watch, started)?;
    if recorder.header().sampled {
        let why = recorder.capabilities().iter().find(|part| !part.on);
        let why = why.map_or("", |part| &part.because);
        return Err(Failure::Usage(format!("--with-kernel cannot record here: {why}")));
    }
    Ok(Some(recorder))
}

fn progress(cases: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cases as u64 * 100);
    match ProgressStyle::with_template(
        "{bar:30} {percent:>3} %  {elapsed} of about {duration}  {msg}",
    ) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

struct Measuring {
    clock: String,
    empty: Option<BenchStep>,
    cases: Vec<BenchCase>,
    progress: ProgressBar,
    keeper: Keeper,
    /// The accounts of the workers so far, by thread.
    recorded: BTreeMap<(u32, u64), ThreadAccounts>,
    recorder: Option<Recorder>,
    stored: Instant,
}

/// How a measurement ended.
enum Ended {
    Done,
    Failed(String),
    Interrupted,
}

impl Measuring {
    /// Takes what the measuring process sends until it ends.
    fn receive(&mut self, session: &mut Session) -> Ended {
        while let Some(message) = session.receive() {
            match message {
                Report::Clock(clock) => self.clock = clock,
                Report::Empty(step) => self.empty = Some(step),
                Report::Progress(case, part) => {
                    self.progress.set_position(((self.cases.len() as f64 + part) * 100.0) as u64);
                    self.progress.set_message(case);
                }
                Report::Case(case) => self.cases.push(case),
                Report::Failed(why) if !bench::stop::requested() => return Ended::Failed(why),
                Report::Failed(_) => return Ended::Interrupted,
                Report::End => return Ended::Done,
            }
            if self.stored.elapsed() >= STEP
                && let Err(why) = self.keep()
            {
                return Ended::Failed(why.to_string());
            }
        }
        if bench::stop::requested() {
            return Ended::Interrupted;
        }
        Ended::Failed("the measuring process died".to_owned())
    }

    /// Stores what the recorder has so far.
    fn keep(&mut self) -> Result<(), observe::Error> {
        self.stored = Instant::now();
        if let Some(recorder) = &mut self.recorder {
            let batch = recorder.batch()?;
            self.append(batch);
        }
        Ok(())
    }

    fn append(&mut self, batch: Batch) {
        for thread in &batch.threads {
            self.recorded.insert((thread.tid, thread.first_ns), thread.clone());
        }
        self.keeper.append(batch);
    }

    /// Takes the last of the recorder, and gives the moment when recording or measuring ended.
    fn end_recorder(&mut self) -> Result<Option<u64>, observe::Error> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(None) };
        let ended_ns = recorder.stop()?;
        recorder.finish(|batch| self.append(batch))?;
        Ok(Some(ended_ns))
    }

    fn finish(mut self, ended: Ended, options: &Options) -> Result<ExitCode, Failure> {
        self.keeper.ends();
        let facts = match self.recorder {
            Some(_) => Vec::new(),
            None => inspect::fingerprint::host(),
        };
        let (ended_ns, ended) = match (self.end_recorder(), ended) {
            (Err(why), Ended::Done) => (None, Ended::Failed(why.to_string())),
            (recorded, ended) => (recorded.ok().flatten(), ended),
        };
        let ended_ns = ended_ns.unwrap_or_else(clock::monotonic_ns);
        let mut batch = Batch { heartbeat_ns: ended_ns, facts, ..Batch::default() };
        if let Some(empty) = self.empty.take() {
            let mut bench = Bench {
                clock: std::mem::take(&mut self.clock),
                pinned: options.pin,
                empty,
                cases: std::mem::take(&mut self.cases),
            };
            let recorded: Vec<_> = std::mem::take(&mut self.recorded).into_values().collect();
            bench::recorded::add_accounts(&mut bench.cases, &recorded);
            batch.bench = Some(bench);
        }
        self.keeper.append(batch);
        let reason = match &ended {
            Ended::Done => "all cases were measured".to_owned(),
            Ended::Failed(why) => why.clone(),
            Ended::Interrupted => "interrupted".to_owned(),
        };
        let mut kept = self.keeper.finish(&RunEnd { ended_ns, exit_status: None, reason })?;
        let reported = report(&mut kept, options);
        kept.tell_where("has it again");
        reported?;
        match ended {
            Ended::Done => Ok(kept.exit_code(None)),
            Ended::Interrupted => Ok(ExitCode::from(130)),
            Ended::Failed(why) => Err(Failure::Failed(anyhow::anyhow!(
                "the benchmark ended early: {why}; run {} has what was measured until then",
                kept.id
            ))),
        }
    }
}

fn report(kept: &mut Kept, options: &Options) -> Result<(), Failure> {
    let run = kept.store.load(kept.id)?;
    if options.with_kernel {
        kept.put_findings(&explain::explain(&run).findings);
    }
    let (mut out, style) = output::stdout();
    let ladders = explain::judge_ladders(&run);
    if options.json {
        let json = report::bench::json(&run, &ladders);
        serde_json::to_writer_pretty(&mut out, &json).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::bench::write(&mut out, &run, &ladders, options.histogram, &style)?;
    }
    Ok(out.flush()?)
}
